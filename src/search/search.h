// The search: which of the equal ways to compute a lowered graph is expected to take the least
// time. Rules say what is equal (rewrite), the scheduler decides what a candidate would run and the
// estimate what that costs (schedule); nothing is built, no clock decides anything, and neither the
// threads nor the caches of the machine are asked: the same graph comes out everywhere that the
// same cost table is used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/extraction.h"
#include "rewrite/rule.h"
#include "schedule/archetype.h"
#include "schedule/cost_table.h"

namespace pantala::search {

enum class Level : std::uint8_t {
  none,    // the graph as it is given
  greedy,  // the rules in their order, each wherever it fits
  egraph,  // everything that the rules say, and the best of it
};

struct Options {
  Level level = Level::egraph;
  rewrite::Promise promise = rewrite::Promise::real;  // rules that promise less are left out
  // Rules that are left out by name; so can be the choice of layouts.
  std::vector<std::string> off = {};
  int greedy_order = 0;  // of Level::greedy: draws an order of the rules; 0: as they are listed
  // The most that temporaries may take together, by the estimate; 0: whatever is fastest.
  std::int64_t memory_limit = 0;
  bool prepares = false;  // schedule::ScheduleOptions::prepares
  // What the user wrote, lowered, where the graph that is searched is a canonical form of it.
  const Graph* written = nullptr;
  bool stays_finite = false;  // the canonical form, where what was written overflows on the way
  const schedule::ArchetypeTable& archetypes;
  const schedule::CostTable& table;
  std::function<void()> check = {};  // called between parts of the work, which ends if it throws
};

// By which the choice of layouts is called off, like a rule.
inline constexpr std::string_view kLayoutsName = "images-by-planes";

// A graph that was weighed.
struct Candidate {
  std::string name;  // "given", "canonical", "greedy", "best applications", ...
  double microseconds = 0, flops = 0, bytes = 0;
  std::int64_t nodes = 0, launches = 0, peak_bytes = 0;
  std::string verdict = {};  // why it was chosen or not, for people
};

// Applications of a rule, to values of one type, that were left out or taken in on the way to the
// candidate "best applications".
struct Trial {
  std::string rule, type;
  bool with = false;        // taken in; otherwise left out
  double microseconds = 0;  // of the whole then
  bool kept = false;        // it was better; otherwise it was taken back
};

struct Phase {
  std::string name;
  double milliseconds = 0;
};

using rewrite::RuleUse;

// Values of one kind that are computed a second time instead of being kept, or stored instead of
// being computed by everyone who reads them.
struct Recomputed {
  std::string values;  // op and type
  std::int64_t count = 0, bytes = 0;
};

struct Outcome {
  Graph graph;                        // lowered
  std::vector<Candidate> candidates;  // the given one first, as it was written
  std::size_t chosen = 0;
  bool is_of_written = false;  // the graph is made of Options::written
  std::vector<Trial> trials = {};
  std::vector<Phase> phases = {};  // where the time of the search went
  std::vector<RuleUse> rules;      // that fired
  std::vector<Recomputed> recomputed = {}, stored = {};
  std::vector<std::string> by_planes = {};          // convolutions whose images have channels first
  std::int64_t nodes = 0, classes = 0, rounds = 0;  // of the e-graph
  std::string stop_reason;
};

// `lowered` as schedule::lower() gives it. What is chosen is never expected to take longer than
// what was given, in canonical form or as it was written (but where that overflows on the way). The
// given graph stays unless another takes less than 0.99 of its time, or 0.9 of its memory in no
// more time. Of the others the smallest estimate wins, from which values that are computed again to
// save memory may take half a percent back. A limit of memory alone asks for more.
Outcome search(const Graph& lowered, const Options& options);

}  // namespace pantala::search
