#include "support/random_graph.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/ops.h"
#include "support/gradcheck.h"

namespace pantala::testing {

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

constexpr std::int64_t kSizes[] = {0, 1, 1, 2, 3, 5, 7};
constexpr std::int64_t kMostElements = 400;  // of a value that is used again

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {}

  RandomGraph run() {
    for (int k = 0; k < options_.steps; ++k) random_.chance(0.4) ? add_pointwise() : add_sample();
    add_results();
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.graph; }

  // A new leaf with values in the range that the op asks for.
  Tensor leaf(const ir::SampleInput& in) {
    const std::string name = fmt::format("{}{}", is_float(in.dtype) ? "p" : "i", leaves_++);
    result_.bindings[name] = draw(in, name);
    if (!is_float(in.dtype)) return graph().input(name, in.shape, in.dtype);
    if (random_.chance(0.3)) return graph().input(name, in.shape, in.dtype);
    const Tensor p = graph().parameter(name, in.shape, random_.chance(0.5) ? init::normal() : init::constant(-0.0), in.dtype);
    result_.wrt.push_back(p);
    return p;
  }

  // A value of the pool brought to the wanted type and range: cut or spread to the right number of elements, and squeezed by a sigmoid.
  Tensor adapted(const Tensor& from, const ir::SampleInput& in) {
    Tensor t = cast(from, in.dtype);
    if (t.shape() != in.shape) {
      const std::int64_t need = in.shape.numel();
      t = reshape(t, {t.numel()});
      if (t.numel() >= need) t = slice_axis(t, 0, 0, need);
      else t = broadcast_to(slice_axis(t, 0, 0, 1), Shape{need});
      t = reshape(t, in.shape.vec());
    }
    return sigmoid(t) * (in.high - in.low) + in.low;
  }

  Tensor operand(const ir::SampleInput& in) {
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
    const ir::Sample sample = random_.pick(op.samples());
    if (!usable(op, sample)) return;
    std::vector<Tensor> inputs;
    for (const ir::SampleInput& in : sample.inputs) inputs.push_back(operand(in));
    keep(graph().data()->append(op, inputs, sample.attrs, {}));
  }

  // A pointwise op on shapes that broadcast: axes of the common shape are dropped in front or shrunk to 1.
  void add_pointwise() {
    const ir::OpDef& op = *random_.pick(sampled_ops());
    ir::Sample sample = random_.pick(op.samples());
    if (!op.pointwise || !usable(op, sample)) return add_sample();
    Shape common;
    for (std::int64_t rank = random_.below(4); rank > 0; --rank) common = common.insert(0, random_.pick(kSizes));
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

  void add_results() {
    std::vector<Tensor> parts{graph().constant(1.0)};
    for (const Tensor& t : pool_)
      if (t.numel() > 0 && random_.chance(0.6)) parts.push_back(mean(sigmoid(cast(t, f32))));
    result_.loss = add_n(parts);
    for (std::size_t k = 0; k < named_.size(); ++k) graph().output(fmt::format("y{}", k), named_[k]);
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

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options) { return Generator(seed, options).run(); }

}  // namespace pantala::testing
