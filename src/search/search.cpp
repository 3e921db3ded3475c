#include "search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "ir/shared_graph.h"
#include "rewrite/extraction.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "search/climb.h"
#include "search/layouts.h"
#include "search/recompute.h"
#include "search/storing.h"
#include "search/weigh.h"

namespace pantala::search {

using rewrite::NodeId;
using rewrite::Saturation;
using rewrite::Selection;

namespace {

// How many nodes the graphs that are tried may have together, by what is decided: it ends in time
// for large graphs.
constexpr std::size_t kMostOfApplications = 30'000, kMostOfLayouts = 15'000,
                      kMostOfStoring = 41'000;

// The rules that fit anywhere: no other can fit after some of them were applied.
std::vector<rewrite::Rule> rules_that_fired(const Saturation& all) {
  std::vector<rewrite::Rule> rules;
  for (std::size_t k = 0; k < all.rules().size(); ++k)
    if (all.run().rules[k].fired > 0) rules.push_back(all.rules()[k]);
  return rules;
}

Candidate named(Candidate candidate, std::string name) {
  candidate.name = std::move(name);
  return candidate;
}

// Notes how long the parts of a search take, one after the other.
class PhaseClock {
 public:
  void end(std::string name, std::vector<Phase>& phases) {
    const Clock::time_point now = Clock::now();
    phases.push_back({std::move(name), Milliseconds(now - begin_).count()});
    begin_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Clock::time_point begin_ = Clock::now();
};

// By how much a candidate is dearer than another one.
std::string above_text(const Candidate& one, const Candidate& other) {
  const double above = 100 * (one.microseconds / other.microseconds - 1);
  if (above > 0) return fmt::format("dearer than {} by {:.2f} %", other.name, above);
  if (above < 0)
    return fmt::format("as fast as {} to {:.2f} %, with more memory", other.name, -above);
  return one.peak_bytes > other.peak_bytes
             ? fmt::format("takes more memory than {}, in as much time", other.name)
             : fmt::format("no better than {}", other.name);
}

// What the search is about to leave or to go back to: the first graph, and where it stands.
struct Start {
  Graph graph;
  std::size_t candidate = 0;
};

// What is given wins unless another takes less than this part of its time, estimates being no
// better, or at most that part of its memory in no more time.
constexpr double kWorthIt = 0.99, kWorthItsMemory = 0.8;

bool is_faster(const Candidate& one, const Candidate& given) {
  return one.microseconds < kWorthIt * given.microseconds;
}
bool is_worth_it(const Candidate& one, const Candidate& given) {
  const bool is_smaller = static_cast<double>(one.peak_bytes) <=
                          kWorthItsMemory * static_cast<double>(given.peak_bytes);
  return is_faster(one, given) || (one.microseconds <= given.microseconds && is_smaller);
}

std::string verdict_on(std::size_t k, const Start& start, const Outcome& outcome) {
  const std::vector<Candidate>& all = outcome.candidates;
  const Candidate &first = all.at(start.candidate), &chosen = all.at(outcome.chosen),
                  &one = all.at(k);
  const bool is_start = outcome.chosen == start.candidate;
  if (k < start.candidate && one.microseconds < first.microseconds)
    return fmt::format("overflows on the way, where the {} form does not", first.name);
  if (k != outcome.chosen)
    return is_start && one.microseconds < first.microseconds
               ? fmt::format("only {:.2f} % better than {}, which must be more than {:.0f} %",
                             100 * (1 - one.microseconds / first.microseconds), first.name,
                             100 * (1 - kWorthIt))
               : above_text(one, chosen);
  if (!is_start)
    return is_faster(one, first) ? "chosen: the cheapest" : "chosen: less memory, in no more time";
  return k + 1 < all.size()
             ? fmt::format("chosen: nothing is more than {:.0f} % better", 100 * (1 - kWorthIt))
             : "chosen: no rule fits";
}

void judge(const Start& start, Outcome& outcome) {
  for (std::size_t k = 0; k < outcome.candidates.size(); ++k)
    outcome.candidates[k].verdict = verdict_on(k, start, outcome);
}

// In an order that the number draws.
void reorder(std::vector<rewrite::Rule>& rules, int order) {
  const auto drawn = [&](const rewrite::Rule& rule) {
    return hash_combine(hash_combine(kHashSeed, static_cast<std::uint64_t>(order)),
                        fnv1a(rule.name));
  };
  std::ranges::stable_sort(rules, {}, drawn);
}

// The graph as it was written, or in canonical form where that is not expected to take longer.
Outcome given_graph(const Graph& lowered, const Options& options, Scales& scales) {
  const Graph& written = options.written != nullptr ? *options.written : lowered;
  Outcome outcome{.graph = ir::shared(lowered),
                  .candidates = {named(scales.weigh(written), "given")},
                  .rules = {},
                  .stop_reason = ""};
  if (options.written == nullptr || Scales::are_same(written, lowered)) return outcome;
  outcome.candidates.push_back(named(scales.weigh(lowered), "canonical"));
  const bool is_dearer = outcome.candidates[1].microseconds > outcome.candidates[0].microseconds;
  outcome.chosen = is_dearer && !options.stays_finite ? 0 : 1;
  outcome.is_of_written = outcome.chosen == 0;
  if (outcome.is_of_written) outcome.graph = ir::shared(written);
  return outcome;
}

void choose(const Graph& graph, Candidate candidate, Outcome& outcome) {
  outcome.graph = ir::shared(graph);
  outcome.candidates.push_back(std::move(candidate));
  outcome.chosen = outcome.candidates.size() - 1;
}

// Among the rest, or chosen if it is better than what is.
void consider(const Graph& graph, std::string name, Scales& scales, Outcome& outcome) {
  Candidate one = named(scales.weigh(graph), std::move(name));
  if (is_better(one, outcome.candidates[outcome.chosen]))
    choose(graph, std::move(one), outcome);
  else
    outcome.candidates.push_back(std::move(one));
}

std::vector<rewrite::Rule> rules_for(const Options& options) {
  return rewrite::allowed_rules(rewrite::step_rules(), options.promise, options.off);
}

// What the rules give one after another, because it was asked for.
void search_greedily(const Options& options, Scales& scales, Outcome& outcome) {
  PhaseClock clock;
  std::vector<rewrite::Rule> rules = rules_for(options);
  if (options.greedy_order != 0) reorder(rules, options.greedy_order);
  const Graph graph = scales.lowered(rewrite::rewrite_greedily(outcome.graph, rules));
  for (Candidate& one : outcome.candidates) one.verdict = "not asked for";
  choose(graph, named(scales.weigh(graph), "greedy"), outcome);
  outcome.candidates.back().verdict = "chosen: asked for";
  clock.end("greedy", outcome.phases);
}

// Which of the equal graphs, every value computed once.
void search_rules(const Options& options, Scales& scales, Outcome& outcome) {
  PhaseClock clock;
  const Graph given = ir::shared(outcome.graph);
  const Saturation all(given, rules_for(options));
  clock.end("saturate", outcome.phases);
  outcome.nodes = static_cast<std::int64_t>(all.joint().equal().nodes());
  outcome.classes = static_cast<std::int64_t>(all.joint().equal().classes());
  outcome.rounds = static_cast<std::int64_t>(all.run().rounds);
  outcome.stop_reason = egraph::to_string(all.run().stop_reason);
  outcome.rules = rewrite::uses_of(all, nullptr);
  if (all.applications().empty()) return;

  Climbed climbed =
      best_applications(all, scales, outcome.candidates[outcome.chosen], kMostOfApplications);
  outcome.trials = std::move(climbed.trials);
  consider(climbed.graph, "best applications", scales, outcome);
  clock.end("best applications", outcome.phases);
  const Selection cheapest =
      rewrite::improved(all.joint(), rewrite::given_selection(all.joint()),
                        [&](NodeId node) { return bytes_of(all.joint(), node); });
  consider(scales.lowered(rewrite::to_graph(all.joint(), cheapest)), "cheapest nodes", scales,
           outcome);
  clock.end("cheapest nodes", outcome.phases);
  consider(scales.lowered(rewrite::rewrite_greedily(given, rules_that_fired(all))), "greedy",
           scales, outcome);
  clock.end("greedy", outcome.phases);
}

template <class Kinds>
std::vector<Recomputed> described(const Kinds& kinds) {
  std::vector<Recomputed> list;
  for (const auto& one : kinds) list.push_back({one.name, std::ssize(one.nodes), one.bytes});
  return list;
}

// How the images of direct convolutions lie.
void search_layouts(const Options& options, Scales& scales, Outcome& outcome) {
  const bool is_off = std::ranges::find(options.off, kLayoutsName) != options.off.end();
  if (is_off || with_channels_last(outcome.graph).empty()) return;
  PhaseClock clock;
  std::vector<Imaged> changed;
  const Judged found = better_layouts(scales.judge(outcome.graph), scales, kMostOfLayouts, changed);
  if (!changed.empty()) choose(found.graph(), candidate_of(found, "images by planes"), outcome);
  for (const Imaged& kind : changed) outcome.by_planes.push_back(kind.name);
  clock.end("layouts", outcome.phases);
}

// What the thresholds of the scheduler store or compute again is where this begins: first what they
// compute again is tried as stored, then what is stored as computed again.
void search_storing(const Candidate& given, Scales& scales, Outcome& outcome) {
  PhaseClock clock;
  std::vector<Repeated> stored;
  Judged found = more_stored(scales.judge(outcome.graph), scales, kMostOfStoring, stored);
  if (!stored.empty()) choose(found.graph(), candidate_of(found, "storing"), outcome);
  std::vector<Held> again;
  // Estimates so close are equal, and less memory is better.
  constexpr double kAsFast = 1.005;
  const double most_time = std::min(kAsFast * found.estimate.microseconds, given.microseconds);
  found = less_stored(std::move(found), scales, {kMostOfStoring, most_time}, again);
  if (!again.empty()) choose(found.graph(), candidate_of(found, "recomputing"), outcome);
  outcome.stored = described(stored);
  outcome.recomputed = described(again);
  clock.end("storing and recomputing", outcome.phases);
}

void go_back(const Start& start, Outcome& outcome) {
  outcome.graph = ir::shared(start.graph);
  outcome.chosen = start.candidate;
  outcome.stored.clear();
  outcome.recomputed.clear();
  outcome.by_planes.clear();
}

// How many nodes each rule has made, by name.
std::map<std::string, std::int64_t> made_by_rules(const Graph& graph) {
  std::map<std::string, std::int64_t> made;
  for (const ir::Node& node : graph.data()->nodes()) {
    std::set<std::string> rules;
    if (node.where.rewrites)
      for (const ir::Rewriting& one : *node.where.rewrites) rules.insert(one.rule);
    for (const std::string& rule : rules) ++made[rule];
  }
  return made;
}

// The nodes of the chosen graph that rules made, beside those that they had made before.
void note_reached(const Start& start, Outcome& outcome) {
  auto before = made_by_rules(start.graph), made = made_by_rules(outcome.graph);
  for (RuleUse& use : outcome.rules)
    use.reached = std::max<std::int64_t>(0, made[use.name] - before[use.name]);
}

// All that the e-graph has to choose from. Gives the graph in which nothing is stored or computed
// again but what the scheduler's thresholds say.
Graph search_all(const Options& options, Scales& scales, Outcome& outcome) {
  const Start start{ir::shared(outcome.graph), outcome.chosen};
  search_rules(options, scales, outcome);
  search_layouts(options, scales, outcome);
  const Graph plain = ir::shared(outcome.graph);
  search_storing(Candidate(outcome.candidates[start.candidate]), scales, outcome);
  const bool stays =
      is_worth_it(outcome.candidates[outcome.chosen], outcome.candidates[start.candidate]);
  if (!stays) go_back(start, outcome);
  note_reached(start, outcome);
  judge(start, outcome);
  return ir::shared(stays ? plain : start.graph);
}

// Where what is fastest does not keep the limit of memory: from a graph in which nothing is stored
// in addition.
void search_limit(const Graph& plain, const Options& options, Scales& scales, Outcome& outcome) {
  if (outcome.candidates[outcome.chosen].peak_bytes <= options.memory_limit) return;
  PhaseClock clock;
  std::vector<Held> again;
  const Judged found = within_limit(scales.judge(plain), scales, options.memory_limit, again);
  outcome.candidates[outcome.chosen].verdict = "takes more memory than the limit";
  choose(found.graph(), candidate_of(found, "limited"), outcome);
  outcome.candidates.back().verdict = "chosen: for the limit of memory";
  outcome.stored.clear();
  outcome.recomputed = described(again);
  clock.end("limit of memory", outcome.phases);
}

}  // namespace

Outcome search(const Graph& lowered, const Options& options) {
  Scales scales(options);
  PhaseClock clock;
  Outcome outcome = given_graph(lowered, options, scales);
  clock.end("given", outcome.phases);
  if (options.level == Level::greedy) search_greedily(options, scales, outcome);
  const Graph plain = options.level == Level::egraph ? search_all(options, scales, outcome)
                                                     : ir::shared(outcome.graph);
  if (options.memory_limit > 0) search_limit(plain, options, scales, outcome);
  return outcome;
}

}  // namespace pantala::search
