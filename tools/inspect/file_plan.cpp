// Compiled plans (CompiledPlan::save(), the plan cache): what they were made for, what goes in and
// out, and the sizes of code and memory.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/file.h"
#include "plan/plan_file.h"
#include "runtime/store.h"
#include "tools/inspect/file_kinds.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;
using plan::CompiledStep;

struct Leaf {
  std::string kind, name, type;
  std::int64_t bytes = 0;
};

// What goes into a step, and what comes out of it.
std::vector<Leaf> ports(const CompiledStep& step) {
  std::vector<Leaf> list;
  const auto add = [&](std::string_view kind, const std::string& name, const Type& type) {
    list.push_back(
        {std::string(kind), name, type.str(), type.shape.numel() * dtype_bytes(type.dtype)});
  };
  for (const plan::CompiledLeaf& leaf : step.leaves)
    add(runtime::kind_name(leaf.kind), leaf.name, leaf.type);
  for (const plan::Port& port : step.plan.outputs)
    add("output", port.name, {step.plan.buffers[port.buffer].dtype, port.shape});
  return list;
}

struct Kernel {
  std::string name;
  std::int64_t launches = 0;
  std::size_t code_bytes = 0;
};
std::vector<Kernel> kernels(const plan::Plan& plan) {
  std::vector<Kernel> list;
  for (const plan::Unit& unit : plan.units) list.push_back({unit.entry, 0, unit.object.size()});
  for (const plan::Launch& launch : plan.launches) ++list[launch.unit].launches;
  return list;
}

std::vector<std::pair<std::string_view, std::int64_t>> sizes(const CompiledStep& step) {
  return {{"parameters and states", plan::bytes_in_store(step.leaves)},
          {"temporaries", step.plan.arena_bytes},
          {"constants", static_cast<std::int64_t>(step.plan.constants.size())},
          {"scratch of a thread", step.plan.scratch_bytes}};
}

std::string step_text(const CompiledStep& step) {
  std::vector<std::vector<std::string>> leaves, code;
  for (const Leaf& leaf : ports(step))
    leaves.push_back({leaf.kind, leaf.name, leaf.type, std::to_string(leaf.bytes)});
  for (const Kernel& kernel : kernels(step.plan))
    code.push_back(
        {kernel.name, std::to_string(kernel.launches), std::to_string(kernel.code_bytes)});
  std::string text = fmt::format("\n== {}: {}, {}, {}\n", step.role,
                                 step.plan.target.empty() ? "no machine code" : step.plan.target,
                                 counted(step.plan.units.size(), "kernel"),
                                 fmt::format("{} launches", step.plan.launches.size()));
  for (const auto& [name, bytes] : sizes(step))
    text += fmt::format("{}: {}\n", name, size_text(static_cast<std::uint64_t>(bytes)));
  text += table_text({{"kind"}, {"name"}, {"type"}, {.title = "bytes", .is_number = true}}, leaves);
  return text + table_text({{"kernel"},
                            {.title = "launches", .is_number = true},
                            {.title = "code bytes", .is_number = true}},
                           code);
}

std::string as_text(const CompiledPlan::Data& data, const std::string& path, std::size_t bytes) {
  std::string text =
      fmt::format("{}: plan, {}\ndevice {}, {}, {}, {}\n", path, size_text(bytes), data.device,
                  counted(static_cast<std::size_t>(data.threads), "thread"),
                  data.optimizer ? "optimizer " + data.optimizer->str() : "no optimizer",
                  data.has_loss ? "with a loss" : "without a loss");
  for (const CompiledStep& step : data.steps) text += step_text(step);
  return text;
}

std::string as_json(const CompiledPlan::Data& data, const std::string& path, std::size_t bytes) {
  Json steps = Json::object();
  for (const CompiledStep& step : data.steps) {
    Json leaves = Json::array(), code = Json::array(), memory = Json::object();
    for (const Leaf& leaf : ports(step))
      leaves.push_back(
          {{"kind", leaf.kind}, {"name", leaf.name}, {"type", leaf.type}, {"bytes", leaf.bytes}});
    for (const Kernel& kernel : kernels(step.plan))
      code.push_back({{"name", kernel.name},
                      {"launches", kernel.launches},
                      {"code_bytes", kernel.code_bytes}});
    for (const auto& [name, count] : sizes(step)) memory[std::string(name)] = count;
    steps[step.role] = {{"target", step.plan.target},
                        {"leaves", leaves},
                        {"kernels", code},
                        {"launches", step.plan.launches.size()},
                        {"memory", memory}};
  }
  const Json document = {
      {"kind", "plan"},
      {"path", path},
      {"bytes", bytes},
      {"device", data.device},
      {"threads", data.threads},
      {"optimizer", data.optimizer ? Json(data.optimizer->str()) : Json(nullptr)},
      {"has_loss", data.has_loss},
      {"steps", steps}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool recognises(const std::filesystem::path&, std::string_view first_bytes) {
  return first_bytes.starts_with(plan::kPlanFileMagic);
}

std::string show(const std::filesystem::path& path, bool json) {
  const std::string bytes = io::read_file(path, plan::kMaxPlanFileBytes);
  const auto data = plan::decode_plan(bytes, path.string());
  return json ? as_json(*data, path.string(), bytes.size())
              : as_text(*data, path.string(), bytes.size());
}

}  // namespace

FileKind plan_file_kind() { return {.name = "plan", .recognises = recognises, .show = show}; }

}  // namespace pantala::tools
