// Activations: pointwise composites. Each body is the meaning (on numbers) and the expansion (on
// tensors); gradients are given where a form from the result is shorter or stabler than the
// derivative of the body.
#include "ops/activation.h"

#include <cmath>
#include <numbers>

#include "ops/define.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "activation";
};

struct Relu : Pointwise, Family {
  static constexpr OpInfo info{"relu", "(x) -> y", "max(x, 0); the gradient at 0 is 0.", "Relu"};
  static constexpr auto body = [](auto x) { return maximum(x, 0.0); };
  static void grad(GradContext& g) {
    g.give(0, [&] { return where(le(g.out(), 0.0), 0.0, g.dy()); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{}}); }
};

struct LeakyRelu : op::LeakyRelu, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x above 0, slope * x below.", "LeakyRelu"};
  static constexpr auto body = [](auto x, const Attrs& a) {
    return where(gt(x, 0.0), x, x * a.slope);
  };
  static std::vector<Sample> samples() { return pointwise_samples({{}}, {0.1}); }
};

struct Elu : op::Elu, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x above 0, alpha * (e ** x - 1) below.", "Elu"};
  // The exponential is taken of min(x, 0): it cannot overflow on the side that is not chosen.
  static constexpr auto body = [](auto x, const Attrs& a) {
    return where(gt(x, 0.0), x, expm1(minimum(x, 0.0)) * a.alpha);
  };
  static void grad(GradContext& g, const Attrs& a) {
    g.give(0, [&] {
      return where(gt(g.in(), 0.0), g.dy(), g.dy() * exp(minimum(g.in(), 0.0)) * a.alpha);
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-3, 3}}, {1.3}); }
};

struct Sigmoid : op::Sigmoid, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y",
                               "1 / (1 + e ** -x), without overflow on either side.", "Sigmoid"};
  static Number scalar(Number x) { return ir::sigmoid(x); }
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() * g.out() * (1.0 - g.out()); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-4, 4}}); }
};

struct Silu : op::Silu, Pointwise, Family {
  static constexpr OpInfo info{name, "(x) -> y", "x * sigmoid(x)."};
  static constexpr auto body = [](auto x) { return x * sigmoid(x); };
  static std::vector<Sample> samples() { return pointwise_samples({{-4, 4}}); }
};

struct Gelu : Pointwise, Family {
  static constexpr OpInfo info{"gelu", "(x) -> y",
                               "x times the normal distribution function of x, with erf.", "Gelu"};
  static constexpr auto body = [](auto x) {
    return x * 0.5 * (erf(x * (1 / std::numbers::sqrt2)) + 1.0);
  };
  static std::vector<Sample> samples() { return pointwise_samples({{-3, 3}}); }
};

struct GeluTanh : Pointwise, Family {
  static constexpr OpInfo info{
      "gelu_tanh", "(x) -> y",
      "The tanh approximation of gelu: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."};
  static constexpr auto body = [](auto x) {
    const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return x * 0.5 * (tanh((x + x * x * x * 0.044715) * c) + 1.0);
  };
  static std::vector<Sample> samples() { return pointwise_samples({{-3, 3}}); }
};

struct Softplus : Pointwise, Family {
  static constexpr OpInfo info{"softplus", "(x) -> y", "log(1 + e ** x), without overflow.",
                               "Softplus"};
  static constexpr auto body = [](auto x) { return maximum(x, 0.0) + log1p(exp(-abs(x))); };
  static void grad(GradContext& g) {
    g.give(0, [&] { return g.dy() * sigmoid(g.in()); });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-5, 5}}); }
};

struct Mish : Pointwise, Family {
  static constexpr OpInfo info{"mish", "(x) -> y", "x * tanh(softplus(x)).", "Mish"};
  static constexpr auto body = [](auto x) {
    return x * tanh(maximum(x, 0.0) + log1p(exp(-abs(x))));
  };
  static void grad(GradContext& g) {
    g.give(0, [&] {
      const Tensor t = tanh(softplus(g.in()));
      return g.dy() * (t + g.in() * (1.0 - t * t) * sigmoid(g.in()));
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-4, 4}}); }
};

struct Hardsigmoid : Pointwise, Family {
  static constexpr OpInfo info{"hardsigmoid", "(x) -> y", "x / 6 + 1/2, kept in [0, 1].",
                               "HardSigmoid"};
  static constexpr auto body = [](auto x) { return minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0; };
  static void grad(GradContext& g) {
    g.give(0, [&] {
      return where(logical_and(gt(g.in(), -3.0), lt(g.in(), 3.0)), g.dy() / 6.0, 0.0);
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-5, 5}}); }
};

struct Hardswish : Pointwise, Family {
  static constexpr OpInfo info{"hardswish", "(x) -> y", "x * hardsigmoid(x).", "HardSwish"};
  static constexpr auto body = [](auto x) { return x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0; };
  static void grad(GradContext& g) {
    g.give(0, [&] {
      const Tensor& x = g.in();
      return where(le(x, -3.0), 0.0, where(ge(x, 3.0), g.dy(), g.dy() * (x / 3.0 + 0.5)));
    });
  }
  static std::vector<Sample> samples() { return pointwise_samples({{-5, 5}}); }
};

struct Swiglu : Pointwise, Family {
  static constexpr OpInfo info{"swiglu", "(gate, up) -> y", "silu(gate) * up."};
  static constexpr auto body = [](auto gate, auto up) { return gate * sigmoid(gate) * up; };
  static std::vector<Sample> samples() { return pointwise_samples({{-4, 4}, {}}); }
};

}  // namespace

std::vector<const OpDef*> activation_ops() {
  return family<Relu, LeakyRelu, Elu, Sigmoid, Silu, Gelu, GeluTanh, Softplus, Mish, Hardsigmoid,
                Hardswish, Swiglu>();
}

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor relu(Operand x) { return make<Relu>({x}); }
Tensor leaky_relu(Operand x, double slope) { return make<LeakyRelu>({x}, {slope}); }
Tensor elu(Operand x, double alpha) { return make<Elu>({x}, {alpha}); }
Tensor sigmoid(Operand x) { return make<Sigmoid>({x}); }
Tensor silu(Operand x) { return make<Silu>({x}); }
Tensor gelu(Operand x) { return make<Gelu>({x}); }
Tensor gelu_tanh(Operand x) { return make<GeluTanh>({x}); }
Tensor softplus(Operand x) { return make<Softplus>({x}); }
Tensor mish(Operand x) { return make<Mish>({x}); }
Tensor hardswish(Operand x) { return make<Hardswish>({x}); }
Tensor hardsigmoid(Operand x) { return make<Hardsigmoid>({x}); }
Tensor swiglu(Operand gate, Operand up) { return make<Swiglu>({gate, up}); }

}  // namespace pantala
