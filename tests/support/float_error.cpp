#include "support/float_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "ir/graph_data.h"
#include "pantala/ops.h"
#include "ref/flatten.h"
#include "support/compiled.h"
#include "support/random_graph.h"

namespace pantala::tests {

namespace {

constexpr std::array<std::string_view, 14> kExactOps = {
    "neg",  "abs",   "sign", "maximum", "minimum", "where",  "floor",
    "ceil", "round", "amax", "amin",    "take",    "gather", "dynamic_slice"};

// Values are moved or chosen, not computed.
bool rounds(const ir::OpDef& op) {
  return op.family != "movement" && op.family != "slicing" &&
         std::ranges::find(kExactOps, op.name) == kExactOps.end();
}

bool is_float_number(const ir::Node& node) {
  const std::optional<double> value = ir::splat_value(node);
  return value && static_cast<double>(static_cast<float>(*value)) == *value;
}

ref::Flat flattened(const Graph& graph) {
  std::vector<ValueId> wanted;
  for (const Tensor& t : results_of(graph)) wanted.push_back(t.id());
  return ref::flatten(graph, wanted);
}

ref::Bindings bindings_in(const Graph& graph, const ref::Bindings& given) {
  ref::Bindings bindings;
  for (const auto& [name, value] : given)
    if (graph.find(name)) bindings.emplace(name, value);
  return bindings;
}

// A copy of a flat graph in which values that a float computation would round are a little off.
class Disturbed {
 public:
  Disturbed(const ref::Flat& flat, std::uint64_t seed, bool alike) : random_(seed), alike_(alike) {
    const auto& nodes = flat.graph.data()->nodes();
    std::vector<std::vector<Tensor>> results;
    for (const ir::Node& node : nodes) {
      std::vector<Tensor> inputs;
      for (const ValueId& id : node.inputs) inputs.push_back(results[id.node][id.result]);
      results.push_back(graph_.data()->append(*node.op, inputs, node.attrs, {}));
      if (!rounds(*node.op) || is_float_number(node)) continue;
      for (Tensor& t : results.back())
        if (is_float(t.dtype())) t = moved(t);
    }
    for (const ValueId& id : flat.values) values_.push_back(results[id.node][id.result]);
  }

  std::vector<Literal> evaluate(const ref::Bindings& bindings) const {
    return ref::evaluate(graph_, values_, bindings);
  }

 private:
  double next_factor() {
    return 1 + 0x1p-23 * (static_cast<double>(random_.next() >> 11) * 0x1p-52 - 1);
  }

  Tensor moved(const Tensor& t) {
    Literal factors(t.type());
    double factor = next_factor();
    for (double& f : factors.f()) {
      if (!alike_) factor = next_factor();
      f = factor;
    }
    return t * graph_.constant(std::move(factors));
  }

  Random random_;
  bool alike_;  // all elements of a tensor are moved by the same factor
  Graph graph_;
  std::vector<Tensor> values_;
};

double distance(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double d = std::fabs(x - y);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

std::vector<double> errors_in_float(const Graph& graph, const ref::Bindings& bindings,
                                    const std::vector<Literal>& exact) {
  const ref::Flat flat = flattened(graph);
  const ref::Bindings present = bindings_in(flat.graph, bindings);
  std::vector<double> errors(exact.size(), 0);
  constexpr std::uint64_t kTrials = 4;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const std::vector<Literal> off = Disturbed(flat, trial, trial % 2 == 1).evaluate(present);
    for (std::size_t r = 0; r < exact.size(); ++r)
      for (std::int64_t k = 0; k < exact[r].numel(); ++k) {
        const double d = distance(exact[r].at(k), off[r].at(k));
        errors[r] = std::max(
            errors[r], exact[r].is_float() || d == 0 ? d : std::numeric_limits<double>::infinity());
      }
  }
  for (std::size_t r = 0; r < exact.size(); ++r) {
    double largest = 0;
    if (exact[r].is_float())
      for (const double v : exact[r].f())
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    errors[r] += 0x1p-24 * largest + 0x1p-126;
  }
  return errors;
}

bool is_exact_in_float(const Graph& graph, const ref::Bindings& bindings) {
  const ref::Flat flat = flattened(graph);
  Graph copy = flat.graph;
  std::vector<Tensor> values, sums;
  for (std::uint32_t id = 0; id < flat.graph.data()->nodes().size(); ++id) {
    const ir::Node& node = flat.graph.data()->node(id);
    std::vector<Tensor> positive;
    for (const ValueId& input : node.inputs) {
      const Tensor t = copy.value(input);
      positive.push_back(is_float(t.dtype()) ? abs(t) : t);
    }
    for (std::uint32_t k = 0; k < node.results.size(); ++k)
      if (is_float(node.results[k].dtype)) values.push_back(copy.value({id, k}));
    if (node.op->eval == nullptr || node.op->leaf) continue;
    for (const Tensor& t : copy.data()->append(*node.op, positive, node.attrs, {}))
      if (is_float(t.dtype())) sums.push_back(t);
  }
  const ref::Bindings present = bindings_in(copy, bindings);
  for (const Literal& value : ref::evaluate(copy, values, present))
    for (const double v : value.f())
      if (!(std::fabs(v) < 0x1p16) || v * 16 != std::round(v * 16)) return false;
  for (const Literal& sum : ref::evaluate(copy, sums, present))
    for (const double v : sum.f())
      if (!(std::fabs(v) < 0x1p16)) return false;
  return true;
}

}  // namespace pantala::tests
