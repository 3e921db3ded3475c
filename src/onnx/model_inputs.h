// The leaves of a file's graph: its initialisers, and its inputs with the shapes, sizes and values
// that the options give them.
#pragma once

#include <string_view>
#include <unordered_map>

#include "onnx/node.h"

namespace pantala::onnx {

using Values = std::unordered_map<std::string, ValuePtr>;

// The operators of ONNX itself, "" or "ai.onnx".
bool is_default_domain(std::string_view domain);

// Makes the inputs of context.graph. TypeError for options that name nothing of the file and for
// sizes that are not given, all of them at once.
Values leaf_values(const pb::GraphProto& graph, Context& context);

}  // namespace pantala::onnx
