#include "plan/compiled_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pantala/error.h"
#include "plan/report.h"
#include "plan/step_names.h"

namespace pantala {

using plan::CompiledLeaf;
using plan::CompiledStep;

const std::vector<std::string>& guard_names() {
  static const std::vector<std::string> names = {"none", "loss", "gradients", "watched"};
  return names;
}
const std::string& guard_name(NonFiniteGuard guard) {
  return guard_names()[static_cast<std::size_t>(guard)];
}

const CompiledStep& CompiledPlan::Data::step(std::string_view role) const {
  const auto found = std::ranges::find(steps, role, &CompiledStep::role);
  if (found != steps.end()) return *found;
  std::vector<std::string> roles;
  for (const CompiledStep& each : steps) roles.push_back(each.role);
  throw TypeError(
      fmt::format("the plan has no step '{}'; it has {}", role, fmt::join(roles, ", ")));
}

namespace {
std::vector<std::string> names_of(const CompiledPlan::Data& data, LeafKind kind) {
  std::vector<std::string> names;
  for (const CompiledLeaf& leaf : data.leaves)
    if (leaf.kind == kind) names.push_back(leaf.name);
  return names;
}
}  // namespace

std::int64_t CompiledPlan::launches() const {
  std::int64_t count = 0;
  for (const CompiledStep& step : data_->steps) count += std::ssize(step.plan.launches);
  return count;
}

std::int64_t CompiledPlan::buffers() const {
  std::int64_t count = 0;
  for (const CompiledStep& step : data_->steps) count += std::ssize(step.plan.buffers);
  return count;
}

std::vector<std::string> CompiledPlan::inputs() const {
  if (!data_->chosen_outputs) return names_of(*data_, LeafKind::input);
  std::vector<std::string> names;
  for (const CompiledLeaf& leaf : data_->leaves)
    if (leaf.kind == LeafKind::input && leaf.is_needed()) names.push_back(leaf.name);
  return names;
}
std::vector<std::string> CompiledPlan::parameters() const {
  return names_of(*data_, LeafKind::parameter);
}
std::vector<std::string> CompiledPlan::states() const { return names_of(*data_, LeafKind::state); }

std::vector<std::string> CompiledPlan::outputs() const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const bool guard = name == plan::kFiniteOutput && data_->non_finite != NonFiniteGuard::none;
    if (!guard && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const CompiledStep& step : data_->steps) {
    for (const plan::Port& port : step.plan.outputs) add(port.name);
    for (const std::string& name : step.host.output_names()) add(name);
  }
  return names;
}

std::vector<CompiledPlan::ParameterGradient> CompiledPlan::parameter_gradients() const {
  std::vector<ParameterGradient> pairs;
  for (const CompiledStep& step : data_->steps)
    pairs.insert(pairs.end(), step.gradients.begin(), step.gradients.end());
  return pairs;
}

bool CompiledPlan::has_loss() const { return data_->has_loss; }

std::int64_t CompiledPlan::peak_bytes() const {
  return plan::combined_report(data_->steps).peak_bytes;
}

}  // namespace pantala

namespace pantala::plan {

void gather_leaves(CompiledPlan::Data& data) {
  data.leaves.clear();
  for (const CompiledStep& step : data.steps)
    for (const CompiledLeaf& leaf : step.leaves) {
      const auto known = std::ranges::find(data.leaves, leaf.name, &CompiledLeaf::name);
      if (known == data.leaves.end()) {
        data.leaves.push_back(leaf);
        continue;
      }
      if (known->kind != leaf.kind || known->type != leaf.type)
        throw InternalError(fmt::format("leaf '{}' is {} in one step and {} in another", leaf.name,
                                        known->type.str(), leaf.type.str()));
      known->on_host = known->on_host && leaf.on_host;
      known->updated = known->updated || leaf.updated;
      known->feeds_updates = known->feeds_updates || leaf.feeds_updates;
      for (const std::string& output : leaf.needed_by)
        if (std::ranges::find(known->needed_by, output) == known->needed_by.end())
          known->needed_by.push_back(output);
    }
}

void add_rules(Report& total, const std::vector<Report::Rule>& rules) {
  for (const Report::Rule& rule : rules) {
    const auto known = std::ranges::find(total.rules, rule.name, &Report::Rule::name);
    if (known == total.rules.end()) {
      total.rules.push_back(rule);
      continue;
    }
    known->matches += rule.matches;
    known->count += rule.count;
    known->reached += rule.reached;
    known->milliseconds += rule.milliseconds;
  }
}

namespace {

void add_search(Report& total, const Report& report) {
  add_rules(total, report.rules);
  const auto add = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(total.candidates, report.candidates);
  add(total.recomputed, report.recomputed);
  add(total.stored, report.stored);
  add(total.by_planes, report.by_planes);
  total.egraph_nodes += report.egraph_nodes;
  total.egraph_classes += report.egraph_classes;
  total.egraph_rounds = std::max(total.egraph_rounds, report.egraph_rounds);
  // Of several steps the one that says more than that all was found.
  if (total.stop_reason.empty() || total.stop_reason == "saturated")
    total.stop_reason = report.stop_reason;
}

}  // namespace

std::string cost_table_title(std::string_view text) {
  constexpr std::string_view kName = "name = ";
  constexpr std::size_t kDigits = 16;
  const std::string_view line = text.substr(0, text.find('\n'));
  return fmt::format("{} {}", line.starts_with(kName) ? line.substr(kName.size()) : "?",
                     hex(sha256(text)).substr(0, kDigits));
}

Report combined_report(const std::vector<CompiledStep>& steps) {
  Report total;
  for (const CompiledStep& step : steps) {
    const Report& report = step.report;
    for (const Report::Stage& stage : report.stages)
      add_stage(total, stage.name, stage.milliseconds);
    total.nodes_before += report.nodes_before;
    total.nodes_after += report.nodes_after;
    total.kernels_before += report.kernels_before;
    total.kernels_after += report.kernels_after;
    total.flops += report.flops;
    total.bytes += report.bytes;
    total.predicted_us += report.predicted_us;
    total.cost_table = report.cost_table;
    total.peak_bytes = std::max(total.peak_bytes, report.peak_bytes);
    total.kernels.insert(total.kernels.end(), report.kernels.begin(), report.kernels.end());
    total.launches.insert(total.launches.end(), report.launches.begin(), report.launches.end());
    total.units.insert(total.units.end(), report.units.begin(), report.units.end());
    add_search(total, report);
  }
  return total;
}

}  // namespace pantala::plan
