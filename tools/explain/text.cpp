#include "tools/explain/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/error.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string change_text(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : "";
}

std::string summary_text(const ExplainedStep& step, const Explanation& all) {
  const search::Candidate &a = step.given_candidate(), &b = step.chosen_candidate();
  Rows rows;
  const auto add = [&](std::string name, double before, double after, int digits) {
    rows.push_back({std::move(name), fmt::format("{:.{}f}", before, digits),
                    fmt::format("{:.{}f}", after, digits), change_text(before, after)});
  };
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  add("nodes", real(a.nodes), real(b.nodes), 0);
  add("launches", real(a.launches), real(b.launches), 0);
  add("Mflop", a.flops / 1e6, b.flops / 1e6, 1);
  add("MB moved", a.bytes / 1e6, b.bytes / 1e6, 1);
  add("MB alive", real(a.peak_bytes) / 1e6, real(b.peak_bytes) / 1e6, 1);
  add("estimated ms", a.microseconds / 1e3, b.microseconds / 1e3, 3);
  if (all.is_measured()) add("measured ms", all.given_ms, all.chosen_ms, 3);
  return table_text({{""}, {"given", true}, {"chosen", true}, {"", true}}, rows);
}

std::string rules_text(const ExplainedStep& step) {
  if (step.found.nodes == 0) return "";  // there was no e-graph that could have counted
  if (step.rules.empty()) return "no rule fits\n";
  const double chosen = step.chosen_candidate().microseconds;
  Rows rows;
  for (const ExplainedRule& one : step.rules)
    rows.push_back({one.use.name, fmt::format("{}", one.use.matches),
                    fmt::format("{}", one.use.fired), fmt::format("{}", one.use.reached),
                    change_text(chosen, one.without_us)});
  return table_text({{"rule"},
                     {"places", true},
                     {"said something new", true},
                     {"nodes chosen", true},
                     {"estimate without it", true}},
                    rows);
}

std::string candidates_text(const ExplainedStep& step) {
  Rows rows;
  for (std::size_t k = 0; k < step.found.candidates.size(); ++k) {
    const search::Candidate& one = step.found.candidates[k];
    rows.push_back({k == step.found.chosen ? "*" : "", one.name,
                    fmt::format("{:.3f}", one.microseconds / 1e3),
                    change_text(step.given_candidate().microseconds, one.microseconds),
                    fmt::format("{:.1f}", static_cast<double>(one.peak_bytes) / 1e6), one.verdict});
  }
  return table_text({{""},
                     {"candidate"},
                     {"estimated ms", true},
                     {"against given", true},
                     {"MB alive", true},
                     {"why"}},
                    rows);
}

// The candidates on the way to the best applications.
std::string trials_text(const ExplainedStep& step) {
  if (step.found.trials.empty()) return "";
  Rows rows;
  for (const search::Trial& one : step.found.trials)
    rows.push_back({fmt::format("{} {}", one.with ? "with" : "without", one.rule), one.type,
                    fmt::format("{:.3f}", one.microseconds / 1e3),
                    one.kept ? "kept: better" : "rejected: no better"});
  return "\n" + table_text({{"tried"}, {"for values"}, {"estimated ms", true}, {""}}, rows);
}

// What the thresholds of the scheduler and the layouts that it begins with did not decide.
std::string decisions_text(const search::Outcome& found) {
  Rows rows;
  const auto add = [&](const char* what, const std::vector<search::Recomputed>& kinds) {
    for (const search::Recomputed& one : kinds)
      rows.push_back({what, fmt::format("{} x {}", one.count, one.values),
                      fmt::format("{:.1f}", static_cast<double>(one.bytes) / 1e6)});
  };
  add("stored for all who read it", found.stored);
  add("computed again, not kept", found.recomputed);
  for (const std::string& kind : found.by_planes) rows.push_back({"images by planes", kind, ""});
  return rows.empty() ? "" : "\n" + table_text({{"decided"}, {"values"}, {"MB", true}}, rows);
}

std::string phases_text(const ExplainedStep& step, const Explanation& all) {
  Rows rows;
  const auto add = [&](const std::string& name, double milliseconds) {
    rows.push_back({name, fmt::format("{:.1f}", milliseconds)});
  };
  if (&step == &all.steps.front())
    for (const Report::Stage& stage : all.stages) add(stage.name, stage.milliseconds);
  for (const Report::Stage& stage : step.stages) {
    add(stage.name, stage.milliseconds);
    if (stage.name != "saturate") continue;
    for (const search::Phase& phase : step.found.phases)
      add("  " + (phase.name == "saturate" ? "apply rules" : phase.name), phase.milliseconds);
  }
  return table_text({{"phase"}, {"ms", true}}, rows);
}

// The dearest kernels that rules had a hand in.
std::string rewritten_text(const ExplainedStep& step) {
  constexpr std::size_t kMost = 12;
  std::vector<std::size_t> rewritten;
  for (std::size_t k = 0; k < step.chosen.size(); ++k)
    if (!step.chosen[k].rules().empty()) rewritten.push_back(k);
  if (rewritten.empty()) return "";
  std::ranges::stable_sort(rewritten, std::ranges::greater(),
                           [&](std::size_t k) { return step.chosen[k].predicted_us; });
  Rows rows;
  for (std::size_t k = 0; k < std::min(kMost, rewritten.size()); ++k) {
    const ExplainedKernel& kernel = step.chosen[rewritten[k]];
    rows.push_back({fmt::format("{}", rewritten[k]), kernel.name(),
                    fmt::format("{:.3f}", kernel.predicted_us / 1e3),
                    fmt::format("{}", fmt::join(kernel.rules(), ", "))});
  }
  const std::string rest =
      rewritten.size() > kMost
          ? fmt::format("and {} more; --kernel shows one, --json and --html all\n",
                        rewritten.size() - kMost)
          : "--kernel shows one, --json and --html all\n";
  return "\n" +
         table_text({{"kernel", true}, {"rewritten"}, {"estimated ms", true}, {"rules"}}, rows) +
         rest;
}

std::string node_text(const KernelNode& node) {
  std::string text = fmt::format("  {} {}", node.op, node.type);
  if (!node.label.empty()) text += fmt::format(" \"{}\"", node.label);
  if (!node.place.empty()) text += fmt::format(" ({})", node.place);
  text += "\n";
  for (const ir::Rewriting& one : node.rewrites)
    text += fmt::format("    by {} from {}\n", one.rule, one.from);
  return text;
}

std::string kernel_text(const ExplainedStep& step, std::size_t number) {
  const ExplainedKernel& kernel = step.chosen[number];
  std::string text = fmt::format("kernel {} of {}: {}\n", number, step.role, kernel.name());
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<10} {}\n", name, value);
  };
  add("layers", kernel.layers);
  add("ops", kernel.ops);
  add("launches", fmt::format("{}", fmt::join(kernel.launches, ", ")));
  add("estimated", fmt::format("{:.1f} us", kernel.predicted_us));
  if (kernel.measured_us > 0) add("measured", fmt::format("{:.1f} us", kernel.measured_us));
  add("work", fmt::format("{:.3f} Mflop, {:.3f} MB", kernel.flops / 1e6, kernel.bytes / 1e6));
  add("places", fmt::format("{}", fmt::join(kernel.places(), ", ")));
  std::vector<std::string> reads;
  for (const std::size_t k : kernel.reads)
    reads.push_back(fmt::format("{} ({})", k, step.chosen[k].name()));
  add("reads", fmt::format("{}", fmt::join(reads, ", ")));
  add("rules", kernel.rules().empty() ? "none: its nodes are as they were given"
                                      : fmt::format("{}", fmt::join(kernel.rules(), ", ")));
  text += "computes\n";
  for (const KernelNode& node : kernel.nodes) text += node_text(node);
  if (!kernel.leaves.empty()) text += "from\n";
  for (const KernelNode& node : kernel.leaves) text += node_text(node);
  return text;
}

// What was recognised before anything was differentiated.
std::string canonical_text(const std::vector<Report::Rule>& rules) {
  if (rules.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Report::Rule& rule : rules)
    rows.push_back({rule.name, fmt::format("{}", rule.matches), fmt::format("{}", rule.count),
                    fmt::format("{}", rule.reached)});
  return table_text({{"canonical form by"},
                     {"places", true},
                     {"said something new", true},
                     {"nodes kept", true}},
                    rows) +
         "\n";
}

}  // namespace

std::string explanation_text(const Explanation& all) {
  std::string text = canonical_text(all.canonical);
  for (const ExplainedStep& step : all.steps) {
    if (all.steps.size() > 1) text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", step.role);
    text += summary_text(step, all) + "\n" + rules_text(step) + rewritten_text(step) + "\n" +
            candidates_text(step) + trials_text(step) + decisions_text(step.found) + "\n" +
            phases_text(step, all);
    if (step.found.nodes > 0)
      text +=
          fmt::format("\ne-graph: {} nodes, {} classes, {} rounds, stopped: {}\n", step.found.nodes,
                      step.found.classes, step.found.rounds, step.found.stop_reason);
  }
  return text;
}

std::string kernel_text(const Explanation& explanation, std::string_view name) {
  std::string text, why_not;
  for (const ExplainedStep& step : explanation.steps) {
    try {
      for (const std::size_t number : find_kernels(step.chosen, name))
        text += (text.empty() ? "" : "\n") + kernel_text(step, number);
    } catch (const TypeError& error) { why_not = error.what(); }
  }
  if (text.empty()) throw TypeError(why_not);
  return text;
}

}  // namespace pantala::tools
