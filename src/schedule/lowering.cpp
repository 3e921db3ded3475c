#include "schedule/lowering.h"

#include <map>
#include <string>

#include "ir/graph_data.h"
#include "schedule/emitter.h"

namespace pantala::schedule {

bool is_leaf(const ir::OpDef& op) {
  return op.leaf || &op == &ir::constant_op() || &op == &ir::data_op();
}

Archetype archetype(const ir::OpDef& op) {
  static const std::map<std::string, Archetype, std::less<>> anchors{
      {"sum", Archetype::reduce},
      {"amax", Archetype::reduce},
      {"amin", Archetype::reduce},
      {"argmax", Archetype::search},
      {"argmin", Archetype::search},
      {"cumsum", Archetype::scan},
      {"contract", Archetype::contract},
      {"convolution", Archetype::convolution},
      {"convolution_input_grad", Archetype::convolution},
      {"convolution_weight_grad", Archetype::convolution},
      {"scatter_add", Archetype::scatter},
      {"scatter_add_elements", Archetype::scatter},
      {"scatter", Archetype::scatter},
      {"attention", Archetype::attention},
      {"attention_grad", Archetype::attention},
      {"attention_cached", Archetype::attention},
  };
  if (is_leaf(op)) return Archetype::leaf;
  if (const auto it = anchors.find(op.name); it != anchors.end()) return it->second;
  return is_elemental(op) ? Archetype::elemental : Archetype::none;
}

}  // namespace pantala::schedule
