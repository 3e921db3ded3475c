// Reading the attributes of a node by name.
#pragma once

#include <string_view>
#include <variant>

#include "ir/graph_data.h"

namespace pantala::schedule {

template <class T>
const T& attribute(const ir::Node& node, std::string_view name) {
  return std::get<T>(node.attrs[static_cast<std::size_t>(node.op->attr_index(name))]);
}

}  // namespace pantala::schedule
