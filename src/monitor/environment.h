// environment.json: what made a run's numbers, for whoever wants to get them again: version, build,
// compilers, processor, system, command. A run that was continued lists every continuation, which
// may have been on another machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pantala::monitor {

inline constexpr std::string_view kEnvironmentFile = "environment.json";

// What the program knows; the rest is found out.
struct RunEnvironment {
  std::vector<std::string> command;  // with its arguments
  std::string device;
  int threads = 0;        // that compute
  double start_time = 0;  // seconds since 1970
};

// Writes folder/environment.json. With `continued`, a file that is there is kept and its list
// "continued" gets one entry more.
void write_environment(const std::filesystem::path& folder, const RunEnvironment& run,
                       bool continued);

// "2024-05-01T12:34:56Z"
std::string utc_text(double seconds_since_1970);
// What this process has in memory; 0 if the system does not tell.
std::int64_t resident_bytes();

}  // namespace pantala::monitor
