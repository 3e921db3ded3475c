// Recurrent layers: lstm, gru, rnn. Layers and directions are one op each; the products of the
// input with weight_ih are made for all steps at once.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "nn/layer.h"
#include "pantala/nn.h"
#include "pantala/ops.h"

namespace pantala::nn {

namespace {

constexpr std::int64_t kMostHidden = std::int64_t{1} << 40;  // all sizes can be counted

// The parameters of one layer in one direction; biases are invalid without bias.
struct Parameters {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
// The first states [batch, hidden], or those of all steps [steps, batch, hidden]; c of an lstm
// only.
struct States {
  Tensor h, c;
};
using Direction =
    std::function<States(const Tensor& x, const Parameters&, const States& first, bool reverse)>;

struct Stack {
  Tensor output, h_n, c_n;
};

class RecurrentLayers {
 public:
  RecurrentLayers(Layer& layer, std::int64_t hidden, int gates,
                  const RecurrentLayerOptions& options)
      : layer_(layer), hidden_(hidden), gates_(gates), options_(options) {
    layer.require_float();
    layer.require_rank(3, options.batch_first ? "[batch, steps, size]" : "[steps, batch, size]");
    layer.require_positive(hidden, "the hidden size");
    if (hidden > kMostHidden)
      layer.fail(fmt::format("the hidden size must be at most {}, got {}", kMostHidden, hidden));
    layer.require_positive(options.layers, "layers");
    layer.require_probability(options.dropout, "dropout");
    if (layer.x().dim(options.batch_first ? 1 : 0) == 0)
      layer.fail("x has no steps: " + layer.x().type().str());
    for (const auto& [given, what] : {std::pair{&options.h0, "h0"}, std::pair{&options.c0, "c0"}})
      if (*given) check_first_state(**given, what);
  }

  Stack run(const Direction& direction, bool has_cells) {
    Tensor x = options_.batch_first ? permute(layer_.x(), {1, 0, 2}) : layer_.x();
    std::vector<Tensor> last_h, last_c;
    for (std::int64_t k = 0; k < options_.layers; ++k) {
      if (k > 0) x = dropped(x);
      std::vector<Tensor> outputs;
      for (std::int64_t d = 0; d < directions(); ++d) {
        const bool reverse = d == 1;
        const std::int64_t number = k * directions() + d;
        const States states =
            direction(x, parameters(k, x.dim(2), reverse), first_states(number, x), reverse);
        outputs.push_back(states.h);
        last_h.push_back(last(states.h, reverse));
        if (has_cells) last_c.push_back(last(states.c, reverse));
      }
      x = outputs.size() == 1 ? outputs[0] : concat(outputs, 2);
    }
    return {options_.batch_first ? permute(x, {1, 0, 2}) : x, stack(last_h),
            has_cells ? stack(last_c) : Tensor()};
  }

 private:
  std::int64_t directions() const { return options_.bidirectional ? 2 : 1; }

  void check_first_state(const Tensor& state, std::string_view what) const {
    const Shape wanted{options_.layers * directions(), layer_.x().dim(options_.batch_first ? 0 : 1),
                       hidden_};
    if (!(state.shape() == wanted) || state.dtype() != layer_.x().dtype())
      layer_.fail(fmt::format("{} must be {} [layers * directions, batch, hidden], got {}", what,
                              Type{layer_.x().dtype(), wanted}.str(), state.type().str()));
  }

  Tensor dropped(const Tensor& x) const {
    return options_.dropout > 0 ? dropout(x, options_.dropout, options_.training) : x;
  }

  Parameters parameters(std::int64_t k, std::int64_t in, bool reverse) {
    const double bound = 1 / std::sqrt(static_cast<double>(hidden_));
    const auto make = [&](const char* name, const IntList& sizes) {
      return layer_.parameter(fmt::format("{}_l{}{}", name, k, reverse ? "_reverse" : ""), sizes,
                              init::uniform(-bound, bound));
    };
    Parameters p{make("weight_ih", {gates_ * hidden_, in}),
                 make("weight_hh", {gates_ * hidden_, hidden_}),
                 {},
                 {}};
    if (options_.bias) {
      p.bias_ih = make("bias_ih", {gates_ * hidden_});
      p.bias_hh = make("bias_hh", {gates_ * hidden_});
    }
    return p;
  }

  // Zeros, unless they were given.
  States first_states(std::int64_t number, const Tensor& x) const {
    const auto pick = [&](const std::optional<Tensor>& given) {
      return given ? squeeze(slice_axis(*given, 0, number, number + 1), 0)
                   : full_beside(x, {x.dim(1), hidden_}, 0);
    };
    return {pick(options_.h0), pick(options_.c0)};
  }

  // The state of the step that is walked last.
  Tensor last(const Tensor& states, bool reverse) const {
    const std::int64_t at = reverse ? 0 : states.dim(0) - 1;
    return squeeze(slice_axis(states, 0, at, at + 1), 0);
  }

  Layer& layer_;
  std::int64_t hidden_;
  std::int64_t gates_;
  const RecurrentLayerOptions& options_;
};

// The input's part of the gates, with a bias that may be invalid: [steps, batch, gates * hidden].
Tensor input_gates(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.valid() ? pantala::linear(x, weight, bias) : pantala::linear(x, weight);
}

Tensor both(const Parameters& p) { return p.bias_ih.valid() ? p.bias_ih + p.bias_hh : Tensor(); }

Tensor swapped(const Tensor& weight) { return permute(weight, {1, 0}); }

States run_lstm(const Tensor& x, const Parameters& p, const States& first, bool reverse) {
  const LstmStates states = pantala::lstm(input_gates(x, p.weight_ih, both(p)),
                                          swapped(p.weight_hh), first.h, first.c, {reverse});
  return {states.h, states.c};
}

// The new gate's recurrent bias stays apart: the reset gate scales it.
States run_gru(const Tensor& x, const Parameters& p, const States& first, bool reverse) {
  const std::int64_t hidden = first.h.dim(1);
  Tensor outside, inside = full_beside(x, {hidden}, 0);
  if (p.bias_ih.valid()) {
    outside = p.bias_ih + concat({slice_axis(p.bias_hh, 0, 0, 2 * hidden), inside});
    inside = slice_axis(p.bias_hh, 0, 2 * hidden, 3 * hidden);
  }
  return {pantala::gru(input_gates(x, p.weight_ih, outside), swapped(p.weight_hh), inside, first.h,
                       {reverse}),
          {}};
}

}  // namespace

LstmOutput lstm(std::string_view name, Operand x, std::int64_t hidden,
                const RecurrentLayerOptions& options) {
  Layer layer("lstm", name, x);
  const Stack result = RecurrentLayers(layer, hidden, 4, options).run(run_lstm, true);
  return {result.output, result.h_n, result.c_n};
}

RecurrentOutput gru(std::string_view name, Operand x, std::int64_t hidden,
                    const RecurrentLayerOptions& options) {
  Layer layer("gru", name, x);
  if (options.c0) layer.fail("c0 belongs to an lstm");
  const Stack result = RecurrentLayers(layer, hidden, 3, options).run(run_gru, false);
  return {result.output, result.h_n};
}

RecurrentOutput rnn(std::string_view name, Operand x, std::int64_t hidden, Activation activation,
                    const RecurrentLayerOptions& options) {
  Layer layer("rnn", name, x);
  if (options.c0) layer.fail("c0 belongs to an lstm");
  if (activation != Activation::tanh && activation != Activation::relu)
    layer.fail("the activation must be tanh or relu");
  const bool relu = activation == Activation::relu;
  const Stack result =
      RecurrentLayers(layer, hidden, 1, options)
          .run(
              [relu](const Tensor& in, const Parameters& p, const States& first, bool reverse) {
                return States{pantala::rnn(input_gates(in, p.weight_ih, both(p)),
                                           swapped(p.weight_hh), first.h, {reverse, relu}),
                              {}};
              },
              false);
  return {result.output, result.h_n};
}

}  // namespace pantala::nn
