// Options by name, as configs and recorded cases give them to optimizers and rate schedules. All
// numbers are doubles here; whole numbers are checked where they are needed.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace pantala {

using OptionValue = std::variant<bool, double, std::string, std::vector<double>>;
using NamedOptions = std::map<std::string, OptionValue, std::less<>>;

}  // namespace pantala
