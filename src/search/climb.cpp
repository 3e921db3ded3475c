#include "search/climb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pantala::search {

using rewrite::Saturation;

namespace {

// Applications that are wanted or not together: of one rule, for values of one type. Layers of the
// same form are decided alike, and what is small beside the rest goes with all other small ones.
struct Unit {
  std::size_t rule = 0;
  std::string type;  // "and others" behind that of the largest
  std::vector<std::size_t> applications;
  std::vector<rewrite::ClassId> values;  // that they compute, in order
  double bytes = 0;                      // that its left sides read and make
};
constexpr std::size_t kMostUnits = 4;  // of a rule

// The largest units of a rule, and one for all that is left.
void add_units(std::vector<Unit> of_rule, std::vector<Unit>& units) {
  std::ranges::stable_sort(of_rule, std::ranges::greater(), &Unit::bytes);
  for (std::size_t k = 0; k < of_rule.size(); ++k) {
    if (k < kMostUnits) {
      units.push_back(std::move(of_rule[k]));
      continue;
    }
    Unit& rest = units.back();
    if (k == kMostUnits) rest.type += " and others";
    rest.applications.insert(rest.applications.end(), of_rule[k].applications.begin(),
                             of_rule[k].applications.end());
    rest.bytes += of_rule[k].bytes;
    rest.values.insert(rest.values.end(), of_rule[k].values.begin(), of_rule[k].values.end());
  }
}

std::vector<Unit> units_of(const Saturation& all) {
  std::vector<std::map<std::string, Unit>> by_rule(all.rules().size());
  for (std::size_t k = 0; k < all.applications().size(); ++k) {
    const rewrite::Application& one = all.applications()[k];
    const rewrite::ClassId value = all.joint().equal().find(all.joint().equal().class_of(one.left));
    const Type& type = all.joint().type(value);
    Unit& unit = by_rule[one.rule.index()][type.str()];
    unit.rule = one.rule.index();
    unit.type = type.str();
    unit.applications.push_back(k);
    unit.values.push_back(value);
    unit.bytes += bytes_of(all.joint(), one.left);
  }
  std::vector<Unit> units;
  for (std::map<std::string, Unit>& types : by_rule) {
    std::vector<Unit> of_rule;
    for (auto& [type, unit] : types) of_rule.push_back(std::move(unit));
    add_units(std::move(of_rule), units);
  }
  for (Unit& unit : units) std::ranges::sort(unit.values);
  // Of a large graph not all can be tried.
  std::ranges::stable_sort(units, std::ranges::greater(), &Unit::bytes);
  return units;
}

class Climb {
 public:
  Climb(const Saturation& all, Scales& scales, std::size_t most_nodes)
      : all_(all), scales_(scales), most_nodes_(most_nodes), units_(units_of(all)) {}

  Climbed run(const Candidate& given) {
    begin(given);
    bool changed = units_.size() > 1;
    for (int pass = 0; pass < kPasses && changed; ++pass) {
      changed = false;
      for (std::size_t u = 0; u < units_.size() && nodes_ < most_nodes_; ++u)
        changed |= try_other(u);
    }
    return {std::move(best_.graph), std::move(trials_)};
  }

 private:
  static constexpr int kPasses = 2;

  struct Weighed {
    Graph graph;
    Candidate candidate;
  };

  void begin(const Candidate& given) {
    wanted_.assign(units_.size(), true);
    best_ = weigh();
    if (!is_better(given, best_.candidate)) return;
    wanted_.assign(units_.size(), false);
    best_ = weigh();
  }

  // The unit left out where it is wanted, taken in where it is not. Where it is left out a rival
  // takes its place, so that it is left out with its rivals as well; taken in, it takes theirs.
  bool try_other(std::size_t u) {
    const std::vector<std::size_t> rivals = wanted_rivals(u);
    if (wanted_[u]) return try_without({u}) || (!rivals.empty() && try_without(with(u, rivals)));
    return try_with(u, {}) || (!rivals.empty() && try_with(u, rivals));
  }
  bool try_without(const std::vector<std::size_t>& units) {
    std::vector<bool> wanted = wanted_;
    for (const std::size_t u : units) wanted[u] = false;
    return try_wanted(units, false, std::move(wanted));
  }
  bool try_with(std::size_t u, const std::vector<std::size_t>& rivals) {
    std::vector<bool> wanted = wanted_;
    for (const std::size_t rival : rivals) wanted[rival] = false;
    wanted[u] = true;
    return try_wanted({u}, true, std::move(wanted));
  }
  bool try_wanted(const std::vector<std::size_t>& units, bool with, std::vector<bool> wanted) {
    scales_.check();
    std::swap(wanted, wanted_);
    Weighed other = weigh();
    const bool kept = is_better(other.candidate, best_.candidate);
    std::vector<std::string> rules;
    for (const std::size_t u : units) rules.push_back(all_.rules()[units_[u].rule].name);
    trials_.push_back({.rule = fmt::format("{}", fmt::join(rules, ", ")),
                       .type = units_[units[0]].type,
                       .with = with,
                       .microseconds = other.candidate.microseconds,
                       .kept = kept});
    if (kept)
      best_ = std::move(other);
    else
      wanted_ = std::move(wanted);
    return kept;
  }

  static std::vector<std::size_t> with(std::size_t u, std::vector<std::size_t> rivals) {
    rivals.insert(rivals.begin(), u);
    return rivals;
  }
  // Units that compute some of the same values, and are wanted.
  std::vector<std::size_t> wanted_rivals(std::size_t u) const {
    std::vector<std::size_t> rivals;
    for (std::size_t other = 0; other < units_.size(); ++other)
      if (other != u && wanted_[other] && shares_values(units_[u], units_[other]))
        rivals.push_back(other);
    return rivals;
  }
  static bool shares_values(const Unit& a, const Unit& b) {
    return std::ranges::any_of(a.values, [&](rewrite::ClassId value) {
      return std::ranges::binary_search(b.values, value);
    });
  }

  Weighed weigh() {
    std::vector<bool> applications(all_.applications().size());
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const std::size_t k : units_[u].applications) applications[k] = wanted_[u];
    const rewrite::Selection selection =
        rewrite::selection_with(all_.joint(), all_.applications(), applications);
    Weighed one{scales_.lowered(rewrite::to_graph(all_.joint(), selection)), {}};
    nodes_ += one.graph.size();
    one.candidate = scales_.weigh(one.graph);
    return one;
  }

  const Saturation& all_;
  Scales& scales_;
  std::size_t most_nodes_;
  std::vector<Unit> units_;
  std::vector<bool> wanted_;  // by unit
  Weighed best_;
  std::size_t nodes_ = 0;  // of all that was weighed
  std::vector<Trial> trials_;
};

}  // namespace

Climbed best_applications(const Saturation& all, Scales& scales, const Candidate& given,
                          std::size_t most_nodes) {
  return Climb(all, scales, most_nodes).run(given);
}

}  // namespace pantala::search
