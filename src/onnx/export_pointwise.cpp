// Functions of single elements. Where ONNX lacks a function that is exact near 0 the same is said
// with others that are.
#include <array>
#include <cmath>
#include <numbers>

#include "onnx/export_rules.h"
#include "onnx/proto.h"
#include "ops/activation.h"
#include "ops/arithmetic.h"
#include "ops/contract.h"
#include "ops/conv.h"
#include "ops/face.h"
#include "ops/movement.h"

namespace pantala::onnx {

namespace {

std::string number(const NodeWriter& n, double value) {
  return n.writer.scalar(value, n.type(0).dtype);
}

// A bias per channel: broadcast_to(bias [channels, 1, ...]) or of the reshaped bias itself.
std::optional<ValueId> channel_bias(const NodeWriter& n, ValueId value) {
  const ir::GraphData& graph = n.writer.graph();
  const ir::Node* node = &graph.node(value.node);
  if (!ops::is<op::BroadcastTo>(*node)) return {};
  const Shape spread = graph.type(node->inputs[0]).shape;
  const Shape& y = n.result_type().shape;
  ir::Ints expected(static_cast<std::size_t>(y.rank() - 1), 1);
  expected[0] = y[1];
  ValueId source = node->inputs[0];
  node = &graph.node(source.node);
  if (!(spread == Shape(expected))) return {};
  if (ops::is<op::Reshape>(*node)) source = node->inputs[0];
  if (graph.type(source).shape.rank() != 1) return {};
  return ir::leaf_kind(*graph.node(source.node).op) ? std::optional(source) : std::nullopt;
}

// A bias per column of a matrix.
std::optional<ValueId> column_bias(const NodeWriter& n, ValueId value) {
  const ir::GraphData& graph = n.writer.graph();
  const ir::Node& node = graph.node(value.node);
  if (!ops::is<op::BroadcastTo>(node) || n.result_type().shape.rank() != 2) return {};
  const ValueId source = node.inputs[0];
  if (graph.type(source).shape.rank() != 1) return {};
  return ir::leaf_kind(*graph.node(source.node).op) ? std::optional(source) : std::nullopt;
}

// A convolution or a product takes its bias along.
bool joins_product(const NodeWriter& n, int product, int bias) {
  const ValueId id = n.input(product);
  const ir::Node& maker = n.writer.graph().node(id.node);
  if (n.writer.uses(id) != 1 || n.writer.is_constant(id)) return false;
  const bool conv = ops::is<op::Convolution, op::ConvolutionInputGrad>(maker);
  if (!conv && !ops::is<op::Contract>(maker)) return false;
  const auto source = conv ? channel_bias(n, n.input(bias)) : column_bias(n, n.input(bias));
  const char* operators = ops::is<op::Convolution>(maker) ? "Conv"
                          : conv                          ? "ConvTranspose"
                                                          : "Gemm";
  if (!source || !n.writer.append_input(id, operators, n.writer.name(*source))) return false;
  n.result(n.writer.name(id));
  return true;
}

void write_add(const NodeWriter& n) {
  if (!joins_product(n, 0, 1) && !joins_product(n, 1, 0))
    n.result(n.add("Add", n.broadcast_inputs()));
}

void write_add_n(const NodeWriter& n) {
  Names inputs;
  for (int k = 0; k < n.count(); ++k) inputs.push_back(n.in(k));
  n.result(n.add("Sum", inputs));
}

void write_mod(const NodeWriter& n) {
  n.result(n.add("Mod", n.broadcast_inputs(), {{"fmod", std::int64_t{1}}}));
}
void write_leaky_relu(const NodeWriter& n) {
  n.result(n.add("LeakyRelu", {n.in(0)}, {{"alpha", n.attributes<op::LeakyRelu>().slope}}));
}
void write_elu(const NodeWriter& n) {
  n.result(n.add("Elu", {n.in(0)}, {{"alpha", n.attributes<op::Elu>().alpha}}));
}
void write_hardsigmoid(const NodeWriter& n) {
  n.result(n.add("HardSigmoid", {n.in(0)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}
void write_clamp(const NodeWriter& n) {
  const auto [low, high] = n.attributes<op::Clamp>();
  Names inputs{n.in(0), std::isinf(low) ? "" : number(n, low)};
  if (!std::isinf(high)) inputs.push_back(number(n, high));
  n.result(n.add("Clip", inputs));
}
void write_ne(const NodeWriter& n) {
  n.result(n.add("Not", {n.add("Equal", n.broadcast_inputs())}));
}
// NaN is not below infinity, either.
void write_is_finite(const NodeWriter& n) {
  n.result(n.add("Less", {n.add("Abs", {n.in(0)}), number(n, INFINITY)}));
}
void write_pow_scalar(const NodeWriter& n) {
  n.result(n.add("Pow", {n.in(0), number(n, n.attributes<op::PowScalar>().exponent)}));
}
void write_exp2(const NodeWriter& n) { n.result(n.add("Pow", {number(n, 2), n.in(0)})); }
void write_log2(const NodeWriter& n) {
  n.result(n.add("Div", {n.add("Log", {n.in(0)}), number(n, std::numbers::ln2)}));
}
void write_rsqrt(const NodeWriter& n) { n.result(n.add("Reciprocal", {n.add("Sqrt", {n.in(0)})})); }

std::string is_small(const NodeWriter& n) {
  return n.add("Less", {n.add("Abs", {n.in(0)}), number(n, 0.5)});
}
// Near 0: with t = tanh(x / 2), e ** x - 1 = 2 t / (1 - t).
void write_expm1(const NodeWriter& n) {
  const std::string one = number(n, 1),
                    t = n.add("Tanh", {n.add("Mul", {n.in(0), number(n, 0.5)})}),
                    near = n.add("Div", {n.add("Add", {t, t}), n.add("Sub", {one, t})}),
                    far = n.add("Sub", {n.add("Exp", {n.in(0)}), one});
  n.result(n.add("Where", {is_small(n), near, far}));
}
// Near 0: log(1 + x) = 2 artanh(s) with s = x / (2 + x), whose series in the square of s is short.
void write_log1p(const NodeWriter& n) {
  const std::string s = n.add("Div", {n.in(0), n.add("Add", {n.in(0), number(n, 2)})}),
                    square = n.add("Mul", {s, s});
  std::string series = number(n, 1.0 / 23);
  for (int k = 21; k >= 1; k -= 2)
    series = n.add("Add", {n.add("Mul", {series, square}), number(n, 1.0 / k)});
  const std::string near = n.add("Mul", {n.add("Add", {s, s}), series}),
                    far = n.add("Log", {n.add("Add", {n.in(0), number(n, 1)})});
  n.result(n.add("Where", {is_small(n), near, far}));
}

void write_cast(const NodeWriter& n) {
  n.result(n.add("Cast", {n.in(0)},
                 {{"to", static_cast<std::int64_t>(onnx_type(n.attributes<op::Cast>().dtype))}}));
}
// What changes no value.
void write_operand(const NodeWriter& n) { n.result(n.in(0)); }

constexpr std::array kPointwiseRules{
    ExportRule{"add", write_add},
    ExportRule{"add_n", write_add_n},
    ExportRule{"mod", write_mod},
    ExportRule{"pow_scalar", write_pow_scalar},
    ExportRule{"exp2", write_exp2},
    ExportRule{"expm1", write_expm1},
    ExportRule{"log2", write_log2},
    ExportRule{"log1p", write_log1p},
    ExportRule{"rsqrt", write_rsqrt},
    ExportRule{"clamp", write_clamp},
    ExportRule{"leaky_relu", write_leaky_relu},
    ExportRule{"elu", write_elu},
    ExportRule{"hardsigmoid", write_hardsigmoid},
    ExportRule{"ne", write_ne},
    ExportRule{"is_finite", write_is_finite},
    ExportRule{"cast", write_cast},
    ExportRule{"stop_gradient", write_operand},
    ExportRule{"apart", write_operand},
    ExportRule{"watched", write_operand},
    ExportRule{"kept", write_operand},
};

}  // namespace

std::span<const ExportRule> pointwise_export_rules() { return kPointwiseRules; }

}  // namespace pantala::onnx
