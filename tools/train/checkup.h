// Checks whether this machine can train: what `pantala doctor` runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pantala::tools {

enum class Health : std::uint8_t { ok, warn, fail };
std::string_view health_name(Health health);

struct Finding {
  std::string check;  // "cpu"
  Health health = Health::ok;
  std::string detail;
};
// In a fixed order; none throws.
std::vector<Finding> check_machine();

}  // namespace pantala::tools
