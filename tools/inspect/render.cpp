#include "tools/inspect/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "codegen/llvm/llvm.h"
#include "codegen/spirv/spirv.h"
#include "device/vulkan/facts.h"
#include "kir/text.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;
using plan::CompiledStep;

std::string_view access_text(kir::Access access) {
  return access == kir::Access::read    ? "reads"
         : access == kir::Access::write ? "writes"
                                        : "updates";
}

std::string buffer_text(const plan::Buffer& buffer) {
  return fmt::format("{} '{}' {}[{}]", plan::storage_name(buffer.storage), buffer.name,
                     dtype_name(buffer.dtype), buffer.elements);
}

// Headings only where there is more than one step.
std::string heading(const std::vector<CompiledStep>& steps, const CompiledStep& step) {
  return steps.size() == 1 ? "" : fmt::format("== {}\n", step.role);
}

// The launches that touch a buffer first and last, if any does.
struct Lifetime {
  std::size_t first = 0, last = 0;
};
std::vector<std::optional<Lifetime>> lifetimes(const plan::Plan& plan) {
  std::vector<std::optional<Lifetime>> lives(plan.buffers.size());
  for (std::size_t k = 0; k < plan.launches.size(); ++k)
    for (const plan::ArgumentSet& set : plan.launches[k].sets)
      for (const std::uint32_t buffer : set.buffers) {
        if (!lives[buffer]) lives[buffer] = Lifetime{.first = k};
        lives[buffer]->last = k;
      }
  return lives;
}

// The arena's buffers by place.
std::vector<std::size_t> arena_buffers(const plan::Plan& plan) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < plan.buffers.size(); ++k)
    if (plan.buffers[k].storage == plan::Storage::arena) order.push_back(k);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(plan.buffers[a].offset, a) < std::pair(plan.buffers[b].offset, b);
  });
  return order;
}

}  // namespace

std::string schedule_text(const std::vector<CompiledStep>& steps) {
  std::string text;
  for (const CompiledStep& step : steps) {
    text += heading(steps, step);
    for (std::size_t k = 0; k < step.plan.launches.size(); ++k) {
      const plan::Launch& launch = step.plan.launches[k];
      const plan::Unit& unit = step.plan.units[launch.unit];
      text += fmt::format(
          "{} {}: kernel {}, {}, {}{}{}\n", k, launch.name, unit.entry,
          counted(static_cast<std::size_t>(launch.items()), "item"),
          counted(launch.sets.size(), "argument set"), launch.serial ? ", serial" : "",
          launch.after.empty() ? "" : fmt::format(", after {}", fmt::join(launch.after, ", ")));
      const Report::Launch& described = step.report.launches.at(k);
      text += fmt::format("    {}{}; {:.0f} flop, reads {:.0f} bytes, writes {:.0f}\n",
                          described.layers.empty() ? "" : described.layers + ": ", described.ops,
                          described.flops, described.read_bytes, described.written_bytes);
      if (launch.sets.empty()) continue;
      for (std::size_t b = 0; b < launch.sets[0].buffers.size(); ++b)
        text += fmt::format("    {} {}\n", access_text(unit.signature.buffers[b].access),
                            buffer_text(step.plan.buffers[launch.sets[0].buffers[b]]));
    }
  }
  return text;
}

std::string schedule_json(const std::vector<CompiledStep>& steps) {
  Json document = Json::object();
  for (const CompiledStep& step : steps) {
    Json launches = Json::array();
    for (std::size_t k = 0; k < step.plan.launches.size(); ++k) {
      const plan::Launch& launch = step.plan.launches[k];
      const Report::Launch& described = step.report.launches.at(k);
      Json sets = Json::array();
      for (const plan::ArgumentSet& set : launch.sets) {
        Json buffers = Json::array();
        for (const std::uint32_t b : set.buffers) buffers.push_back(step.plan.buffers[b].name);
        sets.push_back({{"items", set.items}, {"buffers", buffers}});
      }
      launches.push_back({{"name", launch.name},
                          {"kernel", step.plan.units[launch.unit].entry},
                          {"layers", described.layers},
                          {"ops", described.ops},
                          {"flops", described.flops},
                          {"read_bytes", described.read_bytes},
                          {"written_bytes", described.written_bytes},
                          {"items", launch.items()},
                          {"serial", launch.serial},
                          {"after", launch.after},
                          {"argument_sets", sets}});
    }
    document[step.role] = launches;
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string kernels_text(const std::vector<CompiledStep>& steps) {
  std::string text;
  for (const CompiledStep& step : steps) {
    text += heading(steps, step);
    std::size_t width = 6;
    for (const Report::Kernel& kernel : step.report.kernels)
      width = std::max(width, kernel.name.size());
    text +=
        fmt::format("{:<{}} {:>8} {:>14} {:>14}\n", "kernel", width, "launches", "flop", "bytes");
    for (const Report::Kernel& kernel : step.report.kernels)
      text += fmt::format("{:<{}} {:>8} {:>14.0f} {:>14.0f}\n", kernel.name, width, kernel.launches,
                          kernel.flops, kernel.bytes);
  }
  return text;
}

std::string kernels_json(const std::vector<CompiledStep>& steps) {
  Json document = Json::object();
  for (const CompiledStep& step : steps) {
    Json kernels = Json::array();
    for (const Report::Kernel& kernel : step.report.kernels)
      kernels.push_back({{"name", kernel.name},
                         {"launches", kernel.launches},
                         {"flops", kernel.flops},
                         {"bytes", kernel.bytes}});
    document[step.role] = kernels;
  }
  return document.dump(2) + "\n";
}

std::string memory_text(const std::vector<CompiledStep>& steps) {
  std::string text;
  for (const CompiledStep& step : steps) {
    const plan::Plan& plan = step.plan;
    text += heading(steps, step);
    for (const plan::Region& region : plan.regions)
      text += fmt::format("{:<8} {:>12} bytes  {}\n", plan::storage_name(region.storage),
                          region.bytes, region.name);
    const std::vector<std::optional<Lifetime>> lives = lifetimes(plan);
    for (const std::size_t k : arena_buffers(plan)) {
      const plan::Buffer& buffer = plan.buffers[k];
      const std::string launches =
          lives[k] ? fmt::format("launches {} to {}", lives[k]->first, lives[k]->last) : "unused";
      text += fmt::format("arena    {:>12} bytes  at {}, {}: {} {}[{}]\n", buffer.bytes(),
                          buffer.offset, launches, buffer.name, dtype_name(buffer.dtype),
                          buffer.elements);
    }
    text += fmt::format("constant {:>12} bytes\narena    {:>12} bytes in all\n",
                        plan.constants.size(), plan.arena_bytes);
    text += fmt::format("scratch  {:>12} bytes per thread\n", plan.scratch_bytes);
  }
  return text;
}

std::string memory_json(const std::vector<CompiledStep>& steps) {
  Json document = Json::object();
  for (const CompiledStep& step : steps) {
    const plan::Plan& plan = step.plan;
    Json regions = Json::array(), arena = Json::array();
    for (const plan::Region& region : plan.regions)
      regions.push_back({{"name", region.name},
                         {"storage", plan::storage_name(region.storage)},
                         {"bytes", region.bytes}});
    const std::vector<std::optional<Lifetime>> lives = lifetimes(plan);
    for (const std::size_t k : arena_buffers(plan))
      arena.push_back({{"name", plan.buffers[k].name},
                       {"dtype", dtype_name(plan.buffers[k].dtype)},
                       {"offset", plan.buffers[k].offset},
                       {"bytes", plan.buffers[k].bytes()},
                       {"first_launch", lives[k] ? Json(lives[k]->first) : Json()},
                       {"last_launch", lives[k] ? Json(lives[k]->last) : Json()}});
    document[step.role] = {{"regions", regions},
                           {"arena", arena},
                           {"arena_bytes", plan.arena_bytes},
                           {"scratch_bytes", plan.scratch_bytes},
                           {"constant_bytes", plan.constants.size()}};
  }
  return document.dump(2) + "\n";
}

namespace {

// As a device would get it that has all that there is, with the sizes of this plan.
std::string spirv_of(const plan::Plan& plan, const plan::Unit& unit) {
  const codegen::spirv::Target target{.storage8 = true,
                                      .storage16 = true,
                                      .float64 = true,
                                      .keeps_special = true,
                                      .rounds_to_even = true,
                                      .shared_bytes = 32 << 10,
                                      .max_invocations = 1024};
  const auto number = static_cast<std::size_t>(&unit - plan.units.data());
  const codegen::spirv::Code code =
      codegen::spirv::emit(*unit.kernel, target, device::vulkan::facts_of(plan)[number]);
  return codegen::spirv::disassembly(code.words);
}

}  // namespace

std::string kernel_code(const std::vector<CompiledStep>& steps, std::string_view name,
                        KernelForm form) {
  std::vector<std::string> names;
  for (const CompiledStep& step : steps)
    for (const plan::Unit& unit : step.plan.units) {
      names.push_back(unit.entry);
      if (unit.entry != name) continue;
      if (form == KernelForm::kir) return kir::print(*unit.kernel);
      if (form == KernelForm::spirv) return spirv_of(step.plan, unit);
      const codegen::HostTarget host = codegen::detect_host();
      return form == KernelForm::llvm ? codegen::llvm_ir(*unit.kernel, host)
                                      : codegen::assembly(*unit.kernel, host);
    }
  throw TypeError(fmt::format("there is no kernel '{}'{}; --kernels lists them", name,
                              did_you_mean(name, names)));
}

std::string roles_text(const std::vector<RoleText>& texts) {
  std::string all;
  for (const RoleText& each : texts) {
    if (texts.size() > 1) all += fmt::format("== {}\n", each.role);
    all += each.text;
  }
  return all;
}

std::string roles_json(const std::vector<RoleText>& texts) {
  Json document = Json::object();
  for (const RoleText& each : texts) document[each.role] = each.text;
  return document.dump(2) + "\n";
}

}  // namespace pantala::tools
