// The largest elements, and elements at positions of a grid.
#include <array>

#include "onnx/export_rules.h"
#include "ops/grid.h"
#include "ops/topk.h"

namespace pantala::onnx {

namespace {

void write_top_indices(const NodeWriter& n) {
  const auto [k, axis, largest] = n.attributes<op::TopIndices>();
  const std::string values = n.add("TopK", {n.in(0), n.writer.numbers({k})},
                                   {{"axis", axis}, {"largest", std::int64_t{largest}}});
  n.result(n.writer.second_result(values));
}

// Operator set 20 has shorter names for the modes.
void write_grid_sample(const NodeWriter& n) {
  const auto a = n.attributes<op::GridSample>();
  std::string mode = ir::EnumNames<GridMode>::names[static_cast<std::size_t>(a.mode)];
  if (n.writer.opset() >= 20 && mode.starts_with("bi")) mode.erase(0, 2);
  const std::string padding =
      ir::EnumNames<GridPadding>::names[static_cast<std::size_t>(a.padding)];
  n.result(n.add("GridSample", {n.in(0), n.in(1)},
                 {{"mode", mode},
                  {"padding_mode", padding},
                  {"align_corners", std::int64_t{a.align_corners}}}));
}

constexpr std::array kSampleRules{
    ExportRule{"top_indices", write_top_indices},
    ExportRule{"grid_sample", write_grid_sample, 16},
};

}  // namespace

std::span<const ExportRule> sample_export_rules() { return kSampleRules; }

}  // namespace pantala::onnx
