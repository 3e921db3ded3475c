// The reference of the ops, made from the op table: there is no second description of an op
// anywhere.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

namespace pantala::tools {

enum class ReferenceFormat { text, markdown, json };

// Grouped by family, sorted by name. In markdown it is docs/ops.md.
std::string op_reference(const std::vector<const ir::OpDef*>& ops, ReferenceFormat format);

// leaf, sugar (expanded when built), composite (defined by other ops) or primitive.
std::string kind_of(const ir::OpDef& op);
// Whether gradients flow through the op: found by differentiating one of its samples.
bool is_differentiable(const ir::OpDef& op);

}  // namespace pantala::tools
