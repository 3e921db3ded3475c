// The trainer's state as JSON, exactly: doubles read back to the same value, and those that JSON
// does not have are strings ("nan", "inf", "-inf").
#pragma once

#include <string_view>

#include "io/json.h"
#include "pantala/trainer.h"

namespace pantala::train {

io::Json encode_state(const TrainerState& state);
// ParseError that starts with `where`.
TrainerState decode_state(const io::Json& document, std::string_view where);

}  // namespace pantala::train
