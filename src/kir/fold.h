// What one pure instruction can be replaced with, given the definitions of its operands.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "kir/kernel.h"

namespace pantala::kir {

// The pure instructions of a kernel in the making, by the value that they define. Loop parameters
// and loads have none.
using Definitions = std::vector<std::optional<Inst>>;

// op(left, right) with an integer constant that may have to be made.
struct WithConstant {
  Op op = Op::add;
  Value left;
  std::int64_t right = 0;
};

// An equal value, or something simpler (an instruction without results); nothing if there is
// neither.
using Replacement = std::variant<std::monostate, Value, Inst, WithConstant>;
Replacement fold(const Kernel& kernel, const Definitions& definitions, const Inst& inst,
                 const VType& result);

// The number of an integer or bool constant.
std::optional<std::int64_t> integer_constant(const Kernel& kernel, const Definitions& definitions,
                                             Value v);

}  // namespace pantala::kir
