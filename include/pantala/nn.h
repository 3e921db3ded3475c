// Layers: functions that apply ops and name the parameters that these need. Names, layouts and
// first values are those of PyTorch's modules, so that a PyTorch checkpoint loads as it is:
// linear("fc1", x, 10) makes fc1.weight [10, in] and fc1.bias [10]. Parameters have the dtype of x.
// A mistake is a TypeError that starts with the layer, its name and the line of the call: linear
// "fc2" (net.cpp:41): ...
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/graph.h"
#include "pantala/ops/movement.h"
#include "pantala/tensor.h"

namespace pantala::nn {

enum class Activation {
  identity,
  relu,
  leaky_relu,
  elu,
  gelu,
  gelu_tanh,
  silu,
  mish,
  tanh,
  sigmoid
};
Tensor activate(Operand x, Activation activation);
std::vector<std::string> activation_names();  // in the order above
// TypeError with the nearest name.
Activation activation_of(std::string_view name);

// x itself outside training; otherwise each element is zeroed with probability p and the others are
// scaled by 1 / (1 - p).
Tensor dropout(Operand x, double p = 0.5, bool training = true);

// --- products

struct LinearOptions {
  bool bias = true;
};
// x [..., in] to [..., out]. weight [out, in] and bias [out] start uniform within 1 / sqrt(in).
Tensor linear(std::string_view name, Operand x, std::int64_t out,
              const LinearOptions& options = {});

// Lists hold one entry per spatial axis, or one for all.
struct ConvLayerOptions {
  IntList stride = {1}, padding = {0}, dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
};
// x [batch, in, length]; weight [out, in / groups, kernel] and bias [out] start uniform within 1 /
// sqrt(in / groups * kernel).
Tensor conv1d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
              const ConvLayerOptions& options = {});
// The same for x [batch, in, height, width].
Tensor conv2d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
              const ConvLayerOptions& options = {});

struct ConvTransposeLayerOptions {
  IntList stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
};
// x [batch, in, length]; weight [in, out / groups, kernel] and bias [out] start uniform within 1 /
// sqrt(out / groups * kernel).
Tensor conv_transpose1d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
                        const ConvTransposeLayerOptions& options = {});
// The same for x [batch, in, height, width].
Tensor conv_transpose2d(std::string_view name, Operand x, std::int64_t out, const IntList& kernel,
                        const ConvTransposeLayerOptions& options = {});

// Linear layers of the given output sizes with the activation between them, named as in
// torch.nn.Sequential: name.0, name.2, name.4, ...
Tensor mlp(std::string_view name, Operand x, const IntList& sizes,
           Activation activation = Activation::relu);

// Rows of weight [count, size], drawn from N(0, 1): index [...] to [..., size].
struct EmbeddingOptions {
  DType dtype = f32;
};
Tensor embedding(std::string_view name, Operand index, std::int64_t count, std::int64_t size,
                 const EmbeddingOptions& options = {});

// --- normalisations: weight starts at 1, bias at 0

struct NormLayerOptions {
  double eps = 1e-5;
  bool affine = true;  // weight (and bias)
  bool bias = true;    // layer_norm and group_norm only
};
// Over the last axis.
Tensor layer_norm(std::string_view name, Operand x, const NormLayerOptions& options = {});
Tensor rms_norm(std::string_view name, Operand x, const NormLayerOptions& options = {});
// Channels are axis 1.
Tensor group_norm(std::string_view name, Operand x, std::int64_t groups,
                  const NormLayerOptions& options = {});

struct BatchNormLayerOptions {
  bool training = true;
  double momentum = 0.1, eps = 1e-5;
  bool frozen = false;  // the statistics are kept, in training too; weight and bias are learnt
};
// Over all axes but the channels, axis 1. The states running_mean, running_var and
// num_batches_tracked are used in evaluation and updated by every training step. (Where a group of
// the training step freezes weight and bias, the statistics are kept by themselves:
// TrainingStepOptions::kept_statistics.)
Tensor batch_norm(std::string_view name, Operand x, const BatchNormLayerOptions& options = {});

// --- recurrent layers

struct RecurrentLayerOptions {
  std::int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;    // x and the output are [batch, steps, ...]
  bool bidirectional = false;  // the output has both directions behind each other
  double dropout = 0;          // between layers, in training
  bool training = true;
  // The first states [layers * directions, batch, hidden], zeros if they are not given; c0: lstm.
  std::optional<Tensor> h0 = {}, c0 = {};
};
// The output of the last layer for all steps, and the last states of all layers and directions,
// [layers * directions, batch, hidden].
struct RecurrentOutput {
  Tensor output, h_n;
};
struct LstmOutput {
  Tensor output, h_n, c_n;
};
// x [steps, batch, size] to [steps, batch, directions * hidden], as torch.nn.LSTM: weight_ih_l0
// [4 hidden, size], weight_hh_l0 [4 hidden, hidden], bias_ih_l0 and bias_hh_l0 [4 hidden], l1 for
// the next layer, with _reverse behind it for the other direction; all start uniform within 1 /
// sqrt(hidden).
LstmOutput lstm(std::string_view name, Operand x, std::int64_t hidden,
                const RecurrentLayerOptions& options = {});
// The same with three gates, as torch.nn.GRU.
RecurrentOutput gru(std::string_view name, Operand x, std::int64_t hidden,
                    const RecurrentLayerOptions& options = {});
// Without gates, as torch.nn.RNN: the activation is tanh or relu.
RecurrentOutput rnn(std::string_view name, Operand x, std::int64_t hidden,
                    Activation activation = Activation::tanh,
                    const RecurrentLayerOptions& options = {});

// --- transformers

struct MultiHeadAttentionOptions {
  std::int64_t heads = 1;
  bool causal = false;  // position i sees positions up to i
  bool bias = true;
  double dropout = 0;  // of the attention weights, in training
  bool training = true;
  // A bool mask keeps where it is true (torch.nn.MultiheadAttention drops there), a float mask is
  // added; it broadcasts to [batch, heads, queries, keys].
  std::optional<Tensor> mask = {};
};
// Self attention of x [batch, sequence, size], as torch.nn.MultiheadAttention with batch_first:
// in_proj_weight [3 size, size] (Xavier uniform), in_proj_bias (0), out_proj.weight (as linear),
// out_proj.bias (0).
Tensor multi_head_attention(std::string_view name, Operand x,
                            const MultiHeadAttentionOptions& options = {});
// Queries of one sequence, keys and values of another. If these have another size than the queries,
// q_proj_weight, k_proj_weight and v_proj_weight take the place of in_proj_weight.
Tensor multi_head_attention(std::string_view name, Operand query, Operand key, Operand value,
                            const MultiHeadAttentionOptions& options = {});

struct TransformerEncoderLayerOptions {
  std::int64_t heads = 1;
  std::int64_t feed_forward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::relu;
  bool norm_first = false;  // normalise the input of each half instead of the sum behind it
  bool causal = false;
  bool bias = true;
  bool training = true;
  double eps = 1e-5;
  std::optional<Tensor> mask = {};
};
// Self attention and a feed-forward network on x [batch, sequence, size], as
// torch.nn.TransformerEncoderLayer with batch_first: self_attn, linear1, linear2, norm1, norm2.
Tensor transformer_encoder_layer(std::string_view name, Operand x,
                                 const TransformerEncoderLayerOptions& options = {});

}  // namespace pantala::nn
