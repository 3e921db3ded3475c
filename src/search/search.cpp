#include "search/search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rewrite/extraction.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "search/weigh.h"

namespace pantala::search {

using rewrite::NodeId;
using rewrite::Saturation;
using rewrite::Selection;

namespace {

// What is given wins unless another has less than this part of its score: estimates are no better.
constexpr double kWorthIt = 0.99;
// How much memory counts beside time: a tenth of the peak is worth a hundredth of the time.
constexpr double kMemoryWorth = 0.1;
// How many nodes the candidates of a climb may have together: it ends in time for large graphs.
constexpr std::size_t kMostNodes = 20'000;

// What candidates are compared by, relative to the one that is given.
double score_of(const Candidate& one, const Candidate& given) {
  const auto peak = static_cast<double>(std::max<std::int64_t>(one.peak_bytes, 1)),
             most = static_cast<double>(std::max<std::int64_t>(given.peak_bytes, 1));
  return one.microseconds * (1 + kMemoryWorth * (peak / most - 1));
}

// Applications that are wanted or not together: of one rule, for values of one type. Layers of the
// same form are decided alike, and what is small beside the rest goes with all other small ones.
struct Unit {
  std::size_t rule = 0;
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
        if (score(other) < score(best)) {
          best = std::move(other);
          changed = true;
        } else {
          wanted[u] = !wanted[u];
        }
      }
    }
    return best;
  }

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
};

// What a node would cost alone: the bytes of what it reads and makes.
double bytes_of(const rewrite::Joint& joint, NodeId node) {
  const ir::OpDef* op = joint.op(node);
  if (op == nullptr || schedule::is_leaf(*op)) return 1;
  double bytes = 1;
  const auto add = [&](const Type& type) {
    bytes += static_cast<double>(type.shape.numel() * dtype_bytes(type.dtype));
  };
  for (const Type& type : joint.types(joint.equal().class_of(node))) add(type);
  for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k)
    add(joint.type(joint.equal().child(node, k)));
  return bytes;
}

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

Outcome search_greedily(const Graph& lowered, const std::vector<rewrite::Rule>& rules,
                        Scales& scales) {
  Outcome outcome;
  outcome.graph = scales.lowered(rewrite::rewrite_greedily(lowered, rules));
  outcome.candidates = {named(scales.weigh(lowered), "given"),
                        named(scales.weigh(outcome.graph), "greedy")};
  outcome.chosen = 1;
  return outcome;
}

}  // namespace

Outcome search(const Graph& lowered, const Options& options) {
  Scales scales(options);
  if (options.level == Level::none)
    return {.graph = lowered,
            .candidates = {named(scales.weigh(lowered), "given")},
            .rules = {},
            .stop_reason = ""};
  std::vector<rewrite::Rule> rules =
      rewrite::allowed_rules(rewrite::step_rules(), options.promise, options.off);
  if (options.level == Level::greedy) return search_greedily(lowered, rules, scales);

  const Saturation all(lowered, std::move(rules));
  Outcome outcome;
  outcome.nodes = static_cast<std::int64_t>(all.joint().equal().nodes());
  outcome.classes = static_cast<std::int64_t>(all.joint().equal().classes());
  outcome.rounds = static_cast<std::int64_t>(all.run().rounds);
  outcome.stop_reason = egraph::to_string(all.run().stop_reason);
  outcome.graph = lowered;
  outcome.candidates.push_back(named(scales.weigh(lowered), "given"));
  if (all.applications().empty()) {
    outcome.rules = rewrite::uses_of(all, nullptr);
    return outcome;
  }

  const Candidate given = outcome.candidates[0];
  const auto consider = [&](std::string name, const Graph& graph) {
    outcome.candidates.push_back(named(scales.weigh(graph), std::move(name)));
    const double least = score_of(outcome.candidates[outcome.chosen], given) *
                         (outcome.chosen == 0 ? kWorthIt : 1.0);
    if (score_of(outcome.candidates.back(), given) >= least) return false;
    outcome.chosen = outcome.candidates.size() - 1;
    outcome.graph = graph;
    return true;
  };
  const Selection* selection = nullptr;
  const Climb::Best climbed = Climb(all, scales, options).run(given);
  if (consider("best applications", climbed.graph)) selection = &climbed.selection;
  const Selection cheapest =
      rewrite::improved(all.joint(), rewrite::given_selection(all.joint()),
                        [&](NodeId node) { return bytes_of(all.joint(), node); });
  if (consider("cheapest nodes", scales.lowered(rewrite::to_graph(all.joint(), cheapest))))
    selection = &cheapest;
  if (consider("greedy", scales.lowered(rewrite::rewrite_greedily(lowered, rules_that_fired(all)))))
    selection = nullptr;
  outcome.rules = rewrite::uses_of(all, selection);
  return outcome;
}

}  // namespace pantala::search
