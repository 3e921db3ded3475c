// A device in JSON, as `pantala devices` prints it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pantala::tools {

// With what the device does at most, if that is to be measured.
nlohmann::ordered_json device_row(const std::string& name, bool probe);

}  // namespace pantala::tools
