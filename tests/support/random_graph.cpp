#include "support/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/gradcheck.h"
#include "support/random_layers.h"

namespace pantala::tests {

std::uint64_t Random::next() { return mix64(state_ += 0x9E3779B97F4A7C15); }

const std::vector<const ir::OpDef*>& sampled_ops() {
  static const std::vector<const ir::OpDef*> all = [] {
    std::vector<const ir::OpDef*> list;
    for (const ir::OpDef* op : ops::table().all())
      if (op->samples && !op->samples().empty()) list.push_back(op);
    return list;
  }();
  return all;
}

namespace {

constexpr std::int64_t kSizes[] = {0, 1, 1, 2, 3, 5, 7, 17};
constexpr std::int64_t kMostElements = 3000;  // of a value that is used again
constexpr double kLargestInteger = 3;         // of the leaves of exact graphs

// Pointwise ops that are exact on small integers, and whose gradients are.
constexpr std::array<std::string_view, 18> kExactOps = {
    "add",   "sub",  "mul",   "neg",   "abs", "maximum", "minimum", "relu",  "square",
    "where", "sign", "floor", "add_n", "lt",  "ge",      "eq",      "clamp", "round"};

double rounded(double value, DType dtype) {
  return dtype == f32 ? static_cast<double>(static_cast<float>(value)) : value;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options) {}

  RandomGraph run() {
    for (int k = 0; k < options_.steps; ++k) add_step();
    add_results();
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.graph; }

  void add_step() {
    const double kind = static_cast<double>(random_.below(100)) / 100;
    if (kind < 0.3) return add_pointwise();
    if (kind < 0.6 && !options_.exact) return add_sample();
    add_layer();
  }

  // The dtype of a sample in this graph; f64 is asked for where nothing else is taken.
  DType dtype_of(DType sample) const { return sample == f32 ? options_.dtype : sample; }

  Literal values_of(const ir::SampleInput& in, const std::string& name) const {
    ir::SampleInput range = in;
    const bool integers = options_.exact && is_float(in.dtype);
    if (integers) {
      range.low = -kLargestInteger;
      range.high = kLargestInteger;
    }
    Literal values = draw(range, name);
    if (values.is_float())
      for (double& v : values.f()) v = integers ? std::round(v) : rounded(v, in.dtype);
    return values;
  }

  // A new leaf with values in the range that the op asks for.
  Tensor leaf(const ir::SampleInput& in) {
    const std::string name = fmt::format("{}{}", is_float(in.dtype) ? "p" : "i", leaves_++);
    result_.bindings[name] = values_of(in, name);
    if (!is_float(in.dtype)) return graph().input(name, in.shape, in.dtype);
    if (random_.chance(0.3)) return graph().input(name, in.shape, in.dtype);
    const Tensor p = graph().parameter(
        name, in.shape, random_.chance(0.5) ? init::normal() : init::constant(-0.0), in.dtype);
    result_.wrt.push_back(p);
    return p;
  }

  // A value of the pool brought to the wanted type and range: cut or spread to the right number of
  // elements, and squeezed by a sigmoid (small integers: now and then cut off).
  Tensor adapted(const Tensor& from, const ir::SampleInput& in) {
    Tensor t = cast(from, in.dtype);
    if (t.shape() != in.shape) {
      const std::int64_t need = in.shape.numel();
      t = reshape(t, {t.numel()});
      if (t.numel() >= need)
        t = slice_axis(t, 0, 0, need);
      else
        t = broadcast_to(slice_axis(t, 0, 0, 1), Shape{need});
      t = reshape(t, in.shape.vec());
    }
    if (options_.exact)
      return random_.chance(0.7) ? clamp(t, -kLargestInteger, kLargestInteger) : t;
    return sigmoid(t) * (in.high - in.low) + in.low;
  }

  Tensor operand(ir::SampleInput in) {
    in.dtype = dtype_of(in.dtype);
    if (!is_float(in.dtype) || pool_.empty() || random_.chance(0.3)) return leaf(in);
    const Tensor from = random_.pick(pool_);
    return from.numel() == 0 && in.shape.numel() != 0 ? leaf(in) : adapted(from, in);
  }

  bool usable(const ir::OpDef& op, const ir::Sample& sample) const {
    if (!options_.differentiable || op.differentiable()) return true;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      if (is_float(sample.inputs[k].dtype) && !op.is_index(static_cast<int>(k))) return false;
    return true;
  }

  void keep(const std::vector<Tensor>& results) {
    for (const Tensor& t : results) {
      if (is_float(t.dtype()) && t.numel() <= kMostElements) pool_.push_back(t);
      if (random_.chance(0.5)) named_.push_back(t);
    }
  }

  void add_sample() {
    const ir::OpDef& op = *random_.pick(sampled_ops());
    const ir::Sample sample = drawn_sample(op);
    if (!usable(op, sample)) return;
    std::vector<Tensor> inputs;
    for (const ir::SampleInput& in : sample.inputs) inputs.push_back(operand(in));
    keep(graph().data()->append(op, inputs, sample.attrs, {}));
  }

  ir::Sample drawn_sample(const ir::OpDef& op) {
    ir::Sample sample = random_.pick(op.samples());
    for (ir::AttrValue& attr : sample.attrs)
      if (DType* dtype = std::get_if<DType>(&attr)) *dtype = dtype_of(*dtype);
    return sample;
  }

  void add_layer() {
    const Layer& layer = random_.pick(random_layers());
    if (options_.exact && !layer.exact) return add_layer();
    const LayerSource source{
        random_,
        [&](const Shape& shape, double low, double high) {
          return operand({.shape = shape, .low = low, .high = high});
        },
        [&](const Shape& shape, std::int64_t limit) {
          return leaf({.shape = shape, .low = 0, .high = static_cast<double>(limit), .dtype = i64});
        }};
    keep(layer.make(source));
  }

  // A pointwise op on shapes that broadcast: axes of the common shape are dropped in front or
  // shrunk to 1.
  void add_pointwise() {
    const ir::OpDef& op = *random_.pick(sampled_ops());
    ir::Sample sample = drawn_sample(op);
    if (options_.exact && std::ranges::find(kExactOps, op.name) == kExactOps.end())
      return add_pointwise();
    if (!op.pointwise || !usable(op, sample)) return add_sample();
    Shape common;
    for (std::int64_t rank = random_.below(4); rank > 0; --rank)
      common = common.insert(0, random_.pick(kSizes));
    std::vector<Operand> inputs;
    for (ir::SampleInput in : sample.inputs) {
      in.shape = common;
      while (in.shape.rank() > 0 && random_.chance(0.2)) in.shape = in.shape.without(0);
      for (int axis = 0; axis < in.shape.rank(); ++axis)
        if (random_.chance(0.2)) in.shape = in.shape.with(axis, 1);
      inputs.emplace_back(operand(in));
    }
    keep(ops::apply(op, inputs, sample.attrs));
  }

  // Its elements, each weighted on its own.
  Tensor loss_of(const Tensor& t) {
    const Tensor x = cast(t, options_.dtype);
    if (options_.exact) return sum(x * leaf({.shape = x.shape(), .dtype = options_.dtype}));
    return mean(sigmoid(x) * leaf({.shape = x.shape(), .dtype = options_.dtype}));
  }

  void add_results() {
    std::vector<Tensor> parts{graph().constant(1.0, {}, options_.dtype)};
    for (const Tensor& t : pool_)
      if (t.numel() > 0 && random_.chance(0.6)) parts.push_back(loss_of(t));
    result_.loss = add_n(parts);
    for (std::size_t k = 0; k < named_.size(); ++k)
      graph().output(fmt::format("y{}", k), named_[k]);
    graph().output("loss", result_.loss);
    for (const Tensor& p : result_.wrt)
      if (random_.chance(0.3)) graph().update(p, p * 0.5);
  }

  Random random_;
  RandomGraphOptions options_;
  RandomGraph result_;
  std::vector<Tensor> pool_, named_;
  int leaves_ = 0;
};

}  // namespace

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).run();
}

}  // namespace pantala::tests
