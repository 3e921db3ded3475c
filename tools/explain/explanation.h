// What is said about the choice of a step's graph: what was given and what was chosen, by which
// rules, instead of what, and how long it took to find out.
#pragma once

#include <string>
#include <vector>

#include "pantala/compile.h"
#include "search/search.h"
#include "tools/explain/kernels.h"
#include "tools/inspect/subject.h"

namespace pantala::tools {

// A rule that fit, and what would be expected of the step without it.
struct ExplainedRule {
  search::RuleUse use;
  double without_us = 0;
};

struct ExplainedStep {
  std::string role;
  search::Outcome found;
  std::vector<ExplainedRule> rules;
  std::vector<ExplainedKernel> given, chosen;
  std::vector<Report::Stage> stages;  // saturate, schedule, codegen, plan

  const search::Candidate& given_candidate() const { return found.candidates.at(0); }
  const search::Candidate& chosen_candidate() const { return found.candidates.at(found.chosen); }
  double search_ms() const;
};

struct Explanation {
  std::string subject;
  std::vector<ExplainedStep> steps;
  std::vector<Report::Stage> stages;    // before the steps: canonicalise, differentiate, optimizer
  std::vector<Report::Rule> canonical;  // what was recognised before the graph was differentiated
  double given_ms = 0, chosen_ms = 0;   // measured, all steps together; 0: not measured
  bool is_measured() const { return given_ms > 0; }
};

// Searches, and compiles what was chosen; with `measure` both graphs are run in turns on made-up
// inputs. TypeError if nothing is searched for.
Explanation explain(const std::string& subject, const Inspected& inspected, bool measure);

}  // namespace pantala::tools
