// How each op is said in ONNX. A rule writes one node of the graph; ops without a rule are expanded
// by their definition before. Pointwise ops whose ONNX name stands in the op table and that have no
// attributes need no rule of their own.
#pragma once

#include <span>
#include <string_view>

#include "onnx/export_writer.h"

namespace pantala::onnx {

struct ExportRule {
  std::string_view op;
  void (*write)(const NodeWriter&);
  std::int64_t since = 0;  // the first operator set that has what is written
};

// nullptr: there is none for this operator set. Rules write the first result alone.
const ExportRule* find_export_rule(const ir::OpDef& op, std::int64_t opset);

// The families; each is defined in its own file.
std::span<const ExportRule> pointwise_export_rules();
std::span<const ExportRule> movement_export_rules();
std::span<const ExportRule> product_export_rules();
std::span<const ExportRule> reduce_export_rules();
std::span<const ExportRule> sample_export_rules();

}  // namespace pantala::onnx
