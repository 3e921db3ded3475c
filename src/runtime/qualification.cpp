#include "runtime/qualification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

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
  std::set<std::string> kernels;
};

// "contract_2" is one of several that are called contract.
std::string kind_of(std::string_view kernel) {
  const std::size_t end = kernel.find_last_not_of("0123456789");
  const bool numbered = end != kernel.npos && end + 1 < kernel.size() && kernel[end] == '_';
  return std::string(numbered ? kernel.substr(0, end) : kernel);
}

Left run_step(const QualificationGraph& step, const std::string& device) {
  const CompileOptions options{.device = device, .threads = 1, .optimizer = optim::sgd(0.25)};
  Session session(compile_training_graph(step.graph, step.loss, options));
  for (int run = 0; run < kRuns; ++run) session.step();
  Left left;
  left.values.emplace_back("loss", Literal::scalar(session.loss()));
  left.values.emplace_back("value", session.output("value"));
  for (const Leaf& leaf : step.graph.leaves(LeafKind::parameter))
    left.values.emplace_back(leaf.name, session.parameter(leaf.name));
  for (const KernelInfo& kernel : session.kernels()) left.kernels.insert(kind_of(kernel.unit));
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

QualifiedStep qualify(const QualificationStep& step, const std::string& device) {
  QualifiedStep result{.name = step.name, .wrong = {}, .kernels = {}};
  try {
    const QualificationGraph graph = step.make();
    const Left right = run_step(graph, "cpu"), got = run_step(graph, device);
    result.kernels.assign(got.kernels.begin(), got.kernels.end());
    result.wrong = difference(right, got);
  } catch (const DeviceError&) { throw; } catch (const Error& error) {
    result.wrong = error.what();
  }
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
                        .fuses = json.at("fuses")};
    for (const Json& step : json.at("steps"))
      found.steps.push_back({step.at("name"), step.at("wrong"), step.at("kernels")});
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
    steps.push_back({{"name", step.name}, {"wrong", step.wrong}, {"kernels", step.kernels}});
  try {
    const Json all{{"identity", made.identity},
                   {"divides", made.arithmetic.divides},
                   {"takes_roots", made.arithmetic.takes_roots},
                   {"fuses", made.arithmetic.fuses},
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
  qualifying = true;
  try {
    made.arithmetic = device::vulkan::test_arithmetic(*device::make_device(device));
    device::vulkan::note_arithmetic_of(device, made.arithmetic);
    for (const QualificationStep& step : qualification_steps())
      made.steps.push_back(qualify(step, device));
  } catch (...) {
    qualifying = false;
    throw;
  }
  qualifying = false;
  write(file, made);
  return made;
}

}  // namespace

std::vector<std::string> Qualification::refused() const {
  std::set<std::string> right, refused;
  for (const QualifiedStep& step : steps)
    if (step.wrong.empty()) right.insert(step.kernels.begin(), step.kernels.end());
  std::vector<std::vector<std::string>> unexplained;  // of wrong steps, what may be the reason
  for (const QualifiedStep& step : steps) {
    if (step.wrong.empty()) continue;
    auto& suspects = unexplained.emplace_back();
    std::ranges::copy_if(step.kernels, std::back_inserter(suspects),
                         [&](const std::string& kernel) { return !right.contains(kernel); });
  }
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

std::string Qualification::text() const {
  std::vector<std::string> wrong;
  for (const QualifiedStep& step : steps)
    if (!step.wrong.empty()) wrong.push_back(fmt::format("{}: {}", step.name, step.wrong));
  if (wrong.empty()) {
    const std::vector<std::string> inexact = arithmetic.inexact();
    return fmt::format("{} agree with the CPU{}", counted(steps.size(), "step"),
                       inexact.empty() ? ""
                                       : fmt::format(", with {} in more instructions, since the "
                                                     "device does not round them correctly",
                                                     fmt::join(inexact, " and ")));
  }
  return fmt::format("{} of {} steps are wrong ({}); refused kernels: {}", wrong.size(),
                     steps.size(), fmt::join(wrong, "; "), fmt::join(refused(), ", "));
}

Qualification qualification_of(const std::string& device) {
  if (!device::has_driver(device) || qualifying) return {};
  static std::mutex mutex;
  static std::map<std::string, Qualification> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  Qualification made = make(device);
  if (!made.refused().empty()) logging::warning("{}: {}", device, made.text());
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
                      "device and driver; `pantala doctor` says more",
                      device, kind_of(unit.entry)));
}

}  // namespace pantala::runtime
