// A batch as bytes, for another rank of the same version.
#pragma once

#include <string>

#include "pantala/data.h"

namespace pantala::train {

std::string packed(const data::Batch& batch);
data::Batch unpacked(const std::string& text);

}  // namespace pantala::train
