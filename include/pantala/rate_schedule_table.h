// What rate schedules there are, for help, documentation and bindings; the schedules themselves are
// in rate_schedule.h.
#pragma once

#include <string>
#include <vector>

#include "pantala/options.h"

namespace pantala {

struct RateOption {
  std::string name;
  OptionValue default_value;  // tells the kind where it is required, too
  bool required = false;
  bool whole = false;  // takes whole numbers
};
struct RateDescription {
  std::string name;
  std::vector<RateOption> options;  // without warmup_steps, which every one but plateau takes
};
// In the order of RateSchedule::names(), with plateau behind them.
const std::vector<RateDescription>& rate_descriptions();

}  // namespace pantala
