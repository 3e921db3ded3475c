// What loading weights found, in words.
#pragma once

#include <string>

#include "pantala/weights.h"

namespace pantala::io {

// What does not fit, each on a line of its own behind a line break; "" if everything does.
std::string problems_text(const LoadWeightsReport& report);

}  // namespace pantala::io
