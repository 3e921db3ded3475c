#include "monitor/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "codegen/llvm/llvm.h"
#include "compiler/build_id.h"
#include "device/cpu/host.h"
#include "io/file.h"
#include "io/json.h"
#include "monitor/records.h"
#include "pantala/error.h"

namespace pantala::monitor {

namespace {

using io::OrderedJson;

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("Clang {}", __clang_version__);
#else
  return fmt::format("GCC {}", __VERSION__);
#endif
}

// "+avx2,-avx512f,+fma" -> "avx2", "fma"
std::vector<std::string> features_present(const std::string& features) {
  std::vector<std::string> present;
  std::istringstream in(features);
  for (std::string feature; std::getline(in, feature, ',');)
    if (feature.starts_with('+')) present.push_back(feature.substr(1));
  return present;
}

OrderedJson processor() {
  const device::cpu::HostDescription host = device::cpu::describe_host();
  return {{"processor", printable(host.processor)},
          {"architecture", host.architecture},
          {"name", host.cpu},
          {"vector_bytes", host.vector_bytes},
          {"fma", host.fma},
          {"l1_bytes", host.caches.l1_bytes},
          {"l2_bytes", host.caches.l2_bytes},
          {"l3_bytes", host.caches.l3_bytes},
          {"cores", std::thread::hardware_concurrency()},
          {"features", features_present(codegen::detect_host().features)}};
}

OrderedJson system() {
  utsname name{};
  if (::uname(&name) != 0) return OrderedJson::object();
  const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)),
             page_bytes = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  return {
      {"name", printable(name.sysname)},
      {"release", printable(name.release)},
      {"version", printable(name.version)},
      {"machine", printable(name.machine)},
      {"host", printable(name.nodename)},
      {"memory_bytes", std::max<std::int64_t>(pages, 0) * std::max<std::int64_t>(page_bytes, 0)}};
}

OrderedJson document_of(const RunEnvironment& run) {
  // "0.1.0 5d41..."
  const std::string_view build = compiler::build_id();
  const std::size_t space = std::min(build.find(' '), build.size());
  OrderedJson command = OrderedJson::array();
  for (const std::string& word : run.command) command.push_back(printable(word));
  return {{"version", build.substr(0, space)},
          {"build_id", build.substr(std::min(space + 1, build.size()))},
          {"started", utc_text(run.start_time)},
          {"command", std::move(command)},
          {"device", printable(run.device)},
          {"threads", run.threads},
          {"compiler", compiler_name()},
          {"llvm", compiler::llvm_version()},
          {"cpu", processor()},
          {"system", system()}};
}

}  // namespace

void write_environment(const std::filesystem::path& folder, const RunEnvironment& run,
                       bool continued) {
  const std::filesystem::path path = folder / kEnvironmentFile;
  OrderedJson document = document_of(run);
  std::error_code error;
  if (continued && std::filesystem::exists(path, error)) {
    try {
      auto first = io::read_json<OrderedJson>(path);
      io::extract(path.string(), [&] { first["continued"].push_back(std::move(document)); });
      document = std::move(first);
    } catch (const ParseError& damage) {
      logging::warning("{}; it is written anew", damage.what());
      document = document_of(run);
    }
  }
  io::write_file(path, document.dump(2) + "\n");
}

std::string utc_text(double seconds_since_1970) {
  // Years of four digits.
  const double seconds = std::clamp(std::floor(seconds_since_1970), 0.0, 253402300799.0);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  if (!(in >> total >> resident)) return 0;
  return resident * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace pantala::monitor
