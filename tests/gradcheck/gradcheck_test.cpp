// Every differentiable op of the table, over all its samples, first and second derivatives; ops
// without a derivative must say so.
#include "support/gradcheck.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"

namespace pantala::tests {
namespace {

class GradCheck : public ::testing::TestWithParam<std::string> {
 protected:
  const ir::OpDef& op() const { return ops::table().get(GetParam()); }
  void expect_gradients(int order) const {
    const std::vector<ir::Sample> samples = op().samples();
    for (std::size_t k = 0; k < samples.size(); ++k)
      EXPECT_EQ(check_sample(op(), samples[k], order), "") << op().name << ", sample " << k;
  }
};

TEST_P(GradCheck, first_derivatives) { expect_gradients(1); }
TEST_P(GradCheck, second_derivatives) { expect_gradients(2); }

class NoDerivative : public GradCheck {};

// Whatever the result's dtype, a path through the op from a parameter to the loss is an error that
// names the op.
TEST_P(NoDerivative, is_an_error_on_the_path) {
  int checked = 0;
  for (const ir::Sample& sample : op().samples()) {
    Subject s = make_subject(op(), sample);
    bool reaches = false;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      reaches |= is_float(sample.inputs[k].dtype) && !op().is_index(static_cast<int>(k));
    if (!reaches) continue;
    try {
      differentiate(s.graph, sum(cast(s.results[0], f32)), s.parameters);
      ADD_FAILURE() << op().name << " was differentiated";
    } catch (const TypeError& error) {
      EXPECT_NE(std::string(error.what()).find(op().name), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("no derivative"), std::string::npos) << error.what();
    }
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

bool has_float_input(const ir::OpDef& op) {
  for (const ir::Sample& sample : op.samples())
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      if (is_float(sample.inputs[k].dtype) && !op.is_index(static_cast<int>(k))) return true;
  return false;
}

std::vector<std::string> names(bool differentiable) {
  std::vector<std::string> result;
  for (const ir::OpDef* op : ops::table().all())
    if (op->samples && op->name != "cast" && has_float_input(*op) &&
        op->differentiable() == differentiable)
      result.push_back(op->name);
  return result;
}

// cast is differentiable between floats only; both halves by hand.
TEST(GradCheckCast, between_floats_passes_and_to_integers_is_an_error) {
  Graph g;
  const Tensor p = g.parameter("p", {3});
  const Gradients d = differentiate(g, sum(cast(cast(p, f64) * 2.0, f32)), {p});
  EXPECT_EQ(ref::evaluate(d.graph, d.gradients, {})[0].to_doubles(), std::vector<double>(3, 2.0));
  EXPECT_THROW(differentiate(g, sum(cast(cast(p, i32), f32)), {p}), TypeError);
}

// Every op of the table has samples, so that no op escapes the generated suites.
TEST(GradCheckCoverage, every_op_has_samples) {
  for (const ir::OpDef* op : ops::table().all()) {
    if (op->family == "leaf") continue;
    ASSERT_NE(op->samples, nullptr) << op->name;
    EXPECT_GE(op->samples().size(), 1u) << op->name;
  }
}

const auto name_of = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Ops, GradCheck, ::testing::ValuesIn(names(true)), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, NoDerivative, ::testing::ValuesIn(names(false)), name_of);

}  // namespace
}  // namespace pantala::tests
