#include "support/compiled.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <map>

#include "compiler/pipeline.h"
#include "device/device.h"
#include "ir/bytes.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/init.h"
#include "rewrite/rules/rules.h"

namespace pantala::tests {

namespace {

device::Device& shared_device(const CompiledRun& how) {
  static std::map<std::pair<std::string, int>, std::unique_ptr<device::Device>> devices;
  auto& slot = devices[{how.device, how.threads}];
  if (!slot) slot = device::make_device(how.device, {.workers = how.threads, .sentinels = true});
  return *slot;
}

// Unloads the oldest plan when there are many.
void keep_loaded(device::Device& device, device::PlanId id) {
  constexpr std::size_t kMost = 100;
  static std::map<device::Device*, std::deque<device::PlanId>> loaded;
  std::deque<device::PlanId>& plans = loaded[&device];
  plans.push_back(id);
  if (plans.size() <= kMost) return;
  device.unload(plans.front());
  plans.pop_front();
}

Literal value_of(const plan::CompiledLeaf& leaf, const ref::Bindings& bindings) {
  if (const auto it = bindings.find(leaf.name); it != bindings.end()) return it->second;
  if (leaf.kind == LeafKind::input) throw TypeError("no value for input " + leaf.name);
  return init::make(leaf.init, leaf.type, leaf.name, 0);
}

ir::Number number_of(const Literal& value) {
  return value.is_float() ? ir::Number(value.f()[0]) : ir::Number::of(value.i()[0]);
}

// Memory of the plan's regions while it is run.
class Regions {
 public:
  Regions(device::Device& device, const plan::Plan& plan) : device_(device) {
    for (const plan::Region& region : plan.regions) {
      ids_.push_back(device.allocate(region.bytes));
      slices.push_back({ids_.back(), 0, region.bytes});
    }
    arena = {device.allocate(plan.arena_bytes), 0, plan.arena_bytes};
    ids_.push_back(arena.memory);
  }
  ~Regions() {
    for (const device::MemoryId id : ids_) device_.free(id);
  }
  std::vector<device::Slice> slices;
  device::Slice arena;

 private:
  device::Device& device_;
  std::vector<device::MemoryId> ids_;
};

}  // namespace

std::vector<std::string> winograd_rules() {
  std::vector<std::string> names;
  for (const rewrite::Rule& rule : rewrite::all_rules())
    if (rule.name.find("winograd") != std::string::npos) names.push_back(rule.name);
  return names;
}

plan::CompiledStep compile_graph(const Graph& graph, const CompiledRun& how) {
  compiler::Options options = compiler::host_options(how.device, how.threads, how.fuse, how.target);
  options.level = how.level;
  options.rules_off = how.rules_off;
  return compiler::compile_step({.graph = graph}, options);
}

std::vector<Literal> run_compiled(const Graph& graph, const ref::Bindings& bindings,
                                  const CompiledRun& how) {
  return run_compiled(graph, compile_graph(graph, how), bindings, how);
}

std::vector<Literal> run_compiled(const Graph& graph, const plan::CompiledStep& compiled,
                                  const ref::Bindings& bindings, const CompiledRun& how) {
  device::Device& device = shared_device(how);
  const plan::Plan& plan = compiled.plan;
  Regions regions(device, plan);
  std::map<std::string, Literal> values;
  for (const plan::CompiledLeaf& leaf : compiled.leaves)
    values.emplace(leaf.name, value_of(leaf, bindings));
  for (std::size_t k = 0; k < plan.regions.size(); ++k) {
    const plan::Storage storage = plan.regions[k].storage;
    if (storage == plan::Storage::output || storage == plan::Storage::prepared) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(plan.regions[k].bytes));
    ir::to_bytes(values.at(plan.regions[k].name), bytes);
    device.write(regions.slices[k], bytes);
  }
  std::vector<ir::Number> numbers;
  for (const auto& leaf : compiled.host.leaves())
    numbers.push_back(number_of(values.at(leaf.name)));
  std::vector<std::int64_t> slots(compiled.host.uniforms());
  plan::HostPart host_part = compiled.host;
  host_part.evaluate(numbers, slots);
  const device::PlanId id = device.load(plan);
  const auto run = [&](bool is_prepared) {
    device.run(id, {.arena = regions.arena,
                    .regions = regions.slices,
                    .uniforms = slots,
                    .is_prepared = is_prepared});
    return device.take_status();
  };
  std::int32_t status = run(false);
  // What is prepared is there now: a run that begins behind that leaves the same.
  if (status == 0 && plan.preparation > 0) status = run(true);
  keep_loaded(device, id);
  if (status != 0)
    for (const auto& message : compiled.messages)
      if (message.code == status) throw ValueError(message.text);
  const auto read = [&](plan::Storage storage, const std::string& name, const Type& type) {
    for (std::size_t k = 0; k < plan.regions.size(); ++k) {
      if (plan.regions[k].storage != storage || plan.regions[k].name != name) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(plan.regions[k].bytes));
      device.read(regions.slices[k], bytes);
      return ir::from_bytes(type, bytes);
    }
    throw InternalError("the plan has no memory for " + name);
  };
  std::vector<Literal> results;
  for (const auto& [name, tensor] : graph.outputs()) {
    const auto& host = host_part.output_names();
    const auto on_host = std::find(host.begin(), host.end(), name);
    if (on_host != host.end()) {
      const ir::Number n = host_part.output(static_cast<std::size_t>(on_host - host.begin()));
      results.push_back(n.integral ? Literal::integer(n.i, tensor.dtype())
                                   : Literal::scalar(n.f, tensor.dtype()));
      continue;
    }
    results.push_back(read(plan::Storage::output, name, tensor.type()));
  }
  for (const auto& [leaf, value] : graph.updates())
    results.push_back(
        read(plan::Storage::store, graph.data()->leaf_name(leaf.id().node), leaf.type()));
  return results;
}

std::vector<Tensor> results_of(const Graph& graph) {
  std::vector<Tensor> results;
  for (const auto& [name, value] : graph.outputs()) results.push_back(value);
  for (const auto& [leaf, value] : graph.updates()) results.push_back(value);
  return results;
}

Graph with_outputs(const Graph& graph, const std::vector<Tensor>& values) {
  std::vector<std::pair<std::string, Tensor>> outputs;
  for (std::size_t k = 0; k < values.size(); ++k)
    outputs.emplace_back(fmt::format("out{}", k), values[k]);
  return graph.with_outputs(outputs).without_updates();
}

std::string differing_bits(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  if (a.size() != b.size()) return fmt::format("{} and {} results", a.size(), b.size());
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::int64_t k = 0; k < a[r].numel(); ++k) {
      if (!a[r].is_float()) {
        const auto at = static_cast<std::size_t>(k);
        if (a[r].i()[at] == b[r].i()[at]) continue;
        return fmt::format("result {} element {}: {} and {}", r, k, a[r].i()[at], b[r].i()[at]);
      }
      const double x = a[r].at(k), y = b[r].at(k);
      const bool same =
          (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
      if (!same) return fmt::format("result {} element {}: {} and {}", r, k, x, y);
    }
  return "";
}

std::string differing(const std::vector<Literal>& expected, const std::vector<Literal>& got,
                      double tolerance) {
  if (expected.size() != got.size())
    return fmt::format("{} results, expected {}", got.size(), expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r) {
    double scale = 1;
    for (std::int64_t k = 0; k < expected[r].numel(); ++k)
      if (std::isfinite(expected[r].at(k))) scale = std::max(scale, std::fabs(expected[r].at(k)));
    for (std::int64_t k = 0; k < expected[r].numel(); ++k) {
      const double x = expected[r].at(k), y = got[r].at(k);
      const bool same = (std::isnan(x) && std::isnan(y)) || x == y ||
                        (expected[r].is_float() && std::fabs(x - y) <= tolerance * scale);
      if (!same) return fmt::format("result {} element {}: expected {}, got {}", r, k, x, y);
    }
  }
  return "";
}

}  // namespace pantala::tests
