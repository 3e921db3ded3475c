#include "runtime/qualification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/user_folder.h"
#include "compiler/build_id.h"
#include "device/describe.h"
#include "device/device.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/session.h"
#include "plan/compiled_plan.h"
#include "runtime/qualification_steps.h"

namespace pantala::runtime {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr double kTolerance = 2e-4;  // of the largest number of a tensor
constexpr int kRuns = 2;

// What a step leaves: the loss, what it gives, and all parameters.
struct Left {
  std::vector<std::pair<std::string, Literal>> values;
};

// "contract_2" is one of several that are called contract.
std::string kind_of(std::string_view kernel) {
  const std::size_t end = kernel.find_last_not_of("0123456789");
  const bool numbered = end != kernel.npos && end + 1 < kernel.size() && kernel[end] == '_';
  return std::string(numbered ? kernel.substr(0, end) : kernel);
}

CompileResult compile(const QualificationGraph& step, const std::string& device) {
  return compile_training_graph(step.graph, step.loss,
                                {.device = device, .threads = 1, .optimizer = step.optimizer});
}

std::vector<std::string> kinds_of(const CompileResult& compiled) {
  std::set<std::string> kinds;
  for (const plan::CompiledStep& step : compiled.plan.data()->steps)
    for (const plan::Unit& unit : step.plan.units) kinds.insert(kind_of(unit.entry));
  return {kinds.begin(), kinds.end()};
}

Left run_step(const QualificationGraph& step, const CompileResult& compiled) {
  Session session(compiled);
  for (int run = 0; run < kRuns; ++run) session.step();
  Left left;
  left.values.emplace_back("loss", Literal::scalar(session.loss()));
  left.values.emplace_back("value", session.output("value"));
  for (const Leaf& leaf : step.graph.leaves(LeafKind::parameter))
    left.values.emplace_back(leaf.name, session.parameter(leaf.name));
  return left;
}

std::string difference(const Left& right, const Left& got) {
  for (std::size_t k = 0; k < right.values.size(); ++k) {
    const auto& [name, expected] = right.values[k];
    double scale = 1;
    for (std::int64_t i = 0; i < expected.numel(); ++i)
      scale = std::max(scale, std::fabs(expected.at(i)));
    for (std::int64_t i = 0; i < expected.numel(); ++i)
      if (!(std::fabs(got.values[k].second.at(i) - expected.at(i)) <= kTolerance * scale))
        return fmt::format("{}[{}] is {}, the CPU says {}", name, i, got.values[k].second.at(i),
                           expected.at(i));
  }
  return "";
}

QualifiedStep qualify_step(const QualificationStep& step, const std::string& device) {
  QualifiedStep result{.name = step.name, .wrong = {}, .kernels = {}};
  try {
    const QualificationGraph graph = step.make();
    const Left right = run_step(graph, compile(graph, "cpu"));
    const CompileResult compiled = compile(graph, device);
    result.kernels = kinds_of(compiled);
    result.wrong = difference(right, run_step(graph, compiled));
  } catch (const DeviceError& error) {
    result.wrong = error.what();
    result.failed = true;
  } catch (const UnsupportedError& error) {
    result.lacks = error.what();
  } catch (const Error& error) { result.wrong = error.what(); }
  return result;
}

std::string identity_of(const std::string& device) {
  std::string text(compiler::build_id());
  for (const device::Fact& fact : device::describe(device).facts)
    if (const auto* value = std::get_if<std::string>(&fact.value)) text += '\n' + *value;
  return text;
}

fs::path file_of(const std::string& identity) {
  const fs::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / fmt::format("device-{:016x}.json", fnv1a(identity));
}

bool read(const fs::path& file, Qualification& found) {
  if (file.empty() || !fs::exists(file)) return false;
  try {
    const Json json = Json::parse(io::read_file(file.string(), 1 << 20));
    if (json.at("identity") != found.identity) return false;
    found.arithmetic = {.divides = json.at("divides"),
                        .takes_roots = json.at("takes_roots"),
                        .fuses = json.at("fuses"),
                        .finishes_loops = json.at("finishes_loops")};
    for (const Json& step : json.at("steps"))
      found.steps.push_back({.name = step.at("name"),
                             .wrong = step.at("wrong"),
                             .kernels = step.at("kernels"),
                             .lacks = step.at("lacks")});
    found.remembered = true;
    return true;
  } catch (const std::exception&) {
    found.steps.clear();  // damaged: it is made again
    return false;
  }
}

void write(const fs::path& file, const Qualification& made) {
  if (file.empty()) return;
  Json steps = Json::array();
  for (const QualifiedStep& step : made.steps)
    steps.push_back({{"name", step.name},
                     {"wrong", step.wrong},
                     {"kernels", step.kernels},
                     {"lacks", step.lacks}});
  try {
    const Json all{{"identity", made.identity},
                   {"divides", made.arithmetic.divides},
                   {"takes_roots", made.arithmetic.takes_roots},
                   {"fuses", made.arithmetic.fuses},
                   {"finishes_loops", made.arithmetic.finishes_loops},
                   {"steps", steps}};
    io::write_file(file, all.dump(2) + "\n");
  } catch (const Error& error) {
    logging::warning("{}: the qualification of the device is not kept", error.what());
  }
}

// Set while the steps run: their sessions ask for nothing.
thread_local bool qualifying = false;

Qualification make(const std::string& device) {
  Qualification made{.identity = identity_of(device), .steps = {}};
  const fs::path file = file_of(made.identity);
  if (read(file, made)) {
    device::vulkan::note_arithmetic_of(device, made.arithmetic);
    return made;
  }
  logging::info("{} is used for the first time: it is compared with the CPU", device);
  made = qualify(device);
  if (std::ranges::none_of(made.steps, &QualifiedStep::failed)) write(file, made);
  return made;
}

// Kinds of kernels and in how many right steps they are.
std::map<std::string, int> right_kinds(const std::vector<QualifiedStep>& steps) {
  std::map<std::string, int> kinds;
  for (const QualifiedStep& step : steps)
    for (const std::string& kind : step.kernels)
      kinds[kind] += step.wrong.empty() && step.lacks.empty() ? 1 : 0;
  return kinds;
}

// What may be the reason that a step is wrong.
std::vector<std::string> suspects_of(const QualifiedStep& step,
                                     const std::map<std::string, int>& right) {
  int least = std::numeric_limits<int>::max();
  for (const std::string& kind : step.kernels) least = std::min(least, right.at(kind));
  std::vector<std::string> suspects;
  std::ranges::copy_if(step.kernels, std::back_inserter(suspects),
                       [&](const std::string& kind) { return right.at(kind) == least; });
  return suspects;
}

}  // namespace

Qualification qualify(const std::string& device) {
  Qualification made{.identity = identity_of(device), .steps = {}};
  const bool before = std::exchange(qualifying, true);
  try {
    made.arithmetic = device::vulkan::test_arithmetic(*device::make_device(device));
    device::vulkan::note_arithmetic_of(device, made.arithmetic);
    for (const QualificationStep& step : qualification_steps())
      made.steps.push_back(qualify_step(step, device));
  } catch (...) {
    qualifying = before;
    throw;
  }
  qualifying = before;
  return made;
}

bool Qualification::is_right() const {
  return std::ranges::all_of(steps, [](const auto& step) { return step.wrong.empty(); });
}

std::vector<std::string> Qualification::refused() const {
  const std::map<std::string, int> right = right_kinds(steps);
  std::set<std::string> refused;
  std::vector<std::vector<std::string>> unexplained;  // of wrong steps, what may be the reason
  for (const QualifiedStep& step : steps)
    if (!step.wrong.empty()) unexplained.push_back(suspects_of(step, right));
  for (;;) {
    std::map<std::string, int> occurs;
    int most = 0;
    for (const auto& suspects : unexplained)
      for (const std::string& kernel : suspects) most = std::max(most, ++occurs[kernel]);
    if (most == 0) return {refused.begin(), refused.end()};
    for (const auto& [kernel, times] : occurs)
      if (times == most) refused.insert(kernel);
    std::erase_if(unexplained, [&](const auto& suspects) {
      return std::ranges::any_of(suspects,
                                 [&](const auto& kernel) { return refused.contains(kernel); });
    });
  }
}

namespace {

// What is said of a device whose steps are all right.
std::string text_of_right(const Qualification& made) {
  const std::vector<std::string> inexact = made.arithmetic.inexact();
  std::vector<std::string> lacking;
  for (const QualifiedStep& step : made.steps)
    if (!step.lacks.empty()) lacking.push_back(fmt::format("{} ({})", step.name, step.lacks));
  std::string text = counted(made.steps.size() - lacking.size(), "step") + " agree with the CPU";
  if (!inexact.empty())
    text += fmt::format(
        ", with {} in more instructions, since the device does not round them correctly",
        fmt::join(inexact, " and "));
  if (!made.arithmetic.finishes_loops)
    text += "; its driver ends long loops early, which kernels look out for";
  if (!lacking.empty())
    text += fmt::format("; it has not what others need: {}", fmt::join(lacking, "; "));
  return text;
}

}  // namespace

std::string Qualification::text() const {
  std::vector<std::string> wrong;
  for (const QualifiedStep& step : steps)
    if (!step.wrong.empty()) wrong.push_back(fmt::format("{}: {}", step.name, step.wrong));
  if (wrong.empty()) return text_of_right(*this);
  const std::vector<std::string> kinds = refused();
  return fmt::format("{} of {} steps are wrong ({}); refused kernels: {}", wrong.size(),
                     steps.size(), fmt::join(wrong, "; "),
                     kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, ", ")));
}

Qualification qualification_of(const std::string& device) {
  if (!device::has_driver(device) || qualifying) return {};
  static std::mutex mutex;
  static std::map<std::string, Qualification> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  Qualification made = make(device);
  if (!made.is_right()) logging::warning("{}: {}", device, made.text());
  return known.emplace(device, std::move(made)).first->second;
}

std::optional<Qualification> remembered_qualification(const std::string& device) {
  Qualification found{.identity = identity_of(device), .steps = {}};
  if (!device::has_driver(device) || !read(file_of(found.identity), found)) return std::nullopt;
  return found;
}

void check_qualified(const std::string& device, const plan::Plan& plan) {
  const std::vector<std::string> refused = qualification_of(device).refused();
  for (const plan::Unit& unit : plan.units)
    if (std::ranges::find(refused, kind_of(unit.entry)) != refused.end())
      throw UnsupportedError(
          fmt::format("{}: kernels of the kind '{}' compute something else than the CPU on this "
                      "device and driver, or fail there; `pantala doctor` says more",
                      device, kind_of(unit.entry)));
}

}  // namespace pantala::runtime
