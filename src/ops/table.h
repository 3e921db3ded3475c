// The closed list of ops, as one table, and building nodes by op.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace pantala::ops {

class OpTable {
 public:
  explicit OpTable(std::vector<const ir::OpDef*> ops);
  std::span<const ir::OpDef* const> all() const { return ops_; }
  const ir::OpDef* find(std::string_view name) const;
  const ir::OpDef& get(std::string_view name) const;  // TypeError with the nearest name
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<const ir::OpDef*> ops_;
  std::vector<std::string> names_;
};

// Every op of the library.
const OpTable& table();

// Builds a node from operands: plain numbers become constants of the dtype of the last tensor that
// is no index or condition, and the inputs of pointwise ops are broadcast to their common shape
// (right-aligned). The place of the first operand is the place of the node.
std::vector<Tensor> apply(const ir::OpDef& op, const std::vector<Operand>& inputs,
                          ir::AttrValues attrs);
// The same with attributes by name, as importers and test files give them.
std::vector<Tensor> apply(std::string_view op, const std::vector<Operand>& inputs,
                          const ir::NamedAttrs& attrs = {});

// The definition of one composite node's op on the given inputs.
std::vector<Tensor> expand(const ir::OpDef& op, const ir::AttrValues& attrs,
                           std::span<const Tensor> inputs, const ir::Provenance& where);

// Parses with another table than the library's own (an extended one).
Graph parse_graph(std::string_view text, std::string_view file, const OpTable& ops);

// The families; each is defined in its own file.
std::vector<const ir::OpDef*> arithmetic_ops();
std::vector<const ir::OpDef*> activation_ops();
std::vector<const ir::OpDef*> reduce_ops();
std::vector<const ir::OpDef*> movement_ops();
std::vector<const ir::OpDef*> slicing_ops();
std::vector<const ir::OpDef*> index_ops();
std::vector<const ir::OpDef*> contract_ops();
std::vector<const ir::OpDef*> conv_ops();
std::vector<const ir::OpDef*> pool_ops();
std::vector<const ir::OpDef*> norm_ops();
std::vector<const ir::OpDef*> attention_ops();
std::vector<const ir::OpDef*> random_ops();
std::vector<const ir::OpDef*> recurrent_ops();
std::vector<const ir::OpDef*> topk_ops();
std::vector<const ir::OpDef*> grid_ops();
std::vector<const ir::OpDef*> loss_ops();
std::vector<const ir::OpDef*> update_ops();

}  // namespace pantala::ops
