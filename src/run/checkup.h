// Checks whether this machine can train: what `pantala doctor` runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::run {

enum class Health : std::uint8_t { ok, warn, fail };
std::string_view health_name(Health health);

struct Finding {
  std::string check;  // "cpu"
  Health health = Health::ok;
  std::string detail;
};
// In a fixed order; none throws. `cache` is the folder for compiled plans; "": there is none.
std::vector<Finding> check_machine(const std::filesystem::path& cache);

}  // namespace pantala::run
