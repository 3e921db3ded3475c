// The closed list of optimizers, and what others ask it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/optimizers/definition.h"

namespace pantala::ops {

// The optimizer that these public options are of; instantiated in its own file (see define.h).
template <class Options>
const OptimizerDef& declared();

// Every optimizer of the library, in the order in which they are named to users.
std::span<const OptimizerDef* const> optimizers();
const OptimizerDef& optimizer(std::string_view name);  // TypeError with the nearest name

// InternalError if two rows give an option of one name different ranges (a session checks a scalar
// by its name alone), or if one lacks lr or weight_decay, which parameter groups change.
void check_rows(std::span<const OptimizerDef* const> rows);

// The range of the option of this name, which is one for all optimizers that have it; nullptr if
// none has.
const OptionRange* range_of(std::string_view option);

// What of it makes another graph, as text: the optimizer, its flags, which scalars there are, and
// what the states begin with. Values of scalars are no part of it.
std::string graph_key(const optim::Optimizer& optimizer);

// A node of an update op, states and scalars each in the order of the slots. TypeError if there are
// too many or too few.
UpdateResult apply_update(const ir::OpDef& op, const UpdateVariant& variant, const Operand& weight,
                          const Operand& gradient, const UpdateStates& states,
                          const UpdateScalars& scalars);

}  // namespace pantala::ops
