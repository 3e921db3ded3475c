// What ONNX says of an operator: how many inputs and results it has, and its attributes, version by
// version. A node that does not fit is refused before an adapter sees it, since an adapter looks
// only at what it knows.
#pragma once

#include <string_view>

#include "onnx/proto.h"

namespace pantala::onnx {

// The versions of the operators that are read.
inline constexpr std::int64_t kOldestOpset = 1, kNewestOpset = 28;

struct Signature {
  std::string_view op;
  int since;  // the version of the operators from which on it is so
  int fewest_inputs, most_inputs, most_results;
  std::string_view attributes;  // their names, with spaces between them
};
// The one in force at a version of the operators; of an operator that came later its first.
// nullptr for an operator that is not in the table.
const Signature* find_signature(std::string_view op, std::int64_t opset);

// TypeError that says what would be right. Nodes of operators without a signature pass.
void check_signature(const pb::NodeProto& node, std::int64_t opset);

}  // namespace pantala::onnx
