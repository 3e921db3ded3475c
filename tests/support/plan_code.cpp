#include "support/plan_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::plan {

std::vector<UnitTime> compile_units(Plan& plan, const codegen::HostTarget& target, int threads) {
  std::vector<kir::Kernel> kernels;
  for (const Unit& unit : plan.units) {
    if (!unit.kernel)
      throw DeviceError(
          fmt::format("plan '{}': unit '{}' has no kernel to compile", plan.name, unit.entry));
    kernels.push_back(*unit.kernel);
  }
  codegen::CompiledKernels compiled = codegen::compile_all(kernels, target, threads);
  // A compiled unit has the name of the first kernel with its code: launches of the others go over
  // to that unit.
  std::vector<std::uint32_t> moved(plan.units.size());
  for (std::size_t k = 0; k < plan.units.size(); ++k)
    moved[k] = static_cast<std::uint32_t>(
        std::ranges::find(plan.units, compiled.units[compiled.unit_of[k]].name, &Unit::entry) -
        plan.units.begin());
  for (Launch& launch : plan.launches) launch.unit = moved[launch.unit];
  std::vector<std::uint32_t> kept(plan.units.size());
  std::vector<Unit> units;
  std::vector<UnitTime> times;
  for (std::size_t k = 0; k < plan.units.size(); ++k) {
    if (moved[k] != k) continue;
    kept[k] = static_cast<std::uint32_t>(units.size());
    units.push_back(std::move(plan.units[k]));
    codegen::CompiledUnit& unit = compiled.units[compiled.unit_of[k]];
    units.back().object = std::move(unit.object);
    times.push_back({unit.name, unit.milliseconds});
  }
  for (Launch& launch : plan.launches) launch.unit = kept[launch.unit];
  plan.units = std::move(units);
  plan.target = codegen::target_name(target);
  return times;
}

}  // namespace pantala::plan
