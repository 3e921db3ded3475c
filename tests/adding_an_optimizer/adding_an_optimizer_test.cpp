// The worked example of docs/adding-an-optimizer.md: a new file, a patched header and a row, and
// every derived facility knows the optimizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/optimizers/table.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "pantala/text.h"
#include "support/gradcheck.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;

struct Graphs {
  Graph graph;
  Tensor weight, gradient;
  explicit Graphs(DType dtype) {
    weight = graph.parameter("w", {2}, init::ones(), dtype);
    gradient = graph.input("g", {2}, dtype);
  }
};

TEST(AddingAnOptimizer, the_maker_has_the_defaults_of_the_options) {
  EXPECT_EQ(optim::adabelief().str(),
            "adabelief(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-16, weight_decay=0, "
            "decoupled_weight_decay=false)");
  EXPECT_EQ(optim::from_options("adabelief", {{"lr", 0.5}, {"betas", std::vector{0.5, 0.25}}}),
            optim::adabelief(0.5, {.beta1 = 0.5, .beta2 = 0.25}));
}

TEST(AddingAnOptimizer, options_are_checked_by_their_ranges) {
  try {
    optim::adabelief(1, {.beta2 = 1});
    FAIL() << "no error";
  } catch (const TypeError& error) {
    EXPECT_STREQ(error.what(), "adabelief: beta2 must be in [0, 1), got 1");
  }
}

TEST(AddingAnOptimizer, the_descriptions_and_the_key_of_plans_have_it) {
  const optim::OptimizerDescription& last = optim::descriptions().back();
  EXPECT_EQ(last.name, "adabelief");
  EXPECT_EQ(last.options.size(), 6u);
  EXPECT_EQ(ops::graph_key(optim::adabelief()),
            "adabelief decoupled_weight_decay=false lr beta1 beta2 eps weight_decay");
}

TEST(AddingAnOptimizer, append_adds_its_states_and_scalars) {
  Graphs g(f32);
  const optim::Appended added =
      optim::append(g.graph, optim::adabelief(), {g.weight}, {g.gradient});
  EXPECT_THAT(added.state_names, ElementsAre("optim.step", "optim.m.w", "optim.s.w"));
  EXPECT_THAT(added.scalar_names, ElementsAre("optim.lr", "optim.beta1", "optim.beta2", "optim.eps",
                                              "optim.weight_decay"));
  EXPECT_EQ(to_text(parse_graph(to_text(g.graph))), to_text(g.graph));
}

// Two steps against the formulas.
TEST(AddingAnOptimizer, the_interpreter_takes_its_steps) {
  Graphs g(f64);
  optim::append(g.graph, optim::adabelief(0.1, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}),
                {g.weight}, {g.gradient});
  ref::Session session(g.graph);
  double w = 1, m = 0, s = 0;
  for (int t = 1; t <= 2; ++t) {
    const double gradient = t == 1 ? 2 : -1;
    session.set_input("g", Literal::floats({2}, {gradient, gradient}, f64));
    session.step();
    m = 0.5 * m + 0.5 * gradient;
    s = 0.75 * s + 0.25 * (gradient - m) * (gradient - m) + 0.01;
    const double correction1 = 1 - std::pow(0.5, t), correction2 = 1 - std::pow(0.75, t);
    w -= 0.1 / correction1 * m / (std::sqrt(s) / std::sqrt(correction2) + 0.01);
    EXPECT_NEAR(session.value("w").at(0), w, 1e-14) << "step " << t;
  }
}

TEST(AddingAnOptimizer, a_compiled_session_trains_with_it) {
  Graph g;
  const Tensor w = g.parameter("w", {4}, init::ones());
  Session session = build_session(g, mean(square(w)), {.optimizer = optim::adabelief(0.1)});
  for (int k = 0; k < 100; ++k) session.step();
  EXPECT_LT(session.loss(), 0.01);
}

TEST(AddingAnOptimizer, the_generated_gradient_checks_cover_its_update) {
  const ir::OpDef& op = ops::table().get("adabelief_update");
  EXPECT_EQ(op.family, "update");
  for (const ir::Sample& sample : op.samples())
    for (const int order : {1, 2}) EXPECT_EQ(tests::check_sample(op, sample, order), "");
}

}  // namespace
}  // namespace pantala::tests
