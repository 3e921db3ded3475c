// Optimizers as values, and what append() adds to a graph. Agreement with PyTorch's recorded runs
// is checked by the fixtures.
#include "pantala/optim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/optimizers/table.h"
#include "optim/added_scalars.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/errors.h"

namespace pantala {
namespace {

using optim::Optimizer;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using tests::message_of;

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const optim::OptimizerDescription& one : optim::descriptions()) names.push_back(one.name);
  return names;
}

Literal values(Shape shape, std::vector<double> numbers) {
  return Literal::floats(std::move(shape), std::move(numbers), f64);
}

// Parameters with gradients that are inputs, and an optimizer on them.
struct Bench {
  Graph graph;
  std::vector<Tensor> weights, gradients;
  Bench(const std::vector<std::string>& names, const Shape& shape, DType dtype = f64) {
    for (const std::string& name : names) {
      weights.push_back(graph.parameter(name, shape, init::ones(), dtype));
      gradients.push_back(graph.input("grad of " + name, shape, dtype));
    }
  }
  ref::Session session(const Optimizer& optimizer, const optim::AppendOptions& options = {}) {
    optim::append(graph, optimizer, weights, gradients, options);
    verify(graph);
    EXPECT_EQ(to_text(parse_graph(to_text(graph))), to_text(graph));
    return ref::Session(graph);
  }
};

TEST(Optimizer, values_are_comparable_copyable_and_printable) {
  const Optimizer a = optim::adam(0.25, {.beta1 = 0.5}), b = a;
  EXPECT_EQ(a, b);
  EXPECT_NE(a, optim::adam(0.25));
  EXPECT_NE(optim::adam(), optim::adamw());
  EXPECT_EQ(a.str(),
            "adam(lr=0.25, beta1=0.5, beta2=0.999, eps=1e-08, weight_decay=0, amsgrad=false)");
  EXPECT_EQ(testing::PrintToString(optim::sgd(0.1)),
            "sgd(lr=0.1, momentum=0, dampening=0, weight_decay=0, nesterov=false)");
  EXPECT_EQ(a.with("lr", 0.5).lr(), 0.5);
  EXPECT_EQ(a.lr(), 0.25);
}

TEST(Optimizer, a_temporary_gives_its_hyper_parameters_away) {
  static_assert(std::is_same_v<decltype(optim::adam().values()), Optimizer::Values>);
  static_assert(std::is_same_v<decltype(optim::adam().flags()), Optimizer::Flags>);
  static_assert(
      std::is_same_v<decltype(std::declval<Optimizer&>().values()), const Optimizer::Values&>);
  double sum = 0;
  for (const auto& [name, value] : optim::sgd(0.5, {.momentum = 0.25}).values()) sum += value;
  EXPECT_EQ(sum, 0.75);
}

TEST(Optimizer, makers_have_the_defaults_of_their_kind) {
  const std::vector<Optimizer> made = {optim::sgd(),     optim::adam(),    optim::adamw(),
                                       optim::rmsprop(), optim::adagrad(), optim::adadelta(),
                                       optim::nadam(),   optim::radam(),   optim::adamax(),
                                       optim::lion(),    optim::lamb()};
  ASSERT_EQ(made.size(), optim::descriptions().size());
  for (std::size_t k = 0; k < made.size(); ++k) {
    const optim::OptimizerDescription& described = optim::descriptions()[k];
    EXPECT_EQ(made[k], optim::from_options(described.name));
    for (const optim::OptionDescription& option : described.options) {
      EXPECT_FALSE(option.doc.empty()) << described.name << " " << option.name;
      if (const auto* number = std::get_if<double>(&option.default_value))
        EXPECT_EQ(made[k].value(option.name), *number) << described.name << " " << option.name;
      else
        EXPECT_EQ(OptionValue(made[k].flag(option.name)), option.default_value);
    }
  }
  EXPECT_EQ(optim::adamw().value("weight_decay"), 0.01);
  EXPECT_EQ(optim::adadelta().lr(), 1.0);
  EXPECT_EQ(optim::adagrad().value("eps"), 1e-10);
}

TEST(Optimizer, descriptions_say_what_there_is) {
  EXPECT_THAT(all_names(), ElementsAre("sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta",
                                       "nadam", "radam", "adamax", "lion", "lamb"));
  const optim::OptimizerDescription& sgd = optim::descriptions()[0];
  std::vector<std::string> texts;
  for (const optim::OptionDescription& option : sgd.options)
    texts.push_back(option.name + ": " + option.rule);
  EXPECT_THAT(texts, ElementsAre("lr: finite and not negative", "momentum: finite and not negative",
                                 "dampening: finite", "weight_decay: finite and not negative",
                                 "nesterov: true or false"));
}

TEST(Optimizer, values_out_of_range_are_refused) {
  EXPECT_EQ(message_of<TypeError>([] { optim::sgd(-1); }),
            "sgd: lr must be finite and not negative, got -1");
  EXPECT_EQ(message_of<TypeError>([] { optim::adam(INFINITY); }),
            "adam: lr must be finite and not negative, got inf");
  EXPECT_EQ(message_of<TypeError>([] { optim::adam(1, {.beta2 = 1}); }),
            "adam: beta2 must be in [0, 1), got 1");
  EXPECT_EQ(message_of<TypeError>([] { optim::adam(1, {.eps = -1e-8}); }),
            "adam: eps must be finite and not negative, got -1e-08");
  EXPECT_EQ(message_of<TypeError>([] { optim::rmsprop(1, {.alpha = NAN}); }),
            "rmsprop: alpha must be in [0, 1], got nan");
  EXPECT_EQ(message_of<TypeError>([] { optim::sgd(1, {.nesterov = true}); }),
            "sgd: nesterov needs momentum and no dampening, got momentum 0 and dampening 0");
  EXPECT_EQ(message_of<TypeError>(
                [] { optim::sgd(1, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }),
            "sgd: nesterov needs momentum and no dampening, got momentum 0.9 and dampening 0.1");
}

TEST(Optimizer, from_options_reads_configs) {
  EXPECT_EQ(
      optim::from_options(
          "adam", {{"lr", 0.01}, {"betas", std::vector<double>{0.8, 0.95}}, {"amsgrad", true}}),
      optim::adam(0.01, {.beta1 = 0.8, .beta2 = 0.95, .amsgrad = true}));
  EXPECT_EQ(message_of<TypeError>([] { optim::from_options("adamm"); }),
            "there is no optimizer 'adamm'; did you mean 'adam'?");
  EXPECT_EQ(message_of<TypeError>([] { optim::from_options("sgd", {{"momentun", 0.9}}); }),
            "sgd has no option 'momentun'; did you mean 'momentum'?");
  EXPECT_EQ(message_of<TypeError>([] { optim::from_options("sgd", {{"lr", true}}); }),
            "sgd: lr must be a number, got true");
  EXPECT_EQ(message_of<TypeError>([] { optim::from_options("sgd", {{"nesterov", 1.0}}); }),
            "sgd: nesterov must be true or false, got 1");
  EXPECT_EQ(message_of<TypeError>(
                [] { optim::from_options("adam", {{"betas", std::vector<double>{0.9}}}); }),
            "adam: betas must be a list of two numbers, got [0.9]");
  EXPECT_EQ(message_of<TypeError>([] {
              optim::from_options("adam",
                                  {{"beta1", 0.9}, {"betas", std::vector<double>{0.9, 0.9}}});
            }),
            "adam: betas and beta1 or beta2 are given");
  EXPECT_EQ(message_of<TypeError>([] { static_cast<void>(optim::adam().value("beta3")); }),
            "adam has no hyper-parameter 'beta3'; did you mean 'beta1'?");
}

TEST(Optimizer, same_graph_tells_which_scalars_can_be_exchanged) {
  EXPECT_TRUE(optim::adam(1).same_graph(optim::adam(2, {.beta1 = 0.5})));
  EXPECT_FALSE(optim::adam().same_graph(optim::adamw()));
  EXPECT_FALSE(optim::adam().same_graph(optim::adam(1e-3, {.amsgrad = true})));
  EXPECT_FALSE(optim::sgd().same_graph(optim::sgd(1e-3, {.momentum = 0.9})));
  Bench bench({"w"}, {});
  ref::Session session = bench.session(optim::adam());
  optim::set_scalars(session, optim::adam(0.5, {.eps = 0.25}));
  EXPECT_EQ(session.scalar("optim.lr"), 0.5);
  EXPECT_EQ(session.scalar("optim.eps"), 0.25);
}

TEST(OptimizerTable, a_name_has_one_range_and_groups_find_what_they_change) {
  const ops::OptimizerDef &sgd = ops::optimizer("sgd"), &lion = ops::optimizer("lion");
  const auto problem = [&](const ops::OptimizerDef& other) {
    const std::vector<const ops::OptimizerDef*> rows{&sgd, &other};
    return message_of<InternalError>([&] { ops::check_rows(rows); });
  };
  EXPECT_EQ(problem(lion), "no error");
  ops::OptimizerDef strict = lion, bare = lion;
  strict.numbers[0].range = ops::kPositive;
  EXPECT_THAT(problem(strict), HasSubstr("'lr' has two ranges"));
  bare.numbers.pop_back();
  EXPECT_THAT(problem(bare), HasSubstr("lion lacks lr or weight_decay"));
}

// What decides whether a compiled plan can be used again.
TEST(Optimizer, graph_key_has_what_makes_another_graph_and_no_values_of_scalars) {
  EXPECT_EQ(ops::graph_key(optim::adam(1, {.beta1 = 0.5})), ops::graph_key(optim::adam()));
  EXPECT_EQ(ops::graph_key(optim::adam()), "adam amsgrad=false lr beta1 beta2 eps weight_decay");
  EXPECT_EQ(ops::graph_key(optim::sgd()), "sgd nesterov=false lr weight_decay");
  EXPECT_EQ(ops::graph_key(optim::sgd(1, {.momentum = 0.9, .nesterov = true})),
            "sgd nesterov=true lr momentum dampening weight_decay");
  EXPECT_EQ(ops::graph_key(optim::adagrad(1, {.initial_accumulator_value = 0.5})),
            "adagrad lr lr_decay weight_decay initial_accumulator_value=0.5 eps");
}

TEST(Append, every_kind_trains_one_step_in_any_float_dtype) {
  for (const std::string& name : all_names())
    for (const DType dtype : {f32, f64, bf16}) {
      Bench bench({"w"}, {2, 1}, dtype);
      ref::Session session = bench.session(optim::from_options(name));
      session.set_input("grad of w", Literal::floats({2, 1}, {0.5, -0.5}, dtype));
      session.step();
      const Literal& w = session.value("w");
      EXPECT_LT(w.at(0), w.at(1)) << name;
      EXPECT_TRUE(std::isfinite(w.at(0)) && std::isfinite(w.at(1))) << name;
      EXPECT_EQ(session.value("optim.step").at(0), 1);
    }
}

TEST(Append, names_of_what_was_added) {
  Bench bench({"fc1.weight", "fc1.bias"}, {2});
  const optim::Appended added =
      optim::append(bench.graph, optim::adam(), bench.weights, bench.gradients, {.ema_decay = 0.9});
  EXPECT_THAT(added.scalar_names, ElementsAre("optim.lr", "optim.beta1", "optim.beta2", "optim.eps",
                                              "optim.weight_decay", "optim.ema_decay"));
  EXPECT_THAT(
      added.state_names,
      ElementsAre("optim.step", "optim.m.fc1.weight", "optim.v.fc1.weight", "ema.fc1.weight",
                  "optim.m.fc1.bias", "optim.v.fc1.bias", "ema.fc1.bias"));
  for (const std::string& name : added.state_names)
    EXPECT_TRUE(bench.graph.find(name).has_value()) << name;
}

TEST(Append, scalars_beside_the_optimizers_are_listed_as_they_are_added) {
  Bench bench({"x", "a", "b"}, {2});
  const optim::AppendOptions options{.groups = {{.pattern = "x", .frozen = true},
                                                {.pattern = "a", .lr_factor = 0.5},
                                                {.pattern = "b", .weight_decay = 0.25}},
                                     .clip = {.norm = 3, .value = 2},
                                     .ema_decay = 0.9};
  const auto listed = optim::added_scalars(options);
  EXPECT_THAT(listed, ElementsAre(Pair("optim.clip_value", 2), Pair("optim.clip_norm", 3),
                                  Pair("optim.ema_decay", 0.9), Pair("optim.group1.lr_factor", 0.5),
                                  Pair("optim.group2.lr_factor", 1),
                                  Pair("optim.group2.weight_decay", 0.25)));
  const Optimizer sgd = optim::sgd(0.1);
  std::vector<std::string> names;
  for (const auto& [name, value] : sgd.scalars()) names.push_back(name);
  for (const auto& [name, value] : listed) names.push_back(name);
  EXPECT_EQ(optim::append(bench.graph, sgd, bench.weights, bench.gradients, options).scalar_names,
            names);
}

TEST(Append, sgd_momentum_starts_without_dampening) {
  Bench bench({"w"}, {});
  ref::Session session = bench.session(optim::sgd(0.1, {.momentum = 0.5, .dampening = 0.25}));
  session.set_input("grad of w", values({}, {2}));
  session.step();
  EXPECT_DOUBLE_EQ(session.value("optim.buffer.w").at(0), 2);
  session.step();
  EXPECT_DOUBLE_EQ(session.value("optim.buffer.w").at(0), 0.5 * 2 + 0.75 * 2);
  EXPECT_DOUBLE_EQ(session.value("w").at(0), 1 - 0.1 * 2 - 0.1 * 2.5);
}

TEST(Append, lion_steps_by_the_sign) {
  Bench bench({"w"}, {2});
  ref::Session session =
      bench.session(optim::lion(0.1, {.beta1 = 0.9, .beta2 = 0.5, .weight_decay = 0.5}));
  session.set_input("grad of w", values({2}, {4, -0.01}));
  session.step();
  EXPECT_THAT(
      session.value("w").to_doubles(),
      ElementsAre(DoubleNear(1 - 0.1 * (1 + 0.5), 1e-15), DoubleNear(1 - 0.1 * (-1 + 0.5), 1e-15)));
  EXPECT_THAT(session.value("optim.m.w").to_doubles(), ElementsAre(2, -0.005));
}

TEST(Append, lamb_scales_the_step_to_the_norm_of_the_weight) {
  Bench bench({"w"}, {2});
  ref::Session session = bench.session(optim::lamb(0.1, {.eps = 0, .weight_decay = 0.5}));
  session.set_value("w", values({2}, {3, 4}));
  session.set_input("grad of w", values({2}, {2, -2}));
  session.step();
  // At t = 1 the corrected ratio is the sign of the gradient.
  const double u0 = 1 + 0.5 * 3, u1 = -1 + 0.5 * 4, trust = 5 / std::hypot(u0, u1);
  EXPECT_THAT(session.value("w").to_doubles(),
              ElementsAre(DoubleNear(3 - 0.1 * trust * u0, 1e-13),
                          DoubleNear(4 - 0.1 * trust * u1, 1e-13)));
  // A weight of norm 0 has nothing to scale to.
  session.set_value("w", values({2}, {0, 0}));
  session.set_value("optim.step", Literal::integer(0));
  for (const char* name : {"optim.m.w", "optim.v.w"}) session.set_value(name, values({2}, {0, 0}));
  session.step();
  EXPECT_THAT(session.value("w").to_doubles(),
              ElementsAre(DoubleNear(-0.1, 1e-13), DoubleNear(0.1, 1e-13)));
}

TEST(Append, groups_change_rate_and_decay_and_freeze) {
  Bench bench({"body.weight", "body.bias", "head.weight", "stem"}, {});
  ref::Session session = bench.session(optim::sgd(0.5, {.weight_decay = 0.25}),
                                       {.groups = {{.pattern = "*.bias", .weight_decay = 0.0},
                                                   {.pattern = "body.*", .lr_factor = 0.5},
                                                   {.pattern = "stem", .frozen = true}}});
  EXPECT_THAT(bench.graph.leaf("optim.group1.lr_factor").type(), (Type{f64, {}}));
  for (const char* name : {"grad of body.weight", "grad of body.bias", "grad of head.weight"})
    session.set_input(name, values({}, {1}));
  session.step();  // the frozen one's gradient is not needed
  EXPECT_DOUBLE_EQ(session.value("body.weight").at(0), 1 - 0.25 * 1.25);
  // The first group that matches counts.
  EXPECT_DOUBLE_EQ(session.value("body.bias").at(0), 1 - 0.5);
  EXPECT_DOUBLE_EQ(session.value("head.weight").at(0), 1 - 0.5 * 1.25);
  EXPECT_EQ(session.value("stem").at(0), 1);
  session.set_scalar("optim.group1.lr_factor", 0);
  session.set_scalar("optim.group0.weight_decay", 2);
  session.step();
  EXPECT_DOUBLE_EQ(session.value("body.weight").at(0), 1 - 0.25 * 1.25);
  EXPECT_DOUBLE_EQ(session.value("body.bias").at(0), 0.5 - 0.5 * (1 + 2 * 0.5));
}

TEST(Append, frozen_parameters_have_no_state_and_stay_themselves) {
  Bench bench({"a", "b"}, {2});
  bench.gradients[1] = Tensor();
  const optim::Appended added =
      optim::append(bench.graph, optim::adam(), bench.weights, bench.gradients,
                    {.groups = {{.pattern = "b", .frozen = true}}, .ema_decay = 0.5});
  EXPECT_THAT(added.state_names, Not(Contains(HasSubstr(".b"))));
  EXPECT_EQ(added.new_weights[1].in(bench.graph), bench.weights[1]);
}

TEST(Append, a_group_that_matches_nothing_is_an_error) {
  Bench bench({"fc1.weight"}, {});
  EXPECT_EQ(message_of<TypeError>([&] {
              optim::append(bench.graph, optim::sgd(), bench.weights, bench.gradients,
                            {.groups = {{.pattern = "fc2.weight"}}});
            }),
            "optim: no parameter matches 'fc2.weight' of group 0; did you mean 'fc1.weight'?");
  EXPECT_EQ(message_of<TypeError>([&] {
              optim::append(bench.graph, optim::sgd(), bench.weights, bench.gradients,
                            {.groups = {{.pattern = "*", .frozen = true}}});
            }),
            "optim: there is nothing to train: 1 parameters, all frozen");
}

TEST(Append, clips_by_global_norm) {
  Bench bench({"a", "b"}, {2});
  ref::Session session =
      bench.session(optim::sgd(1), {.clip = {.norm = 1}, .gradient_norms = true});
  session.set_input("grad of a", values({2}, {3, 0}));
  session.set_input("grad of b", values({2}, {0, 4}));
  session.step();
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm"), 5);
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm.a"), 3);
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm.b"), 4);
  EXPECT_DOUBLE_EQ(session.value("a").at(0), 1 - 3 / (5 + 1e-6));
  EXPECT_DOUBLE_EQ(session.value("b").at(1), 1 - 4 / (5 + 1e-6));
  // Below the limit nothing changes, and the limit can be set.
  session.set_scalar("optim.clip_norm", 10);
  session.set_value("a", values({2}, {1, 1}));
  session.step();
  EXPECT_EQ(session.value("a").at(0), -2);
}

TEST(Append, clips_values) {
  Bench bench({"w"}, {3});
  ref::Session session =
      bench.session(optim::sgd(1), {.clip = {.value = 0.5}, .global_norm = true});
  session.set_input("grad of w", values({3}, {3, -0.25, -4}));
  session.step();
  EXPECT_THAT(session.value("w").to_doubles(), ElementsAre(0.5, 1.25, 1.5));
  EXPECT_DOUBLE_EQ(session.output_scalar("grad_norm"), std::sqrt(9 + 0.0625 + 16));
  EXPECT_EQ(
      message_of<TypeError>([] { Bench({"w"}, {}).session(optim::sgd(), {.clip = {.norm = 0}}); }),
      "optim: clip_norm must be finite and above 0, got 0");
}

TEST(Append, average_of_weights_starts_from_the_first_weights) {
  Bench bench({"w"}, {});
  ref::Session session = bench.session(optim::sgd(1), {.ema_decay = 0.75});
  session.set_value("w", values({}, {8}));
  session.set_input("grad of w", values({}, {4}));
  session.step();
  EXPECT_DOUBLE_EQ(session.value("ema.w").at(0), 0.75 * 8 + 0.25 * 4);
  session.step();
  EXPECT_DOUBLE_EQ(session.value("ema.w").at(0), 0.75 * 7 + 0.25 * 0);
}

TEST(Append, values_that_are_no_leaves_get_new_values_only) {
  Graph g;
  const Tensor x = g.input("x", {2}, f64), w = x * 2.0;
  const optim::SgdOnGraph sgd = optim::sgd_on_graph(g, {w}, {x}, 0.5);
  EXPECT_TRUE(g.updates().empty());
  const std::vector<Literal> fresh =
      ref::evaluate(g, {sgd.new_weights[0].in(g)}, {{"x", values({2}, {1, 2})}});
  EXPECT_THAT(fresh[0].to_doubles(), ElementsAre(1.5, 3));
}

TEST(UpdateOps, types_are_checked) {
  Graph g;
  const Tensor w = g.parameter("w", {2}), d = g.input("d", {2}), other = g.input("other", {3}),
               lr = g.scalar("lr", 0.1);
  EXPECT_THAT(message_of<TypeError>([&] { sgd_update(w, other, {}, {lr, lr}); }),
              HasSubstr("gradient must be f32[2] as the weight, got f32[3]"));
  EXPECT_THAT(message_of<TypeError>([&] { sgd_update(w, d, {}, {lr, w}); }),
              HasSubstr("weight_decay must be a scalar f64[], got f32[2]"));
  EXPECT_THAT(message_of<TypeError>(
                  [&] { sgd_update(w, d, {other}, {lr, lr, lr, lr}, {.momentum = true}); }),
              HasSubstr("buffer must be f32[2] as the weight, got f32[3]"));
  EXPECT_THAT(message_of<TypeError>([&] { sgd_update(w, d, {}, {lr}); }),
              HasSubstr("sgd_update: takes 0 states and 2 scalars, got 0 and 1"));
  EXPECT_THAT(message_of<TypeError>(
                  [&] { sgd_update(w, d, {}, {lr, lr}, {.momentum = false, .nesterov = true}); }),
              HasSubstr("nesterov needs momentum"));
}

}  // namespace
}  // namespace pantala
