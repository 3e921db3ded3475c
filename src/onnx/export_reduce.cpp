// Reductions, softmax and the normalisations.
#include <array>

#include "onnx/export_rules.h"
#include "ops/norm.h"
#include "ops/reduce.h"

namespace pantala::onnx {

namespace {

using ir::Ints;

// From operator set 18 on all reductions take their axes as an input, the sum from 13 on.
void write_reduce(const NodeWriter& n, const char* op, std::int64_t axes_are_input = 18) {
  const auto [axes, keepdims] = n.attributes<op::ReduceAttrs>();
  if (axes.empty()) return n.result(n.add("Identity", {n.in(0)}));  // of a scalar
  const std::int64_t keep = keepdims;
  if (n.writer.opset() >= axes_are_input)
    n.result(n.add(op, {n.in(0), n.writer.numbers(axes)}, {{"keepdims", keep}}));
  else
    n.result(n.add(op, {n.in(0)}, {{"axes", axes}, {"keepdims", keep}}));
}
void write_sum(const NodeWriter& n) { write_reduce(n, "ReduceSum", 13); }
void write_mean(const NodeWriter& n) { write_reduce(n, "ReduceMean"); }
void write_amax(const NodeWriter& n) { write_reduce(n, "ReduceMax"); }
void write_amin(const NodeWriter& n) { write_reduce(n, "ReduceMin"); }
void write_prod(const NodeWriter& n) { write_reduce(n, "ReduceProd"); }

void write_arg(const NodeWriter& n, const char* op) {
  const auto [axis, keepdims] = n.attributes<op::ArgAttrs>();
  n.result(n.add(op, {n.in(0)}, {{"axis", axis}, {"keepdims", std::int64_t{keepdims}}}));
}
void write_argmax(const NodeWriter& n) { write_arg(n, "ArgMax"); }
void write_argmin(const NodeWriter& n) { write_arg(n, "ArgMin"); }

void write_cumsum(const NodeWriter& n) {
  const auto [axis, reverse] = n.attributes<op::Cumsum>();
  n.result(n.add("CumSum", {n.in(0), n.writer.constant(Literal::integer(axis))},
                 {{"reverse", std::int64_t{reverse}}}));
}

void write_softmax(const NodeWriter& n) {
  n.result(n.add("Softmax", {n.in(0)}, {{"axis", n.attributes<op::Softmax>().axis}}));
}
void write_log_softmax(const NodeWriter& n) {
  n.result(n.add("LogSoftmax", {n.in(0)}, {{"axis", n.attributes<op::LogSoftmax>().axis}}));
}

// ONNX wants the scale in any case.
void write_layer_norm(const NodeWriter& n) {
  const Type scale{n.type(0).dtype, {n.shape(0).back()}};
  Names inputs{n.in(0)};
  if (n.count() > 1)
    inputs.push_back(n.in(1));
  else
    inputs.push_back(n.writer.constant(Literal::floats(
        scale.shape, std::vector<double>(static_cast<std::size_t>(scale.shape.numel()), 1),
        scale.dtype)));
  if (n.count() > 2) inputs.push_back(n.in(2));
  n.result(n.add("LayerNormalization", inputs,
                 {{"axis", std::int64_t{-1}}, {"epsilon", n.attributes<op::LayerNorm>().eps}}));
}

void write_batch_norm_eval(const NodeWriter& n) {
  n.result(n.add("BatchNormalization", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)},
                 {{"epsilon", n.attributes<op::BatchNormEval>().eps}}));
}

constexpr std::array kReduceRules{
    ExportRule{"sum", write_sum},
    ExportRule{"mean", write_mean},
    ExportRule{"amax", write_amax},
    ExportRule{"amin", write_amin},
    ExportRule{"prod", write_prod},
    ExportRule{"argmax", write_argmax},
    ExportRule{"argmin", write_argmin},
    ExportRule{"cumsum", write_cumsum},
    ExportRule{"softmax", write_softmax},
    ExportRule{"log_softmax", write_log_softmax},
    ExportRule{"layer_norm", write_layer_norm, 17},
    ExportRule{"batch_norm_eval", write_batch_norm_eval},
};

}  // namespace

std::span<const ExportRule> reduce_export_rules() { return kReduceRules; }

}  // namespace pantala::onnx
