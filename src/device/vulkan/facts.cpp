#include "device/vulkan/facts.h"

#include <algorithm>

#include "device/vulkan/arithmetic.h"

namespace pantala::device::vulkan {

codegen::spirv::Target code_target(const pantala::vulkan::DeviceInfo& info) {
  const Arithmetic arithmetic = known_arithmetic(info.identity);
  return {.storage8 = info.storage8,
          .storage16 = info.storage16,
          .float64 = info.float64,
          .keeps_subnormals = info.keeps_subnormals,
          .keeps_special = info.keeps_special,
          .rounds_to_even = info.rounds_to_even,
          .divides = arithmetic.divides,
          .takes_roots = arithmetic.takes_roots,
          .fuses = arithmetic.fuses,
          .finishes_loops = arithmetic.finishes_loops,
          .subgroup = info.shuffles ? info.subgroup : 0,
          .max_subgroups = info.sizes_subgroups ? info.max_subgroups : INT64_MAX,
          .shared_bytes = info.shared_bytes,
          .max_invocations = info.max_invocations};
}

namespace {

void add(codegen::spirv::Facts& facts, const plan::Plan& plan, const plan::ArgumentSet& set,
         bool first) {
  if (first)
    facts = {.params = std::vector<codegen::spirv::ParamFacts>(set.params.size()),
             .elements = std::vector<std::int64_t>(set.buffers.size()),
             .items = 0};
  facts.items = std::max(facts.items, set.items);
  for (std::size_t k = 0; k < set.buffers.size(); ++k)
    facts.elements[k] = std::max(facts.elements[k], plan.buffers[set.buffers[k]].elements);
  for (std::size_t k = 0; k < set.params.size(); ++k) {
    codegen::spirv::ParamFacts& param = facts.params[k];
    const plan::Scalar& scalar = set.params[k];
    param.uniform = param.uniform || scalar.is_uniform;
    param.low = first ? scalar.value : std::min(param.low, scalar.value);
    param.high = first ? scalar.value : std::max(param.high, scalar.value);
  }
}

}  // namespace

std::vector<codegen::spirv::Facts> facts_of(const plan::Plan& plan) {
  std::vector<codegen::spirv::Facts> facts(plan.units.size());
  std::vector<bool> seen(plan.units.size());
  for (const plan::Launch& launch : plan.launches)
    for (const plan::ArgumentSet& set : launch.sets) {
      add(facts[launch.unit], plan, set, !seen[launch.unit]);
      seen[launch.unit] = true;
    }
  return facts;
}

}  // namespace pantala::device::vulkan
