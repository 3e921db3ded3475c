// Ops with two meanings must have one: a pointwise composite's body on numbers equals its expansion
// on tensors, and an op with `eval` and `expand` gives the same by both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/interpreter.h"
#include "support/gradcheck.h"

namespace pantala::expansion_test {
namespace {

bool has_two_meanings(const ir::OpDef& op) { return op.expand && (op.scalar || op.eval); }

// Both meanings on the same inputs; the inputs of the sample may be replaced by `extreme` values.
struct TwoMeanings {
  std::vector<Literal> direct, expanded;
};
TwoMeanings both(const ir::OpDef& op, const ir::Sample& sample, bool extreme) {
  Graph g;
  ref::Bindings bindings;
  std::vector<Tensor> inputs;
  static constexpr double kExtremes[] = {0.0,   -0.0,   1e-300,   -1e-300,   1000, -1000,
                                         1e300, -1e300, INFINITY, -INFINITY, NAN,  0.5,
                                         -0.5,  3,      -3,       6};
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const ir::SampleInput& in = sample.inputs[k];
    const std::string name = fmt::format("x{}", k);
    inputs.push_back(g.input(name, in.shape, in.dtype));
    bindings[name] = tests::draw(in, op.name + name);
    if (extreme && is_float(in.dtype))
      for (std::int64_t i = 0; i < bindings[name].numel(); ++i)
        bindings[name].f()[i] =
            kExtremes[static_cast<std::size_t>(i) * (k + 1) % std::size(kExtremes)];
  }
  const std::vector<Tensor> direct = g.data()->append(op, inputs, sample.attrs, {});
  const std::vector<Tensor> expanded =
      ops::expand(op, g.data()->node(direct[0].id().node).attrs, inputs, {});
  return {ref::evaluate(g, direct, bindings), ref::evaluate(g, expanded, bindings)};
}

class Expansion : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_equal(bool extreme) const {
    const ir::OpDef& op = ops::table().get(GetParam());
    const std::vector<ir::Sample> samples = op.samples();
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const TwoMeanings m = both(op, samples[s], extreme);
      ASSERT_EQ(m.direct.size(), m.expanded.size());
      for (std::size_t r = 0; r < m.direct.size(); ++r) {
        ASSERT_EQ(m.direct[r].type(), m.expanded[r].type()) << "sample " << s;
        for (std::int64_t k = 0; k < m.direct[r].numel(); ++k) {
          const double a = m.direct[r].at(k), b = m.expanded[r].at(k);
          EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) ||
                      std::fabs(a - b) <= 1e-12 * std::fabs(a))
              << "sample " << s << ", element " << k << ": " << a << " directly, " << b
              << " expanded";
        }
      }
    }
  }
};

TEST_P(Expansion, equals_the_direct_meaning) { expect_equal(false); }
TEST_P(Expansion, equals_the_direct_meaning_at_extremes) {
  if (ops::table().get(GetParam()).scalar) expect_equal(true);
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ir::OpDef* op : ops::table().all())
    if (has_two_meanings(*op)) result.push_back(op->name);
  return result;
}
const auto name_of = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Ops, Expansion, ::testing::ValuesIn(names()), name_of);

TEST(ExpansionCoverage, activations_are_among_them) { EXPECT_GE(names().size(), 12u); }

// Every op has a meaning, and a sugar op one that is a definition.
TEST(ExpansionCoverage, every_op_has_a_meaning) {
  for (const ir::OpDef* op : ops::table().all()) {
    EXPECT_TRUE(op->leaf || op->scalar || op->eval || op->expand) << op->name;
    if (op->sugar) { EXPECT_TRUE(op->expand != nullptr) << op->name; }
  }
}

}  // namespace
}  // namespace pantala::expansion_test
