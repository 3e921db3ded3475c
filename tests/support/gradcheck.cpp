#include "support/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/philox.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"

namespace pantala::tests {

namespace {
double unit(const std::string& name, std::int64_t index) {
  return bits_to_unit(random_bits(fnv1a(name), 0, 0, static_cast<std::uint64_t>(index)));
}

Literal weights(const Type& type, const std::string& name) {
  Literal out(Type{type.dtype, type.shape});
  for (std::int64_t k = 0; k < out.numel(); ++k) out.f()[k] = 0.5 + unit(name, k);
  return out;
}

// x and at most 0.03 more or less, so that it stays in a sample's range. Neither linear nor long as
// code: every sample of every op is compiled with it.
Tensor bent(const Tensor& x) { return x + x / (x * x + 1.0) * 0.06; }

// Sums every element of the values, each times its own weight.
Tensor weighted_sum(Graph& graph, const std::vector<Tensor>& values, const std::string& name) {
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k].numel() == 0) continue;
    const Tensor weight = graph.constant(weights(values[k].type(), name + std::to_string(k)));
    parts.push_back(cast(sum(values[k] * weight), f64));
  }
  return parts.empty() ? Tensor() : add_n(parts);
}
}  // namespace

Literal draw(const ir::SampleInput& input, const std::string& name) {
  Literal out(Type{input.dtype, input.shape});
  const std::int64_t last = input.shape.rank() > 0 ? input.shape.back() : 1;
  for (std::int64_t k = 0; k < out.numel(); ++k) {
    const double u = unit(name, k);
    if (out.is_float())
      out.f()[k] = input.low + u * (input.high - input.low);
    else
      out.i()[k] =
          wrap_to(input.dtype,
                  static_cast<std::int64_t>(std::floor(input.low + u * (input.high - input.low))));
    // Without repetition: a rotation of the range, starting elsewhere in each row.
    if (input.distinct)
      out.i()[k] = static_cast<std::int64_t>(input.low) +
                   (k % last + k / last) % static_cast<std::int64_t>(input.high - input.low);
  }
  return out;
}

Subject make_subject(const ir::OpDef& op, const ir::Sample& sample) {
  Subject s;
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const ir::SampleInput& in = sample.inputs[k];
    const bool differentiable = is_float(in.dtype) && !op.is_index(static_cast<int>(k));
    const std::string name = fmt::format("{}{}", differentiable ? "p" : "i", k);
    s.bindings[name] = draw(in, op.name + name);
    if (differentiable) {
      s.parameters.push_back(s.graph.parameter(name, in.shape, init::zeros(), in.dtype));
      inputs.push_back(bent(s.parameters.back()));
    } else {
      inputs.push_back(s.graph.input(name, in.shape, in.dtype));
    }
  }
  s.results = s.graph.data()->append(op, inputs, sample.attrs, {});
  std::vector<Tensor> floats;
  for (const Tensor& t : s.results)
    if (is_float(t.dtype())) floats.push_back(t);
  s.loss = weighted_sum(s.graph, floats, "loss");
  return s;
}

std::string check_gradients(const Graph& graph, const Tensor& scalar,
                            const std::vector<Tensor>& parameters, const ref::Bindings& given,
                            double tolerance) {
  // Parameters without a given value are checked at their first one.
  ref::Bindings bindings = given;
  for (const Tensor& p : parameters)
    bindings.try_emplace(graph.data()->leaf_name(p.id().node), ref::evaluate(graph, {p}, given)[0]);
  const Gradients d = differentiate(graph, scalar, parameters);
  verify(d.graph);
  const std::vector<Literal> gradients = ref::evaluate(d.graph, d.gradients, bindings);
  const auto loss_at = [&](const ref::Bindings& at) {
    return ref::evaluate(graph, {scalar}, at)[0].at(0);
  };
  constexpr double kStep = 1e-5;
  constexpr std::int64_t kMost = 40;  // elements checked per input
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::string& name = graph.data()->leaf_name(parameters[p].id().node);
    const Literal& gradient = gradients[p];
    double scale = 0.01;
    for (const double g : gradient.f()) scale = std::max(scale, std::fabs(g));
    const std::int64_t stride = std::max<std::int64_t>(1, gradient.numel() / kMost);
    for (std::int64_t k = 0; k < gradient.numel(); k += stride) {
      ref::Bindings moved = bindings;
      double& x = moved.at(name).f()[k];
      const double centre = x;
      // Two step sizes, extrapolated: the error is of fourth order.
      const auto difference = [&](double h) {
        x = centre + h;
        const double up = loss_at(moved);
        x = centre - h;
        return (up - loss_at(moved)) / (2 * h);
      };
      const double expected = (4 * difference(kStep) - difference(2 * kStep)) / 3;
      if (!(std::fabs(expected - gradient.f()[k]) <= tolerance * scale))
        return fmt::format("d/d{}[{}]: central differences {}, gradient {}, scale {}", name, k,
                           expected, gradient.f()[k], scale);
    }
  }
  return "";
}

std::string check_sample(const ir::OpDef& op, const ir::Sample& sample, int order,
                         double tolerance) {
  Subject s = make_subject(op, sample);
  if (!s.loss.valid() || s.parameters.empty()) return "";
  if (order == 1) return check_gradients(s.graph, s.loss, s.parameters, s.bindings, tolerance);
  Gradients d = differentiate(s.graph, s.loss, s.parameters);
  const Tensor scalar = weighted_sum(d.graph, d.gradients, "second");
  if (!scalar.valid()) return "";
  std::vector<Tensor> parameters;
  for (const Tensor& p : s.parameters) parameters.push_back(d.at(p));
  return check_gradients(d.graph, scalar, parameters, s.bindings, tolerance);
}

}  // namespace pantala::tests
