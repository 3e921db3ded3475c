// The rules that one instruction must keep, whatever stands around it: arity, types, lanes, buffers
// and access, masks, yields. The builder asks them for every instruction that it appends, the
// verifier for every instruction of a finished kernel.
#pragma once

#include <string>

#include "kir/kernel.h"

namespace pantala::kir {

// What is wrong with an instruction whose values all exist, or "".
std::string broken_rule(const Kernel& kernel, const Inst& inst);
// What is wrong with the type of a value, or "": only dtypes of registers and 1, 2, 4, ..., 32
// lanes.
std::string broken_rule(const VType& type);
// The same for an argument.
std::string broken_rule(const Buffer& buffer);
std::string broken_rule(const Param& param);

}  // namespace pantala::kir
