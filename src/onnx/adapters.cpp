#include "onnx/adapters.h"

#include <map>

#include "ops/table.h"

namespace pantala::onnx {

namespace {

using OpsByOnnxName = std::map<std::string, const ir::OpDef*, std::less<>>;

// Pointwise ops without attributes mean the same whatever the version.
const OpsByOnnxName& table_ops() {
  static const OpsByOnnxName all = [] {
    OpsByOnnxName by_name;
    for (const ir::OpDef* op : ops::table().all())
      if (!op->onnx.empty() && op->pointwise && op->attrs.empty()) by_name.emplace(op->onnx, op);
    return by_name;
  }();
  return all;
}

void convert_by_table(Node& node) {
  const ir::OpDef& op = *table_ops().find(node.op())->second;
  const std::vector<Tensor> inputs = node.tensors();
  if (std::ssize(inputs) != std::ssize(op.inputs))
    node.fail(std::to_string(op.inputs.size()) + " inputs are needed");
  node.give(ops::apply(op, {inputs.begin(), inputs.end()}, {})[0]);
}

using AdaptersByName = std::map<std::string, Adapter, std::less<>>;

// What has an adapter of its own does not take that of the table.
const AdaptersByName& adapters() {
  static const AdaptersByName all = [] {
    AdaptersByName by_name;
    for (const std::span<const Adapter> family :
         {pointwise_adapters(), shape_adapters(), slicing_adapters(), index_adapters(),
          reduce_adapters(), product_adapters(), conv_adapters(), pool_adapters(), norm_adapters(),
          resize_adapters(), loss_adapters(), attention_adapters(), recurrent_adapters(),
          sample_adapters()})
      for (const Adapter& adapter : family) by_name.emplace(adapter.op, adapter);
    for (const auto& [name, op] : table_ops())
      by_name.emplace(name, Adapter{name, convert_by_table});
    return by_name;
  }();
  return all;
}

}  // namespace

const Adapter* find_adapter(std::string_view op) {
  const auto found = adapters().find(op);
  return found != adapters().end() ? &found->second : nullptr;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters()) names.push_back(name);
  return names;
}

}  // namespace pantala::onnx
