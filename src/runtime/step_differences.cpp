#include "runtime/step_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pantala::runtime {

using plan::CompiledLeaf;
using plan::CompiledStep;

namespace {

std::string_view kind_name(LeafKind kind) {
  constexpr std::string_view kNames[] = {"input", "parameter", "state", "scalar"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string roles(const CompiledPlan::Data& data) {
  std::vector<std::string> names;
  for (const CompiledStep& step : data.steps) names.push_back(step.role);
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string optimizer_text(const CompiledPlan::Data& data) {
  return data.optimizer ? data.optimizer->str() : "none";
}

bool same_optimizer(const CompiledPlan::Data& a, const CompiledPlan::Data& b) {
  if (!a.optimizer || !b.optimizer) return a.optimizer.has_value() == b.optimizer.has_value();
  return a.optimizer->same_graph(*b.optimizer);
}

std::vector<std::string> output_names(const CompiledStep& step) {
  std::vector<std::string> names = step.host.output_names();
  for (const plan::Port& port : step.plan.outputs) names.push_back(port.name);
  return names;
}

class Comparison {
 public:
  Comparison(const CompiledPlan::Data& main, const CompiledPlan::Data& plan)
      : main_(main), plan_(plan) {}

  std::vector<std::string> run() {
    compare("it is compiled for", main_.device, plan_.device);
    compare("its steps are", roles(main_), roles(plan_));
    compare("non_finite is", guard_name(main_.non_finite), guard_name(plan_.non_finite));
    compare("accumulation_steps is", main_.accumulation_steps, plan_.accumulation_steps);
    compare("normalize is", main_.normalize, plan_.normalize);
    if (!same_optimizer(main_, plan_))
      compare("the optimizer is", optimizer_text(main_), optimizer_text(plan_));
    compare("the parameter groups are", fmt::format("[{}]", fmt::join(main_.group_patterns, ", ")),
            fmt::format("[{}]", fmt::join(plan_.group_patterns, ", ")));
    compare_leaves();
    compare_outputs();
    return std::move(differences_);
  }

 private:
  template <class T>
  void compare(std::string_view what, const T& main, const T& plan) {
    if (main != plan)
      differences_.push_back(fmt::format("{} {}, the session's {}", what, plan, main));
  }

  void compare_leaves() {
    for (const CompiledLeaf& leaf : main_.leaves) {
      const auto found = std::ranges::find(plan_.leaves, leaf.name, &CompiledLeaf::name);
      if (found == plan_.leaves.end())
        differences_.push_back(fmt::format("it has no {} '{}'", kind_name(leaf.kind), leaf.name));
      else
        compare_leaf(leaf, *found);
    }
    for (const CompiledLeaf& leaf : plan_.leaves)
      if (std::ranges::find(main_.leaves, leaf.name, &CompiledLeaf::name) == main_.leaves.end())
        differences_.push_back(
            fmt::format("its {} '{}' is not in the session", kind_name(leaf.kind), leaf.name));
  }

  void compare_leaf(const CompiledLeaf& main, const CompiledLeaf& plan) {
    const std::string name = fmt::format("'{}' is", main.name);
    compare(name + " a", kind_name(main.kind), kind_name(plan.kind));
    // The shape of an input is what may differ.
    const bool is_same =
        main.kind == LeafKind::input
            ? main.type.dtype == plan.type.dtype && main.type.shape.rank() == plan.type.shape.rank()
            : main.type == plan.type;
    if (!is_same) compare(name, main.type.str(), plan.type.str());
    if (main.updated != plan.updated)
      differences_.push_back(fmt::format("'{}' is {}updated by it, unlike by the session",
                                         main.name, plan.updated ? "" : "not "));
  }

  void compare_outputs() {
    const std::vector<std::string> main = output_names(main_.steps.front());
    const std::vector<std::string> plan = output_names(plan_.steps.front());
    const auto missing = [&](const std::vector<std::string>& from, const std::string& name) {
      return std::ranges::find(from, name) == from.end();
    };
    for (const std::string& name : main)
      if (missing(plan, name)) differences_.push_back(fmt::format("it has no output '{}'", name));
    for (const std::string& name : plan)
      if (missing(main, name))
        differences_.push_back(fmt::format("the session has no output '{}'", name));
  }

  const CompiledPlan::Data& main_;
  const CompiledPlan::Data& plan_;
  std::vector<std::string> differences_;
};

}  // namespace

std::vector<std::string> step_differences(const CompiledPlan::Data& main,
                                          const CompiledPlan::Data& plan) {
  return Comparison(main, plan).run();
}

}  // namespace pantala::runtime
