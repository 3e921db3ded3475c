// Which op a node has, asked by type: see ir/face.h. An op is its entry in the table, so two are
// the same if their addresses are.
#pragma once

#include "ir/face.h"
#include "ops/table.h"

namespace pantala::ops {

// The table's entry of the op with this face.
template <class Face>
const ir::OpDef& def() {
  static const ir::OpDef& found = table().get(Face::name);
  return found;
}

// Whether the op is one of these.
template <class... Faces>
bool is(const ir::OpDef& op) {
  return ((&op == &def<Faces>()) || ...);
}
template <class... Faces>
bool is(const ir::Node& node) {
  return is<Faces...>(*node.op);
}

}  // namespace pantala::ops
