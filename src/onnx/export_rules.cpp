#include "onnx/export_rules.h"

#include <array>

namespace pantala::onnx {

namespace {

void write_same(const NodeWriter& n) { n.result(n.add(n.node.op->onnx, n.broadcast_inputs())); }

// Plain operators that came later than the first operator set that is written.
struct Since {
  std::string_view onnx;
  std::int64_t opset;
};
constexpr std::array kSince{Since{"Gelu", 20}, Since{"Mish", 18}};

}  // namespace

const ExportRule* find_export_rule(const ir::OpDef& op, std::int64_t opset) {
  for (const std::span<const ExportRule> family :
       {pointwise_export_rules(), movement_export_rules(), product_export_rules(),
        reduce_export_rules(), sample_export_rules()})
    for (const ExportRule& rule : family)
      if (rule.op == op.name) return opset >= rule.since ? &rule : nullptr;
  if (!op.pointwise || !op.attrs.empty() || op.onnx.empty()) return nullptr;
  for (const Since& row : kSince)
    if (row.onnx == op.onnx && opset < row.opset) return nullptr;
  static const ExportRule same{"", write_same, 0};
  return &same;
}

}  // namespace pantala::onnx
