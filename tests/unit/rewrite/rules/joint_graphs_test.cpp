// Random joint graphs, made of the samples of rules so that rules fire: canonicalised,
// differentiated, rewritten for the step and compiled, against the interpreter on what was written.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/graph_data.h"
#include "ir/leaves.h"
#include "ir/rewriter.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/canonical.h"
#include "rewrite/rules/rules.h"
#include "schedule/cpu/archetypes.h"
#include "schedule/schedule.h"
#include "support/compiled.h"
#include "unit/rewrite/rules/promises.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::joint_graphs_test {
namespace {

using namespace samples;

constexpr int kGraphs = 500, kShards = 10, kParts = 3;

// What a user writes: a loss of a few samples, of which each may read what those before it made.
class Written {
 public:
  Written(std::uint64_t seed, DType dtype)
      : random_(seed), dtype_(dtype), next_rule_(kParts * seed) {
    std::vector<Tensor> terms;
    for (int part = 0; part < kParts; ++part) {
      add_sample();
      for (const Tensor& value : values_)
        terms.push_back(
            cast(mean(value * cos(iota_beside(value, value.shape(), -1, dtype_))), dtype_));
    }
    loss = ops::apply("add_n", {terms.begin(), terms.end()}, {})[0];
    graph.output("loss", loss);
  }

  Graph graph;
  Tensor loss;
  std::vector<Tensor> parameters;
  ref::Bindings bindings;

 private:
  // A sample in this type: of one rule after the other, mostly one that fits.
  Graph drawn_sample() {
    while (true) {
      const std::string& rule = all_rules()[next_rule_++ % all_rules().size()].name;
      const bool fits = random_.chance(0.75);
      std::vector<const Sample*> of_rule;
      for (const Sample& sample : all_samples())
        if (sample.rule == rule && has_numbers(sample) && (!fits || sample.refused_by.empty()))
          of_rule.push_back(&sample);
      const Graph made = in_type(random_.pick(of_rule)->make(random_), dtype_);
      const Type& type = made.output("y").type();
      const bool narrow = to_text(made).find("f16") != std::string::npos;
      if (!narrow && type.dtype == dtype_ && type.shape.numel() > 0 && type.shape.rank() > 0)
        return made;
    }
  }
  void add_sample() {
    const Graph made = drawn_sample();
    ir::Rewriter copy(*made.data(), graph.data());
    for (const Leaf& leaf : made.leaves()) copy.set(leaf.value.id(), leaf_like(made, leaf));
    const ValueId wanted = made.output("y").id();
    copy.copy({&wanted, 1});
    values_.push_back(copy.at(wanted));
    if (random_.chance(0.5)) graph.output(fmt::format("y{}", values_.size()), values_.back());
  }

  Tensor leaf_like(const Graph& made, const Leaf& leaf) {
    const Type& type = leaf.value.type();
    const std::string name = fmt::format("{}{}", leaf.name, bindings.size());
    if (leaf.kind == LeafKind::scalar) {
      const ir::Node& node = made.data()->node(leaf.value.id().node);
      const double value = ir::attributes<op::Scalar>(node).value;
      bindings.emplace(name, Literal::scalar(value, f64));
      return graph.scalar(name, value);
    }
    if (is_float(type.dtype) && !values_.empty() && random_.chance(0.4))
      return cast(adapted(random_.pick(values_), type.shape), type.dtype);
    Literal numbers(type);
    if (is_float(type.dtype))
      for (double& x : numbers.f()) x = static_cast<double>(random_.between(-64, 64)) / 64;
    else
      for (std::int64_t& x : numbers.i()) x = random_.below(type.dtype == boolean ? 2 : 5);
    bindings.emplace(name, std::move(numbers));
    if (!is_float(type.dtype)) return graph.input(name, type.shape, type.dtype);
    parameters.push_back(graph.parameter(name, type.shape, {}, type.dtype));
    return parameters.back();
  }
  // Cut or repeated, and brought into [-1, 1].
  static Tensor adapted(const Tensor& from, const Shape& shape) {
    const std::int64_t need = shape.numel();
    Tensor flat = reshape(from, {-1});
    if (flat.numel() < need) flat = broadcast_to(slice_axis(flat, 0, 0, 1), {need});
    return tanh(reshape(slice_axis(flat, 0, 0, need), shape.vec()));
  }

  Random random_;
  DType dtype_;
  std::size_t next_rule_;
  std::vector<Tensor> values_;
};

// A step of training: everything that the graph gives, and every parameter one step down.
Graph step_of(const Graph& forward, const std::vector<std::string>& parameters) {
  std::vector<Tensor> wrt;
  for (const std::string& name : parameters)
    if (const std::optional<Tensor> leaf = forward.find(name)) wrt.push_back(*leaf);
  const Gradients d = differentiate(forward, forward.output("loss"), wrt);
  Graph step = d.graph;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    const Tensor leaf = step.leaf(step.data()->leaf_name(d.at(wrt[k]).id().node));
    step.update(leaf, leaf - step.value(d.gradients[k].id()) * 0.5);
  }
  return step;
}

struct Case {
  Written written;
  std::vector<std::string> parameters;
  Graph given;  // the step as it was written
  Canonical canonical;
  Graph rewritten;  // the step of the canonical form
  Case(std::uint64_t seed, DType dtype)
      : written(seed, dtype),
        parameters(names(written)),
        given(step_of(written.graph, parameters)),
        canonical(canonical_form(written.graph, allowed_rules(canonical_rules(), Promise::real))),
        rewritten(step_of(canonical.graph, parameters)) {}

  static std::vector<std::string> names(const Written& written) {
    std::vector<std::string> all;
    for (const Tensor& parameter : written.parameters)
      all.push_back(written.graph.data()->leaf_name(parameter.id().node));
    return all;
  }
};

bool is_all_finite(const std::vector<Literal>& results) {
  return std::ranges::all_of(results, [](const Literal& result) {
    return std::ranges::all_of(result.to_doubles(), [](double x) { return std::isfinite(x); });
  });
}

class JointGraphs : public ::testing::TestWithParam<int> {};

TEST_P(JointGraphs, rewritten_by_every_level_agree_with_the_interpreter) {
  int finite = 0;
  constexpr int kEach = kGraphs / kShards;
  for (int k = 0; k < kEach; ++k) {
    const int seed = GetParam() * kEach + k;
    const Case c(static_cast<std::uint64_t>(seed), f64);
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, to_text(c.written.graph)));
    const std::vector<Literal> exact = exactly(c.given, c.written.bindings);
    if (!is_all_finite(exact)) continue;
    ++finite;
    EXPECT_EQ(tests::differing(exact, exactly(c.rewritten, c.written.bindings), 1e-9), "")
        << "the canonical form:\n"
        << to_text(c.canonical.graph);
    const auto level = k % 3 == 0 ? search::Level::greedy : search::Level::egraph;
    EXPECT_EQ(
        tests::differing(
            exact, tests::run_compiled(c.rewritten, c.written.bindings, {.level = level}), 1e-9),
        "")
        << (level == search::Level::greedy ? "greedy" : "e-graph") << " of the canonical form:\n"
        << to_text(c.canonical.graph);
  }
  EXPECT_GT(finite, kEach * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(Shards, JointGraphs, ::testing::Range(0, kShards));

// How often the rules fire in these graphs; every rule does. (Where each fires in our workloads and
// in models that were exported, FiredRules lists.)
TEST(JointGraphRules, all_fire) {
  std::map<std::string, std::int64_t> fired;
  for (const Rule& rule : all_rules()) fired[rule.name] = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    const Case c(static_cast<std::uint64_t>(seed), f32);
    for (const RuleUse& use : c.canonical.rules) fired.at(use.name) += use.fired;
    const Saturation step(schedule::lower(c.rewritten, schedule::cpu::archetypes()), step_rules());
    for (std::size_t k = 0; k < step.rules().size(); ++k)
      fired.at(step.rules()[k].name) += static_cast<std::int64_t>(step.run().rules[k].fired);
  }
  std::vector<std::string> never;
  std::int64_t all = 0;
  for (const auto& [name, count] : fired) {
    fmt::print("{:48} {:7} times\n", name, count);
    if (count == 0) never.push_back(name);
    all += count;
  }
  RecordProperty("rules_fired", static_cast<int>(all));
  RecordProperty("rules_that_never_fire", fmt::format("{}", fmt::join(never, ", ")));
  EXPECT_THAT(never, ::testing::IsEmpty());
}

}  // namespace
}  // namespace pantala::rewrite::joint_graphs_test
