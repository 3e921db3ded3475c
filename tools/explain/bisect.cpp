#include "tools/explain/bisect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "compiler/options.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "tools/inspect/profile.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// What a step leaves behind, by kind.
struct Result {
  std::string kind, name;
  Literal value;
};
std::vector<Result> results_of_step(const Inspected& inspected) {
  const Session session = session_on_made_up_inputs(inspected);  // has made a step
  std::vector<Result> results;
  for (const std::string& name : session.outputs())
    results.push_back({"output", name, session.output(name)});
  for (const std::string& name : session.parameters())
    results.push_back({"parameter", name, session.parameter(name)});
  for (const std::string& name : session.states())
    results.push_back({"state", name, session.state(name)});
  return results;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// 0 for numbers that are the same, also if they are none.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isfinite(a - b) ? a - b : kInfinite;
}

std::vector<Difference> differences_of(const std::vector<Result>& some,
                                       const std::vector<Result>& others) {
  constexpr double kSmallest = 1e-3;
  std::map<std::string, double> largest;  // norm, by kind
  for (const Result& one : others)
    largest[one.kind] = std::max(largest[one.kind], norm_of(one.value.to_doubles()));
  std::vector<Difference> differences;
  for (std::size_t k = 0; k < others.size(); ++k) {
    const std::vector<double> a = some.at(k).value.to_doubles(), b = others[k].value.to_doubles();
    std::vector<double> apart(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) apart[i] = distance(a.at(i), b[i]);
    const double norm = norm_of(apart);
    const double scale = std::max(norm_of(b), kSmallest * largest[others[k].kind]);
    const double relative = norm == 0                        ? 0
                            : scale > 0 && scale < kInfinite ? norm / scale
                                                             : kInfinite;
    differences.push_back({others[k].kind + " " + others[k].name, relative});
  }
  std::ranges::stable_sort(differences, std::ranges::greater(), &Difference::relative);
  return differences;
}

// By which something was said: before the graph was differentiated, or behind it; layouts, too.
std::vector<std::string> rules_that_fired(const Inspected& inspected) {
  const compiler::Options options = compiler::host_options(inspected.options);
  if (options.level == search::Level::none)
    throw TypeError("explain: nothing is chosen with --rewrite none or --unfused");
  compiler::Options all = options;
  all.level = search::Level::egraph;  // which counts what fires
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  Report canonical;
  const std::vector<compiler::StepGraph> steps = step_graphs(inspected, canonical);
  for (const Report::Rule& rule : canonical.rules)
    if (rule.count > 0) add(rule.name);
  for (const compiler::StepGraph& step : steps) {
    const search::Outcome found = compiler::search_step(step, all);
    for (const search::RuleUse& use : found.rules)
      if (use.fired > 0) add(use.name);
    if (!found.by_planes.empty()) add(std::string(search::kLayoutsName));
  }
  return names;
}

std::string chosen_text(const Inspected& inspected) {
  const compiler::Options options = compiler::host_options(inspected.options);
  std::string text;
  Report report;
  for (const compiler::StepGraph& step : step_graphs(inspected))
    text += to_text(compiler::choose_graph(step, options, report));
  return text;
}

// Runs steps with some of the rules, and compares them with the step that no rule has changed.
class Comparison {
 public:
  Comparison(const Inspected& inspected, std::vector<std::string> rules)
      : inspected_(inspected), rules_(std::move(rules)) {
    Inspected plain = inspected;
    plain.options.rewrite = Rewrite::none;
    plain_ = results_of_step(plain);
    known_[chosen_text(plain)] = differences_of(plain_, plain_);
  }

  std::vector<Difference> with(const std::vector<std::string>& on) {
    Inspected one = inspected_;
    for (const std::string& rule : rules_)
      if (std::ranges::find(on, rule) == on.end()) one.options.rules_off.push_back(rule);
    // With fewer rules the same graph is often chosen: it need not be compiled again.
    const auto [known, is_new] = known_.try_emplace(chosen_text(one));
    if (is_new) {
      ++runs_;
      known->second = differences_of(results_of_step(one), plain_);
    }
    return known->second;
  }
  int runs() const { return runs_; }

 private:
  const Inspected& inspected_;
  std::vector<std::string> rules_;
  std::vector<Result> plain_;
  std::map<std::string, std::vector<Difference>> known_;  // by the graphs that are chosen
  int runs_ = 1;
};

// All parts of a list that was cut so often, and the list without each.
std::vector<std::vector<std::string>> parts_of(const std::vector<std::string>& all,
                                               std::size_t cuts) {
  std::vector<std::vector<std::string>> parts, rests;
  for (std::size_t k = 0; k < cuts; ++k) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * all.size() / cuts),
               end = all.begin() + static_cast<std::ptrdiff_t>((k + 1) * all.size() / cuts);
    parts.emplace_back(begin, end);
    rests.emplace_back(all.begin(), begin);
    rests.back().insert(rests.back().end(), end, all.end());
  }
  if (cuts > 2) parts.insert(parts.end(), rests.begin(), rests.end());  // of halves the same
  return parts;
}

}  // namespace

std::vector<std::string> smallest_set(std::vector<std::string> names, const Holds& holds) {
  std::size_t cuts = 2;
  while (names.size() > 1) {
    const std::vector<std::vector<std::string>> parts = parts_of(names, cuts);
    const auto found = std::ranges::find_if(parts, holds);
    if (found != parts.end()) {
      names = *found;
      cuts = std::min<std::size_t>(2, names.size());
    } else if (cuts < names.size()) {
      cuts = std::min(2 * cuts, names.size());
    } else {
      break;
    }
  }
  return names;
}

Bisection bisect(const Inspected& inspected, double tolerance) {
  if (!(tolerance >= 0))
    throw TypeError(fmt::format("--tolerance must be 0 or more, got {}", tolerance));
  Bisection found;
  found.rules = rules_that_fired(inspected);
  Comparison comparison(inspected, found.rules);
  found.differences = comparison.with(found.rules);
  const auto differs = [&](const std::vector<Difference>& differences) {
    return !differences.empty() && differences[0].relative > tolerance;
  };
  const Holds holds = [&](const std::vector<std::string>& on) {
    return differs(comparison.with(on));
  };
  std::vector<std::string> left = found.rules;
  bool is_wrong = !left.empty() && differs(found.differences);
  while (is_wrong) {
    found.causes.push_back(smallest_set(left, holds));
    std::erase_if(left, [&](const std::string& rule) {
      return std::ranges::find(found.causes.back(), rule) != found.causes.back().end();
    });
    is_wrong = !left.empty() && holds(left);
  }
  found.runs = comparison.runs();
  return found;
}

std::string bisection_text(const Bisection& found, double tolerance) {
  constexpr std::size_t kMost = 8;
  if (found.rules.empty()) return "no rule fits: nothing can differ\n";
  const Difference none{"anything", 0};
  const Difference& worst = found.differences.empty() ? none : found.differences[0];
  if (found.causes.empty())
    return fmt::format(
        "nothing differs by more than {}: with {} the largest difference from the graph as it was "
        "given is {:.3g} ({})\n",
        tolerance, counted(found.rules.size(), "rule"), worst.relative, worst.name);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t k = 0; k < std::min(kMost, found.differences.size()); ++k)
    if (found.differences[k].relative > tolerance)
      rows.push_back(
          {found.differences[k].name, fmt::format("{:.3g}", found.differences[k].relative)});
  std::string text = table_text({{"differs from the graph as it was given"}, {"by", true}}, rows);
  for (const std::vector<std::string>& cause : found.causes)
    text += fmt::format("\nmade by {}: {}\n",
                        cause.size() == 1 ? "this rule alone" : "these rules together",
                        fmt::join(cause, ", "));
  return text + fmt::format("\n{} compiled and run; {} fire\n",
                            counted(static_cast<std::size_t>(found.runs), "step"),
                            counted(found.rules.size(), "rule"));
}

std::string bisection_json(const Bisection& found, double tolerance) {
  using Json = nlohmann::ordered_json;
  Json document{{"tolerance", tolerance},
                {"rules", found.rules},
                {"causes", found.causes},
                {"runs", found.runs},
                {"differences", Json::array()}};
  for (const Difference& one : found.differences)
    if (one.relative > 0)
      document["differences"].push_back(
          {{"name", one.name},
           {"relative", std::isfinite(one.relative) ? Json(one.relative) : Json("infinite")}});
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pantala::tools
