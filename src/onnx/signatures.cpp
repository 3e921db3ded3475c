#include "onnx/signatures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

constexpr int kAny = std::numeric_limits<int>::max();

// In the order of names and versions. Attributes that came after version 24 are taken from 25 on.
constexpr Signature kSignatures[] = {
    {"Abs", 1, 1, 1, 1, "consumed_inputs"},
    {"Abs", 6, 1, 1, 1, ""},
    {"Acos", 7, 1, 1, 1, ""},
    {"Acosh", 9, 1, 1, 1, ""},
    {"Add", 1, 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Add", 6, 2, 2, 1, "axis broadcast"},
    {"Add", 7, 2, 2, 1, ""},
    {"And", 1, 2, 2, 1, "axis broadcast"},
    {"And", 7, 2, 2, 1, ""},
    {"ArgMax", 1, 1, 1, 1, "axis keepdims"},
    {"ArgMax", 12, 1, 1, 1, "axis keepdims select_last_index"},
    {"ArgMin", 1, 1, 1, 1, "axis keepdims"},
    {"ArgMin", 12, 1, 1, 1, "axis keepdims select_last_index"},
    {"Asin", 7, 1, 1, 1, ""},
    {"Asinh", 9, 1, 1, 1, ""},
    {"Atan", 7, 1, 1, 1, ""},
    {"Atanh", 9, 1, 1, 1, ""},
    {"Attention", 23, 3, 6, 4,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 24, 3, 7, 4,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 25, 3, 7, 4,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"AveragePool", 1, 1, 1, 1, "auto_pad kernel_shape pads strides"},
    {"AveragePool", 7, 1, 1, 1, "auto_pad count_include_pad kernel_shape pads strides"},
    {"AveragePool", 10, 1, 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides"},
    {"AveragePool", 19, 1, 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", 1, 5, 5, 5, "consumed_inputs epsilon is_test momentum spatial"},
    {"BatchNormalization", 6, 5, 5, 5, "epsilon is_test momentum spatial"},
    {"BatchNormalization", 7, 5, 5, 5, "epsilon momentum spatial"},
    {"BatchNormalization", 9, 5, 5, 5, "epsilon momentum"},
    {"BatchNormalization", 14, 5, 5, 3, "epsilon momentum training_mode"},
    {"Bernoulli", 15, 1, 1, 1, "dtype seed"},
    {"Cast", 1, 1, 1, 1, "to"},
    {"Cast", 19, 1, 1, 1, "saturate to"},
    {"Cast", 24, 1, 1, 1, "round_mode saturate to"},
    {"CastLike", 15, 2, 2, 1, ""},
    {"CastLike", 19, 2, 2, 1, "saturate"},
    {"CastLike", 24, 2, 2, 1, "round_mode saturate"},
    {"Ceil", 1, 1, 1, 1, "consumed_inputs"},
    {"Ceil", 6, 1, 1, 1, ""},
    {"Celu", 12, 1, 1, 1, "alpha"},
    {"Clip", 1, 1, 1, 1, "consumed_inputs max min"},
    {"Clip", 6, 1, 1, 1, "max min"},
    {"Clip", 11, 1, 3, 1, ""},
    {"Compress", 9, 2, 2, 1, "axis"},
    {"Concat", 1, 1, kAny, 1, "axis"},
    {"Constant", 1, 0, 0, 1, "value"},
    {"Constant", 11, 0, 0, 1, "sparse_value value"},
    {"Constant", 12, 0, 0, 1,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", 9, 1, 1, 1, "value"},
    {"Conv", 1, 2, 3, 1, "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", 1, 2, 3, 1,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"Cos", 7, 1, 1, 1, ""},
    {"Cosh", 9, 1, 1, 1, ""},
    {"CumSum", 11, 2, 2, 1, "exclusive reverse"},
    {"DepthToSpace", 1, 1, 1, 1, "blocksize"},
    {"DepthToSpace", 11, 1, 1, 1, "blocksize mode"},
    {"Div", 1, 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Div", 6, 2, 2, 1, "axis broadcast"},
    {"Div", 7, 2, 2, 1, ""},
    {"Dropout", 1, 1, 1, 2, "consumed_inputs is_test ratio"},
    {"Dropout", 6, 1, 1, 2, "is_test ratio"},
    {"Dropout", 7, 1, 1, 2, "ratio"},
    {"Dropout", 12, 1, 3, 2, "seed"},
    {"Einsum", 12, 1, kAny, 1, "equation"},
    {"Elu", 1, 1, 1, 1, "alpha consumed_inputs"},
    {"Elu", 6, 1, 1, 1, "alpha"},
    {"Equal", 1, 2, 2, 1, "axis broadcast"},
    {"Equal", 7, 2, 2, 1, ""},
    {"Erf", 9, 1, 1, 1, ""},
    {"Exp", 1, 1, 1, 1, "consumed_inputs"},
    {"Exp", 6, 1, 1, 1, ""},
    {"Expand", 8, 2, 2, 1, ""},
    {"EyeLike", 9, 1, 1, 1, "dtype k"},
    {"Flatten", 1, 1, 1, 1, "axis"},
    {"Floor", 1, 1, 1, 1, "consumed_inputs"},
    {"Floor", 6, 1, 1, 1, ""},
    {"GRU", 1, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size output_sequence"},
    {"GRU", 3, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset "
     "output_sequence"},
    {"GRU", 7, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset"},
    {"GRU", 14, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "linear_before_reset"},
    {"Gather", 1, 2, 2, 1, "axis"},
    {"GatherElements", 11, 2, 2, 1, "axis"},
    {"GatherND", 11, 2, 2, 1, ""},
    {"GatherND", 12, 2, 2, 1, "batch_dims"},
    {"Gelu", 20, 1, 1, 1, "approximate"},
    {"Gemm", 1, 3, 3, 1, "alpha beta broadcast transA transB"},
    {"Gemm", 7, 3, 3, 1, "alpha beta transA transB"},
    {"Gemm", 11, 2, 3, 1, "alpha beta transA transB"},
    {"GlobalAveragePool", 1, 1, 1, 1, ""},
    {"GlobalLpPool", 1, 1, 1, 1, "p"},
    {"GlobalMaxPool", 1, 1, 1, 1, ""},
    {"Greater", 1, 2, 2, 1, "axis broadcast"},
    {"Greater", 7, 2, 2, 1, ""},
    {"GreaterOrEqual", 12, 2, 2, 1, ""},
    {"GridSample", 16, 2, 2, 1, "align_corners mode padding_mode"},
    {"GroupNormalization", 18, 3, 3, 1, "epsilon num_groups"},
    {"GroupNormalization", 21, 3, 3, 1, "epsilon num_groups stash_type"},
    {"HardSigmoid", 1, 1, 1, 1, "alpha beta consumed_inputs"},
    {"HardSigmoid", 6, 1, 1, 1, "alpha beta"},
    {"HardSwish", 14, 1, 1, 1, ""},
    {"Hardmax", 1, 1, 1, 1, "axis"},
    {"Identity", 1, 1, 1, 1, ""},
    {"InstanceNormalization", 1, 3, 3, 1, "consumed_inputs epsilon"},
    {"InstanceNormalization", 6, 3, 3, 1, "epsilon"},
    {"IsInf", 10, 1, 1, 1, "detect_negative detect_positive"},
    {"IsNaN", 9, 1, 1, 1, ""},
    {"LRN", 1, 1, 1, 1, "alpha beta bias size"},
    {"LSTM", 1, 3, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget "
     "output_sequence"},
    {"LSTM", 7, 3, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
    {"LSTM", 14, 3, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"},
    {"LayerNormalization", 17, 2, 3, 3, "axis epsilon stash_type"},
    {"LeakyRelu", 1, 1, 1, 1, "alpha consumed_inputs"},
    {"LeakyRelu", 6, 1, 1, 1, "alpha"},
    {"Less", 1, 2, 2, 1, "axis broadcast"},
    {"Less", 7, 2, 2, 1, ""},
    {"LessOrEqual", 12, 2, 2, 1, ""},
    {"Log", 1, 1, 1, 1, "consumed_inputs"},
    {"Log", 6, 1, 1, 1, ""},
    {"LogSoftmax", 1, 1, 1, 1, "axis"},
    {"LpNormalization", 1, 1, 1, 1, "axis p"},
    {"LpPool", 1, 1, 1, 1, "auto_pad kernel_shape p pads strides"},
    {"LpPool", 18, 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MatMul", 1, 2, 2, 1, ""},
    {"Max", 1, 1, kAny, 1, "consumed_inputs"},
    {"Max", 6, 1, kAny, 1, ""},
    {"MaxPool", 1, 1, 1, 1, "auto_pad kernel_shape pads strides"},
    {"MaxPool", 8, 1, 1, 2, "auto_pad kernel_shape pads storage_order strides"},
    {"MaxPool", 10, 1, 1, 2,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"Mean", 1, 1, kAny, 1, "consumed_inputs"},
    {"Mean", 6, 1, kAny, 1, ""},
    {"MeanVarianceNormalization", 9, 1, 1, 1, "axes"},
    {"Min", 1, 1, kAny, 1, "consumed_inputs"},
    {"Min", 6, 1, kAny, 1, ""},
    {"Mish", 18, 1, 1, 1, ""},
    {"Mod", 10, 2, 2, 1, "fmod"},
    {"Mul", 1, 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Mul", 6, 2, 2, 1, "axis broadcast"},
    {"Mul", 7, 2, 2, 1, ""},
    {"Neg", 1, 1, 1, 1, "consumed_inputs"},
    {"Neg", 6, 1, 1, 1, ""},
    {"NegativeLogLikelihoodLoss", 12, 2, 3, 1, "ignore_index reduction"},
    {"NonZero", 9, 1, 1, 1, ""},
    {"Not", 1, 1, 1, 1, ""},
    {"OneHot", 9, 3, 3, 1, "axis"},
    {"Or", 1, 2, 2, 1, "axis broadcast"},
    {"Or", 7, 2, 2, 1, ""},
    {"PRelu", 1, 2, 2, 1, "consumed_inputs"},
    {"PRelu", 6, 2, 2, 1, ""},
    {"Pad", 1, 1, 1, 1, "mode paddings value"},
    {"Pad", 2, 1, 1, 1, "mode pads value"},
    {"Pad", 11, 2, 3, 1, "mode"},
    {"Pad", 18, 2, 4, 1, "mode"},
    {"Pow", 1, 2, 2, 1, "axis broadcast"},
    {"Pow", 7, 2, 2, 1, ""},
    {"RMSNormalization", 23, 2, 2, 1, "axis epsilon stash_type"},
    {"RNN", 1, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size output_sequence"},
    {"RNN", 7, 3, 6, 2, "activation_alpha activation_beta activations clip direction hidden_size"},
    {"RNN", 14, 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout"},
    {"RandomNormal", 1, 0, 0, 1, "dtype mean scale seed shape"},
    {"RandomNormalLike", 1, 1, 1, 1, "dtype mean scale seed"},
    {"RandomUniform", 1, 0, 0, 1, "dtype high low seed shape"},
    {"RandomUniformLike", 1, 1, 1, 1, "dtype high low seed"},
    {"Range", 11, 3, 3, 1, ""},
    {"Range", 25, 3, 3, 1, "stash_type"},
    {"Reciprocal", 1, 1, 1, 1, "consumed_inputs"},
    {"Reciprocal", 6, 1, 1, 1, ""},
    {"ReduceL1", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceL1", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceL2", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceL2", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceLogSum", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceLogSum", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceLogSumExp", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceMax", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceMax", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceMean", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceMean", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceMin", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceMin", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceProd", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceProd", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceSum", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceSum", 13, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", 1, 1, 1, 1, "axes keepdims"},
    {"ReduceSumSquare", 18, 1, 2, 1, "keepdims noop_with_empty_axes"},
    {"Relu", 1, 1, 1, 1, "consumed_inputs"},
    {"Relu", 6, 1, 1, 1, ""},
    {"Reshape", 1, 1, 1, 1, "consumed_inputs shape"},
    {"Reshape", 5, 2, 2, 1, ""},
    {"Reshape", 14, 2, 2, 1, "allowzero"},
    {"Resize", 10, 2, 2, 1, "mode"},
    {"Resize", 11, 3, 4, 1,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode"},
    {"Resize", 13, 1, 4, 1,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode"},
    {"Resize", 18, 1, 4, 1,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"RotaryEmbedding", 23, 3, 4, 1, "interleaved num_heads rotary_embedding_dim"},
    {"Round", 11, 1, 1, 1, ""},
    {"Scatter", 9, 3, 3, 1, "axis"},
    {"ScatterElements", 11, 3, 3, 1, "axis"},
    {"ScatterElements", 16, 3, 3, 1, "axis reduction"},
    {"ScatterND", 11, 3, 3, 1, ""},
    {"ScatterND", 16, 3, 3, 1, "reduction"},
    {"Selu", 1, 1, 1, 1, "alpha consumed_inputs gamma"},
    {"Selu", 6, 1, 1, 1, "alpha gamma"},
    {"Shape", 1, 1, 1, 1, ""},
    {"Shape", 15, 1, 1, 1, "end start"},
    {"Shrink", 9, 1, 1, 1, "bias lambd"},
    {"Sigmoid", 1, 1, 1, 1, "consumed_inputs"},
    {"Sigmoid", 6, 1, 1, 1, ""},
    {"Sign", 9, 1, 1, 1, ""},
    {"Sin", 7, 1, 1, 1, ""},
    {"Sinh", 9, 1, 1, 1, ""},
    {"Size", 1, 1, 1, 1, ""},
    {"Slice", 1, 1, 1, 1, "axes ends starts"},
    {"Slice", 10, 3, 5, 1, ""},
    {"Softmax", 1, 1, 1, 1, "axis"},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, 2, "ignore_index reduction"},
    {"Softplus", 1, 1, 1, 1, ""},
    {"Softsign", 1, 1, 1, 1, ""},
    {"SpaceToDepth", 1, 1, 1, 1, "blocksize"},
    {"SpaceToDepth", 25, 1, 1, 1, "blocksize mode"},
    {"Split", 1, 1, 2, kAny, "axis split"},
    {"Split", 2, 1, 1, kAny, "axis split"},
    {"Split", 13, 1, 2, kAny, "axis"},
    {"Split", 18, 1, 2, kAny, "axis num_outputs"},
    {"Sqrt", 1, 1, 1, 1, "consumed_inputs"},
    {"Sqrt", 6, 1, 1, 1, ""},
    {"Squeeze", 1, 1, 1, 1, "axes"},
    {"Squeeze", 13, 1, 2, 1, ""},
    {"Sub", 1, 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Sub", 6, 2, 2, 1, "axis broadcast"},
    {"Sub", 7, 2, 2, 1, ""},
    {"Sum", 1, 1, kAny, 1, "consumed_inputs"},
    {"Sum", 6, 1, kAny, 1, ""},
    {"SwiGLU", 28, 2, 2, 1, "alpha"},
    {"Swish", 24, 1, 1, 1, "alpha"},
    {"Tan", 7, 1, 1, 1, ""},
    {"Tanh", 1, 1, 1, 1, "consumed_inputs"},
    {"Tanh", 6, 1, 1, 1, ""},
    {"ThresholdedRelu", 10, 1, 1, 1, "alpha"},
    {"Tile", 1, 3, 3, 1, ""},
    {"Tile", 6, 2, 2, 1, ""},
    {"TopK", 1, 1, 1, 2, "axis k"},
    {"TopK", 10, 2, 2, 2, "axis"},
    {"TopK", 11, 2, 2, 2, "axis largest sorted"},
    {"Transpose", 1, 1, 1, 1, "perm"},
    {"Trilu", 14, 1, 2, 1, "upper"},
    {"Unsqueeze", 1, 1, 1, 1, "axes"},
    {"Unsqueeze", 13, 2, 2, 1, ""},
    {"Upsample", 1, 1, 1, 1, "height_scale mode width_scale"},
    {"Upsample", 7, 1, 1, 1, "mode scales"},
    {"Upsample", 9, 2, 2, 1, "mode"},
    {"Where", 9, 3, 3, 1, ""},
    {"Xor", 1, 2, 2, 1, "axis broadcast"},
    {"Xor", 7, 2, 2, 1, ""},
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    list.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

std::string range_text(int fewest, int most, std::string_view what) {
  if (most == kAny) return fmt::format("{} or more {}s", fewest, what);
  if (fewest != most) return fmt::format("{} to {} {}s", fewest, most, what);
  return counted(static_cast<std::size_t>(most), what);
}

// All rows of an operator.
std::span<const Signature> versions_of(std::string_view op) {
  const auto [begin, end] = std::ranges::equal_range(kSignatures, op, {}, &Signature::op);
  return {begin, end};
}

// A node of one version; what other versions would take is told apart from what none does.
class Check {
 public:
  Check(const Signature& signature, std::int64_t opset) : signature_(signature), opset_(opset) {}

  void count(int has, int fewest, int Signature::* most, std::string_view what) const {
    if (has >= fewest && has <= signature_.*most) return;
    throw TypeError(fmt::format(
        "it has {}; the operator takes {}{}", counted(static_cast<std::size_t>(has), what),
        range_text(fewest, signature_.*most, what), version_text([&](const Signature& other) {
          return has <= other.*most && has >= (what == "input" ? other.fewest_inputs : 1);
        })));
  }

  void attribute(const std::string& name) const {
    const std::vector<std::string> known = words(signature_.attributes);
    if (std::ranges::find(known, name) != known.end()) return;
    const std::string elsewhere = version_text([&](const Signature& other) {
      return std::ranges::count(words(other.attributes), name) > 0;
    });
    throw TypeError(fmt::format("there is no attribute '{}'{}{}; {}", name, elsewhere,
                                elsewhere.empty() ? did_you_mean(name, known) : "",
                                known.empty() ? "the operator has none"
                                              : fmt::format("it has {}", fmt::join(known, ", "))));
  }

 private:
  template <class Accepts>
  std::string version_text(const Accepts& accepts) const {
    return std::ranges::any_of(versions_of(signature_.op), accepts)
               ? fmt::format(" in version {} of the operators", opset_)
               : "";
  }

  const Signature& signature_;
  std::int64_t opset_;
};

// Those that are left out at the end do not count.
template <class Names>
int count_names(const Names& names) {
  int count = names.size();
  while (count > 0 && names.Get(count - 1).empty()) --count;
  return count;
}

}  // namespace

const Signature* find_signature(std::string_view op, std::int64_t opset) {
  const std::span<const Signature> versions = versions_of(op);
  if (versions.empty()) return nullptr;
  const auto later = std::ranges::upper_bound(versions, opset, {}, &Signature::since);
  return &*(later == versions.begin() ? later : later - 1);
}

void check_signature(const pb::NodeProto& node, std::int64_t opset) {
  const Signature* signature = find_signature(node.op_type(), opset);
  if (signature == nullptr) return;
  const Check check(*signature, opset);
  check.count(count_names(node.input()), signature->fewest_inputs, &Signature::most_inputs,
              "input");
  check.count(count_names(node.output()), 1, &Signature::most_results, "result");
  for (const pb::AttributeProto& attribute : node.attribute()) check.attribute(attribute.name());
}

}  // namespace pantala::onnx
