// The face of an op: what others may say about it by type, its name and its attributes.
//
//   struct Contract : ir::Face<"contract"> { struct Attrs { ... }; };    in namespace pantala::op
//
// The op's declaration in its family's .cpp inherits from its face, so neither is written twice. An
// op that nobody else speaks of needs no face. How to use one:
//
//   ops::is<op::Contract>(node)           is this node a contraction? (compares addresses)
//   ops::def<op::Contract>()              its table entry, to build nodes or to key a table
//   ir::attributes<op::Contract>(node)    its attributes, as the struct of its declaration
//   ir::attributes<op::ReduceAttrs>(node) the same for any of the ops that share the struct
#pragma once

#include <algorithm>
#include <string_view>
#include <typeinfo>

#include "ir/graph_data.h"

namespace pantala::ir {

template <std::size_t size>
struct FaceName {
  char text[size]{};
  // Implicit, so that a face can be written with a plain text.
  consteval FaceName(const char (&given)[size]) { std::copy_n(given, size, text); }
};

template <FaceName given>
struct Face {
  static constexpr std::string_view name{given.text, sizeof(given.text) - 1};
};

template <class T>
struct AttrsNamedBy {
  using type = T;
};
template <class T>
  requires requires { typename T::Attrs; }
struct AttrsNamedBy<T> {
  using type = typename T::Attrs;
};

[[noreturn]] void throw_other_attributes(const Node& node);

// The attributes of a node, by face or by struct. InternalError if its op was declared with
// another struct.
template <class FaceOrAttrs>
typename AttrsNamedBy<FaceOrAttrs>::type attributes(const Node& node) {
  using Attrs = typename AttrsNamedBy<FaceOrAttrs>::type;
  if (*node.op->attrs_type != typeid(Attrs)) throw_other_attributes(node);
  return from_values<Attrs>(node.attrs);
}

}  // namespace pantala::ir
