#include "run/checkup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "compiler/build_id.h"
#include "device/cpu/host.h"
#include "device/describe.h"
#include "device/device.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "monitor/progress_line.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "pantala/session.h"
#include "pantala/zoo.h"
#include "runtime/qualification.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = 1 << 20;
// Below the first one it is tight, below the second one nothing will work.
constexpr std::int64_t kEnough = 1024 * kMiB, kTooLittle = 64 * kMiB;

Health judge_bytes(std::int64_t bytes) {
  if (bytes < kTooLittle) return Health::fail;
  return bytes < kEnough ? Health::warn : Health::ok;
}

Finding check_build() {
  return {"version", Health::ok,
          fmt::format("{}, LLVM {}", compiler::build_id(), compiler::llvm_version())};
}

Finding check_cpu() {
  const device::cpu::HostDescription host = device::cpu::describe_host();
  const bool fast = host.vector_bytes >= 32 && host.fma;
  return {"cpu", fast ? Health::ok : Health::warn,
          fmt::format("{} ({} {}): vectors of {} bytes, {}{}", host.processor, host.architecture,
                      host.cpu, host.vector_bytes, host.fma ? "FMA" : "no FMA",
                      fast ? "" : "; training works, but slowly")};
}

Finding check_threads() {
  const int workers = device::default_workers();
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const bool all = workers >= static_cast<int>(cores);
  return {"threads", all ? Health::ok : Health::warn,
          fmt::format("{} of {}{}", workers, counted(cores, "CPU"),
                      all ? "" : "; this process may not use the others")};
}

Finding check_memory() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  for (std::int64_t kib = 0; in >> name >> kib; in.ignore(256, '\n'))
    if (name == "MemAvailable:")
      return {"memory", judge_bytes(1024 * kib),
              fmt::format("{} available", monitor::memory_text(1024 * kib))};
  return {"memory", Health::warn, "the system does not tell how much is available"};
}

Finding check_disk() {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const fs::space_info space = fs::space(error ? "." : here, error);
  if (error)
    return {"disk", Health::warn, fmt::format("the free space is not known: {}", error.message())};
  const auto free = static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
  return {
      "disk", judge_bytes(free),
      fmt::format("{} free in {}, where runs/ is made", monitor::memory_text(free), here.string())};
}

Finding check_cache(const fs::path& folder) {
  if (folder.empty()) return {"cache", Health::warn, "there is no folder for compiled plans"};
  const fs::path probe = folder / fmt::format("doctor-{}", ::getpid());
  try {
    io::write_file(probe, "probe");
    io::remove_path(probe);
    return {"cache", Health::ok, folder.string()};
  } catch (const IoError& error) {
    return {"cache", Health::warn, fmt::format("compiled plans are not kept: {}", error.what())};
  }
}

Finding check_data() {
  try {
    const data::TrainTest sets = data::fashion_mnist();
    return {"data", Health::ok,
            fmt::format("Fashion-MNIST: {} images to train, {} to test", sets.train.size(),
                        sets.test.size())};
  } catch (const Error& error) { return {"data", Health::warn, error.what()}; }
}

// A small network that takes a few steps on made-up numbers.
std::vector<double> small_training(int threads) {
  constexpr std::int64_t kItems = 32, kInputs = 20, kClasses = 4;
  const zoo::Model model =
      zoo::mlp({.batch = kItems, .inputs = kInputs, .hidden = {24}, .classes = kClasses});
  Session session = build_session(
      model.graph, model.loss, {.threads = threads, .optimizer = optim::adam(0.05)}, {.seed = 7});
  std::vector<double> x;
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < kItems; ++k) {
    labels.push_back(k % kClasses);
    for (std::int64_t column = 0; column < kInputs; ++column)
      x.push_back(static_cast<double>((k * 7 + column * 13 + k * column) % 19) / 9.0 - 1);
  }
  session.set_input("x", Literal::floats({kItems, kInputs}, x));
  session.set_input("labels", Literal::ints({kItems}, labels));
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    session.step();
    losses.push_back(session.loss());
  }
  return losses;
}

Finding check_training() {
  // The losses of small_training() as they should be; the last digits depend on the processor.
  constexpr double kExpected[] = {1.3934731, 1.2541565, 1.1257942, 0.9904340, 0.8629273};
  constexpr double kTolerance = 1e-4;
  try {
    const std::vector<double> one = small_training(1), two = small_training(2);
    if (one != two)
      return {"training", Health::fail, "one and two threads do not give the same numbers"};
    const std::vector<double> expected(std::begin(kExpected), std::end(kExpected));
    const auto near = [](double a, double b) { return std::fabs(a - b) <= kTolerance * b; };
    if (!std::equal(one.begin(), one.end(), expected.begin(), expected.end(), near))
      return {"training", Health::fail,
              fmt::format("the losses are {}, expected {}", fmt::join(one, ", "),
                          fmt::join(expected, ", "))};
    return {"training", Health::ok,
            fmt::format("{} give the known losses, the same bits on 1 and 2 threads",
                        counted(one.size(), "step"))};
  } catch (const Error& error) { return {"training", Health::fail, error.what()}; }
}

// GPUs, by their drivers' words. One that computes something else than the processor is a warning:
// its kernels are refused, and everything else works. Software is not compared unasked.
std::vector<Finding> check_gpus() {
  std::vector<Finding> findings;
  for (const std::string& name : device::devices_here()) {
    if (!device::has_driver(name)) continue;
    const device::Description device = device::describe(name);
    if (device.facts.empty()) {
      findings.push_back({"gpu", Health::ok, fmt::format("none: {}", device.text)});
      continue;
    }
    try {
      const bool software = std::ranges::any_of(device.facts, [](const device::Fact& fact) {
        return fact.name == "software" && std::get<bool>(fact.value);
      });
      const auto tested = software ? runtime::remembered_qualification(name)
                                   : std::optional(runtime::qualification_of(name));
      const bool right = !tested || tested->refused().empty();
      findings.push_back({"gpu", right ? Health::ok : Health::warn,
                          fmt::format("{}: {}; {}", name, device.text,
                                      tested ? tested->text() : "not compared with the CPU yet")});
    } catch (const Error& error) {
      findings.push_back({"gpu", Health::warn, fmt::format("{}: {}", name, error.what())});
    }
  }
  return findings;
}

}  // namespace

std::string_view health_name(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warn:
      return "warn";
    case Health::fail:
      return "fail";
  }
  return "";
}

std::vector<Finding> check_machine(const fs::path& cache) {
  std::vector<Finding> findings{check_build(), check_cpu(),        check_threads(), check_memory(),
                                check_disk(),  check_cache(cache), check_data()};
  for (Finding& gpu : check_gpus()) findings.push_back(std::move(gpu));
  findings.push_back(check_training());
  return findings;
}

}  // namespace pantala::run
