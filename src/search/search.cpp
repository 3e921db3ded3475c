#include "search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/hash.h"
#include "ir/shared_graph.h"
#include "rewrite/extraction.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "search/layouts.h"
#include "search/recompute.h"
#include "search/storing.h"
#include "search/weigh.h"

namespace pantala::search {

using rewrite::NodeId;
using rewrite::Saturation;
using rewrite::Selection;

namespace {

// What is given wins unless another has less than this part of its score: estimates are no better.
constexpr double kWorthIt = 0.99;
// How many nodes the candidates of a climb may have together: it ends in time for large graphs.
constexpr std::size_t kMostNodes = 20'000;

// Applications that are wanted or not together: of one rule, for values of one type. Layers of the
// same form are decided alike, and what is small beside the rest goes with all other small ones.
struct Unit {
  std::size_t rule = 0;
  std::string type;  // "and others" behind that of the largest
  std::vector<std::size_t> applications;
  std::int64_t elements = 0;
};
constexpr std::size_t kMostUnits = 4;  // of a rule

// The largest units of a rule, and one for all that is left.
void add_units(std::vector<Unit> of_rule, std::vector<Unit>& units) {
  std::ranges::stable_sort(of_rule, std::ranges::greater(), &Unit::elements);
  for (std::size_t k = 0; k < of_rule.size(); ++k) {
    if (k < kMostUnits) {
      units.push_back(std::move(of_rule[k]));
      continue;
    }
    Unit& rest = units.back();
    if (k == kMostUnits) rest.type += " and others";
    rest.applications.insert(rest.applications.end(), of_rule[k].applications.begin(),
                             of_rule[k].applications.end());
  }
}

std::vector<Unit> units_of(const Saturation& all) {
  std::vector<std::map<std::string, Unit>> by_rule(all.rules().size());
  for (std::size_t k = 0; k < all.applications().size(); ++k) {
    const rewrite::Application& one = all.applications()[k];
    const Type& type = all.joint().type(all.joint().equal().class_of(one.left));
    Unit& unit = by_rule[one.rule.index()][type.str()];
    unit.rule = one.rule.index();
    unit.type = type.str();
    unit.applications.push_back(k);
    unit.elements += type.shape.numel();
  }
  std::vector<Unit> units;
  for (std::map<std::string, Unit>& types : by_rule) {
    std::vector<Unit> of_rule;
    for (auto& [type, unit] : types) of_rule.push_back(std::move(unit));
    add_units(std::move(of_rule), units);
  }
  return units;
}

// Finds the units that are worth it, one at a time, by what the whole is expected to cost.
class Climb {
 public:
  Climb(const Saturation& all, Scales& scales, const Options& options)
      : all_(all), scales_(scales), options_(options), units_(units_of(all)) {}

  struct Best {
    Graph graph;
    Candidate candidate;
    Selection selection;
  };
  Best run(const Candidate& given) {
    Best best = weigh(std::vector<bool>(units_.size(), true));
    std::vector<bool> wanted(units_.size(), true);
    const auto score = [&](const Best& one) { return score_of(one.candidate, given); };
    if (score(best) > score_of(given, given)) {
      wanted.assign(units_.size(), false);
      best = weigh(wanted);
    }
    bool changed = units_.size() > 1;
    for (int pass = 0; pass < kPasses && changed; ++pass) {
      changed = false;
      for (std::size_t u = 0; u < units_.size() && nodes_ < kMostNodes; ++u) {
        if (options_.check) options_.check();
        wanted[u] = !wanted[u];
        Best other = weigh(wanted);
        const bool is_better = score(other) < score(best);
        trials_.push_back({.rule = all_.rules()[units_[u].rule].name,
                           .type = units_[u].type,
                           .with = wanted[u],
                           .microseconds = other.candidate.microseconds,
                           .kept = is_better});
        if (is_better) {
          best = std::move(other);
          changed = true;
        } else {
          wanted[u] = !wanted[u];
        }
      }
    }
    return best;
  }
  std::vector<Trial> take_trials() { return std::move(trials_); }

 private:
  static constexpr int kPasses = 2;

  Best weigh(const std::vector<bool>& wanted) {
    std::vector<bool> applications(all_.applications().size());
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const std::size_t k : units_[u].applications) applications[k] = wanted[u];
    Best one;
    one.selection = rewrite::selection_with(all_.joint(), all_.applications(), applications);
    one.graph = scales_.lowered(rewrite::to_graph(all_.joint(), one.selection));
    nodes_ += one.graph.size();
    one.candidate = scales_.weigh(one.graph);
    return one;
  }

  const Saturation& all_;
  Scales& scales_;
  const Options& options_;
  std::vector<Unit> units_;
  std::size_t nodes_ = 0;  // of all that was weighed
  std::vector<Trial> trials_;
};

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

// By how much a score is above another one.
std::string above_text(double score, const Candidate& other, double other_score) {
  if (!(score > other_score)) return fmt::format("no better than {}", other.name);
  return fmt::format("dearer than {} by {:.2f} %, with memory", other.name,
                     100 * (score / other_score - 1));
}

std::string verdict_on(std::size_t k, const Outcome& outcome) {
  const std::vector<Candidate>& all = outcome.candidates;
  const Candidate &given = all.at(0), &chosen = all.at(outcome.chosen), &one = all.at(k);
  const double score = score_of(one, given), least = score_of(chosen, given);
  if (k != outcome.chosen) {
    const bool too_little = outcome.chosen == 0 && score < least;
    return too_little
               ? fmt::format("only {:.2f} % better than given, which must be more than {:.0f} %",
                             100 * (1 - score / least), 100 * (1 - kWorthIt))
               : above_text(score, chosen, least);
  }
  if (k > 0) return "chosen: the cheapest";
  return all.size() > 1
             ? fmt::format("chosen: nothing is more than {:.0f} % better", 100 * (1 - kWorthIt))
             : "chosen: no rule fits";
}

void judge(Outcome& outcome) {
  for (std::size_t k = 0; k < outcome.candidates.size(); ++k)
    outcome.candidates[k].verdict = verdict_on(k, outcome);
}

// In an order that the number draws.
void reorder(std::vector<rewrite::Rule>& rules, int order) {
  const auto drawn = [&](const rewrite::Rule& rule) {
    return hash_combine(hash_combine(kHashSeed, static_cast<std::uint64_t>(order)),
                        fnv1a(rule.name));
  };
  std::ranges::stable_sort(rules, {}, drawn);
}

Outcome search_greedily(const Graph& lowered, const std::vector<rewrite::Rule>& rules,
                        Scales& scales) {
  Outcome outcome;
  PhaseClock clock;
  outcome.graph = scales.lowered(rewrite::rewrite_greedily(lowered, rules));
  outcome.candidates = {named(scales.weigh(lowered), "given"),
                        named(scales.weigh(outcome.graph), "greedy")};
  outcome.candidates[0].verdict = "not asked for";
  outcome.candidates[1].verdict = "chosen: asked for";
  outcome.chosen = 1;
  clock.end("greedy", outcome.phases);
  return outcome;
}

// Which of the equal graphs, every value computed once.
Outcome search_rules(const Graph& lowered, const Options& options, Scales& scales) {
  if (options.level == Level::none)
    return {.graph = ir::shared(lowered),
            .candidates = {named(scales.weigh(lowered), "given")},
            .rules = {},
            .stop_reason = ""};
  std::vector<rewrite::Rule> rules =
      rewrite::allowed_rules(rewrite::step_rules(), options.promise, options.off);
  if (options.level == Level::greedy) {
    if (options.greedy_order != 0) reorder(rules, options.greedy_order);
    return search_greedily(lowered, rules, scales);
  }

  PhaseClock clock;
  const Saturation all(lowered, std::move(rules));
  Outcome outcome;
  clock.end("saturate", outcome.phases);
  outcome.nodes = static_cast<std::int64_t>(all.joint().equal().nodes());
  outcome.classes = static_cast<std::int64_t>(all.joint().equal().classes());
  outcome.rounds = static_cast<std::int64_t>(all.run().rounds);
  outcome.stop_reason = egraph::to_string(all.run().stop_reason);
  outcome.graph = ir::shared(lowered);
  outcome.candidates.push_back(named(scales.weigh(lowered), "given"));
  clock.end("given", outcome.phases);
  if (all.applications().empty()) {
    outcome.rules = rewrite::uses_of(all, nullptr);
    judge(outcome);
    return outcome;
  }

  const Candidate given = outcome.candidates[0];
  const auto consider = [&](std::string name, const Graph& graph) {
    outcome.candidates.push_back(named(scales.weigh(graph), std::move(name)));
    const double least = score_of(outcome.candidates[outcome.chosen], given) *
                         (outcome.chosen == 0 ? kWorthIt : 1.0);
    if (score_of(outcome.candidates.back(), given) >= least) return false;
    outcome.chosen = outcome.candidates.size() - 1;
    outcome.graph = ir::shared(graph);
    return true;
  };
  const Selection* selection = nullptr;
  Climb climb(all, scales, options);
  const Climb::Best climbed = climb.run(given);
  outcome.trials = climb.take_trials();
  if (consider("best applications", climbed.graph)) selection = &climbed.selection;
  clock.end("best applications", outcome.phases);
  const Selection cheapest =
      rewrite::improved(all.joint(), rewrite::given_selection(all.joint()),
                        [&](NodeId node) { return bytes_of(all.joint(), node); });
  if (consider("cheapest nodes", scales.lowered(rewrite::to_graph(all.joint(), cheapest))))
    selection = &cheapest;
  clock.end("cheapest nodes", outcome.phases);
  if (consider("greedy", scales.lowered(rewrite::rewrite_greedily(lowered, rules_that_fired(all)))))
    selection = nullptr;
  clock.end("greedy", outcome.phases);
  judge(outcome);
  outcome.rules = rewrite::uses_of(all, selection);
  return outcome;
}

// Takes what was found instead of what is chosen.
void choose_instead(const Judged& found, std::string name, const std::string& verdict,
                    const std::string& verdict_on_other, Outcome& outcome) {
  outcome.graph = ir::shared(found.graph());
  outcome.candidates[outcome.chosen].verdict = verdict_on_other;
  outcome.candidates.push_back(candidate_of(found, std::move(name)));
  outcome.candidates.back().verdict = verdict;
  outcome.chosen = outcome.candidates.size() - 1;
}

template <class Kinds>
std::vector<Recomputed> described(const Kinds& kinds) {
  std::vector<Recomputed> list;
  for (const auto& one : kinds) list.push_back({one.name, std::ssize(one.nodes), one.bytes});
  return list;
}

void search_limit(const Options& options, Scales& scales, Outcome& outcome) {
  std::vector<Held> again;
  const Judged found =
      within_limit(scales.judge(outcome.graph), scales, options.memory_limit, again);
  if (again.empty()) return;
  choose_instead(found, "recomputing", "chosen: for the limit of memory",
                 "takes more memory than the limit", outcome);
  outcome.recomputed = described(again);
}

// How the images of direct convolutions lie. Under a limit of memory, too: a layout takes none.
void search_layouts(const Options& options, Scales& scales, Outcome& outcome) {
  const bool is_off = std::ranges::find(options.off, kLayoutsName) != options.off.end();
  if (options.level != Level::egraph || is_off || with_channels_last(outcome.graph).empty()) return;
  PhaseClock clock;
  std::vector<Imaged> changed;
  const Judged found = better_layouts(scales.judge(outcome.graph), scales, kMostNodes / 2, changed);
  if (!changed.empty()) {
    choose_instead(found, "images by planes", "chosen: the cheapest",
                   "has all images with channels last", outcome);
    for (const Imaged& kind : changed) outcome.by_planes.push_back(kind.name);
  }
  clock.end("layouts", outcome.phases);
}

// What the thresholds of the scheduler store or compute again is where this begins: first what they
// compute again is tried as stored, then what is stored as computed again.
void search_storing(Scales& scales, Outcome& outcome) {
  const double most_time = outcome.candidates[0].microseconds;
  std::vector<Repeated> stored;
  Judged found = more_stored(scales.judge(outcome.graph), scales, kMostNodes, stored);
  if (!stored.empty()) {
    choose_instead(found, "storing", "chosen: the cheapest, with memory",
                   "computes more, in more time", outcome);
    outcome.stored = described(stored);
  }
  std::vector<Held> again;
  found = less_stored(std::move(found), scales, {kMostNodes, most_time}, again);
  if (again.empty()) return;
  choose_instead(found, "recomputing", "chosen: the cheapest, with memory",
                 "keeps more, for as much time", outcome);
  outcome.recomputed = described(again);
}

// Which values of the chosen graph are kept: the limit comes first, then time.
void search_memory(const Options& options, Scales& scales, Outcome& outcome) {
  const bool is_limited = options.memory_limit > 0;
  const std::int64_t peak = outcome.candidates[outcome.chosen].peak_bytes;
  // Of a large graph hardly anything could be tried in time.
  const bool pays = options.level == Level::egraph && 2 * outcome.graph.size() <= kMostNodes;
  if (is_limited ? peak <= options.memory_limit : !pays) return;
  PhaseClock clock;
  if (is_limited)
    search_limit(options, scales, outcome);
  else
    search_storing(scales, outcome);
  clock.end("storing and recomputing", outcome.phases);
}

}  // namespace

Outcome search(const Graph& lowered, const Options& options) {
  Scales scales(options);
  Outcome outcome = search_rules(lowered, options, scales);
  search_layouts(options, scales, outcome);
  search_memory(options, scales, outcome);
  return outcome;
}

}  // namespace pantala::search
