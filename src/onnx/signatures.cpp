#include "onnx/signatures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

constexpr int kAny = std::numeric_limits<int>::max();

// In the order of their names.
constexpr Signature kSignatures[] = {
    {"Abs", 1, 1, 1, "consumed_inputs"},
    {"Acos", 1, 1, 1, ""},
    {"Acosh", 1, 1, 1, ""},
    {"Add", 2, 2, 1, "axis broadcast consumed_inputs"},
    {"And", 2, 2, 1, "axis broadcast"},
    {"ArgMax", 1, 1, 1, "axis keepdims select_last_index"},
    {"ArgMin", 1, 1, 1, "axis keepdims select_last_index"},
    {"Asin", 1, 1, 1, ""},
    {"Asinh", 1, 1, 1, ""},
    {"Atan", 1, 1, 1, ""},
    {"Atanh", 1, 1, 1, ""},
    {"Attention", 3, 7, 4,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"AveragePool", 1, 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", 5, 5, 5,
     "consumed_inputs epsilon is_test momentum spatial training_mode"},
    {"Bernoulli", 1, 1, 1, "dtype seed"},
    {"Cast", 1, 1, 1, "round_mode saturate to"},
    {"CastLike", 2, 2, 1, "round_mode saturate"},
    {"Ceil", 1, 1, 1, "consumed_inputs"},
    {"Celu", 1, 1, 1, "alpha"},
    {"Clip", 1, 3, 1, "consumed_inputs max min"},
    {"Compress", 2, 2, 1, "axis"},
    {"Concat", 1, kAny, 1, "axis"},
    {"Constant", 0, 0, 1,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", 1, 1, 1, "value"},
    {"Conv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", 2, 3, 1,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"Cos", 1, 1, 1, ""},
    {"Cosh", 1, 1, 1, ""},
    {"CumSum", 2, 2, 1, "exclusive reverse"},
    {"DepthToSpace", 1, 1, 1, "blocksize mode"},
    {"Div", 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Dropout", 1, 3, 2, "consumed_inputs is_test ratio seed"},
    {"Einsum", 1, kAny, 1, "equation"},
    {"Elu", 1, 1, 1, "alpha consumed_inputs"},
    {"Equal", 2, 2, 1, "axis broadcast"},
    {"Erf", 1, 1, 1, ""},
    {"Exp", 1, 1, 1, "consumed_inputs"},
    {"Expand", 2, 2, 1, ""},
    {"EyeLike", 1, 1, 1, "dtype k"},
    {"Flatten", 1, 1, 1, "axis"},
    {"Floor", 1, 1, 1, "consumed_inputs"},
    {"GRU", 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "linear_before_reset output_sequence"},
    {"Gather", 2, 2, 1, "axis"},
    {"GatherElements", 2, 2, 1, "axis"},
    {"GatherND", 2, 2, 1, "batch_dims"},
    {"Gelu", 1, 1, 1, "approximate"},
    {"Gemm", 2, 3, 1, "alpha beta broadcast transA transB"},
    {"GlobalAveragePool", 1, 1, 1, ""},
    {"GlobalLpPool", 1, 1, 1, "p"},
    {"GlobalMaxPool", 1, 1, 1, ""},
    {"Greater", 2, 2, 1, "axis broadcast"},
    {"GreaterOrEqual", 2, 2, 1, ""},
    {"GridSample", 2, 2, 1, "align_corners mode padding_mode"},
    {"GroupNormalization", 3, 3, 1, "epsilon num_groups stash_type"},
    {"HardSigmoid", 1, 1, 1, "alpha beta consumed_inputs"},
    {"HardSwish", 1, 1, 1, ""},
    {"Hardmax", 1, 1, 1, "axis"},
    {"Identity", 1, 1, 1, ""},
    {"InstanceNormalization", 3, 3, 1, "consumed_inputs epsilon"},
    {"IsInf", 1, 1, 1, "detect_negative detect_positive"},
    {"IsNaN", 1, 1, 1, ""},
    {"LRN", 1, 1, 1, "alpha beta bias size"},
    {"LSTM", 3, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout "
     "output_sequence"},
    {"LayerNormalization", 2, 3, 3, "axis epsilon stash_type"},
    {"LeakyRelu", 1, 1, 1, "alpha consumed_inputs"},
    {"Less", 2, 2, 1, "axis broadcast"},
    {"LessOrEqual", 2, 2, 1, ""},
    {"Log", 1, 1, 1, "consumed_inputs"},
    {"LogSoftmax", 1, 1, 1, "axis"},
    {"LpNormalization", 1, 1, 1, "axis p"},
    {"LpPool", 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MatMul", 2, 2, 1, ""},
    {"Max", 1, kAny, 1, "consumed_inputs"},
    {"MaxPool", 1, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"Mean", 1, kAny, 1, "consumed_inputs"},
    {"MeanVarianceNormalization", 1, 1, 1, "axes"},
    {"Min", 1, kAny, 1, "consumed_inputs"},
    {"Mish", 1, 1, 1, ""},
    {"Mod", 2, 2, 1, "fmod"},
    {"Mul", 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Neg", 1, 1, 1, "consumed_inputs"},
    {"NegativeLogLikelihoodLoss", 2, 3, 1, "ignore_index reduction"},
    {"NonZero", 1, 1, 1, ""},
    {"Not", 1, 1, 1, ""},
    {"OneHot", 3, 3, 1, "axis"},
    {"Or", 2, 2, 1, "axis broadcast"},
    {"PRelu", 2, 2, 1, "consumed_inputs"},
    {"Pad", 1, 4, 1, "mode paddings pads value"},
    {"Pow", 2, 2, 1, "axis broadcast"},
    {"RMSNormalization", 2, 2, 1, "axis epsilon stash_type"},
    {"RNN", 3, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "output_sequence"},
    {"RandomNormal", 0, 0, 1, "dtype mean scale seed shape"},
    {"RandomNormalLike", 1, 1, 1, "dtype mean scale seed"},
    {"RandomUniform", 0, 0, 1, "dtype high low seed shape"},
    {"RandomUniformLike", 1, 1, 1, "dtype high low seed"},
    {"Range", 3, 3, 1, "stash_type"},
    {"Reciprocal", 1, 1, 1, "consumed_inputs"},
    {"ReduceL1", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceL2", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSum", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMax", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMean", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMin", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceProd", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceSum", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"Relu", 1, 1, 1, "consumed_inputs"},
    {"Reshape", 1, 2, 1, "allowzero consumed_inputs shape"},
    {"Resize", 1, 4, 1,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"RotaryEmbedding", 3, 4, 1, "interleaved num_heads rotary_embedding_dim"},
    {"Round", 1, 1, 1, ""},
    {"Scatter", 3, 3, 1, "axis"},
    {"ScatterElements", 3, 3, 1, "axis reduction"},
    {"ScatterND", 3, 3, 1, "reduction"},
    {"Selu", 1, 1, 1, "alpha consumed_inputs gamma"},
    {"Shape", 1, 1, 1, "end start"},
    {"Shrink", 1, 1, 1, "bias lambd"},
    {"Sigmoid", 1, 1, 1, "consumed_inputs"},
    {"Sign", 1, 1, 1, ""},
    {"Sin", 1, 1, 1, ""},
    {"Sinh", 1, 1, 1, ""},
    {"Size", 1, 1, 1, ""},
    {"Slice", 1, 5, 1, "axes ends starts"},
    {"Softmax", 1, 1, 1, "axis"},
    {"SoftmaxCrossEntropyLoss", 2, 3, 2, "ignore_index reduction"},
    {"Softplus", 1, 1, 1, ""},
    {"Softsign", 1, 1, 1, ""},
    {"SpaceToDepth", 1, 1, 1, "blocksize mode"},
    {"Split", 1, 2, kAny, "axis num_outputs split"},
    {"Sqrt", 1, 1, 1, "consumed_inputs"},
    {"Squeeze", 1, 2, 1, "axes"},
    {"Sub", 2, 2, 1, "axis broadcast consumed_inputs"},
    {"Sum", 1, kAny, 1, "consumed_inputs"},
    {"SwiGLU", 2, 2, 1, "alpha"},
    {"Swish", 1, 1, 1, "alpha"},
    {"Tan", 1, 1, 1, ""},
    {"Tanh", 1, 1, 1, "consumed_inputs"},
    {"ThresholdedRelu", 1, 1, 1, "alpha"},
    {"Tile", 2, 3, 1, ""},
    {"TopK", 1, 2, 2, "axis k largest sorted"},
    {"Transpose", 1, 1, 1, "perm"},
    {"Trilu", 1, 2, 1, "upper"},
    {"Unsqueeze", 1, 2, 1, "axes"},
    {"Upsample", 1, 2, 1, "height_scale mode scales width_scale"},
    {"Where", 3, 3, 1, ""},
    {"Xor", 2, 2, 1, "axis broadcast"},
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

void check_count(int has, int fewest, int most, std::string_view what) {
  if (has < fewest || has > most)
    throw TypeError(fmt::format("it has {}; the operator takes {}",
                                counted(static_cast<std::size_t>(has), what),
                                range_text(fewest, most, what)));
}

// Those that are left out at the end do not count.
template <class Names>
int count_names(const Names& names) {
  int count = names.size();
  while (count > 0 && names.Get(count - 1).empty()) --count;
  return count;
}

}  // namespace

const Signature* find_signature(std::string_view op) {
  const auto found = std::ranges::lower_bound(kSignatures, op, {}, &Signature::op);
  return found != std::end(kSignatures) && found->op == op ? &*found : nullptr;
}

void check_signature(const pb::NodeProto& node) {
  const Signature* signature = find_signature(node.op_type());
  if (signature == nullptr) return;
  check_count(count_names(node.input()), signature->fewest_inputs, signature->most_inputs, "input");
  check_count(count_names(node.output()), 1, signature->most_results, "result");
  const std::vector<std::string> known = words(signature->attributes);
  for (const pb::AttributeProto& attribute : node.attribute()) {
    if (std::find(known.begin(), known.end(), attribute.name()) != known.end()) continue;
    const std::string names =
        known.empty() ? "the operator has none" : fmt::format("it has {}", fmt::join(known, ", "));
    throw TypeError(fmt::format("there is no attribute '{}'{}; {}", attribute.name(),
                                did_you_mean(attribute.name(), known), names));
  }
}

}  // namespace pantala::onnx
