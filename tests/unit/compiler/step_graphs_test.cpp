// The steps of training as graphs: guards, accumulation, observed values. Run by the interpreter,
// so that nothing but the graphs is tested.
#include "compiler/step_graphs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/pipeline.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "support/errors.h"

namespace pantala::compiler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using tests::message_of;

Literal numbers(Shape shape, std::vector<double> values) {
  return Literal::floats(std::move(shape), std::move(values), f64);
}

// Linear regression: mean of (x w + b - y)^2, with a dropout-like counter and a running mean.
struct Regression {
  Graph graph;
  Tensor loss, hidden;
  explicit Regression(std::int64_t batch) {
    const Tensor x = graph.input("x", {batch, 3}, f64), y = graph.input("y", {batch}, f64);
    const Tensor w = graph.parameter("w", {3}, init::from_data(numbers({3}, {0.1, -0.2, 0.3})),
                                     f64),
                 b = graph.parameter("b", {}, init::constant(0.05), f64);
    hidden = sum(x * w, {1}) + b;
    loss = mse_loss(hidden, y);
    const Tensor running = graph.state("running", {1}, init::zeros(), f64);
    graph.update(running, running * 0.9 + reshape(mean(x), {1}) * 0.1);
    graph.rng_draw();
  }
};

double data_at(std::int64_t item, std::int64_t column) {
  return std::sin(1.7 * static_cast<double>(item) + 0.3 * static_cast<double>(column));
}
void set_batch(ref::Session& session, std::int64_t first, std::int64_t count) {
  std::vector<double> x, y;
  for (std::int64_t item = first; item < first + count; ++item) {
    for (std::int64_t column = 0; column < 3; ++column) x.push_back(data_at(item, column));
    y.push_back(data_at(item, 7));
  }
  session.set_input("x", numbers({count, 3}, x));
  session.set_input("y", numbers({count}, y));
}

std::vector<StepGraph> training_graphs(const Graph& graph, const Tensor& loss,
                                       const CompileOptions& options, Report& report) {
  return make_step_graphs(Compilation::training(graph, loss, options), report);
}

std::vector<StepGraph> graphs(const Regression& model, const CompileOptions& options) {
  Report report;
  return training_graphs(model.graph, model.loss, options, report);
}

// Sessions of several graphs over one set of values, as a Store has it.
class Steps {
 public:
  using Values = std::map<std::string, Literal>;
  void run(const Graph& graph, const std::function<void(ref::Session&)>& prepare) {
    ref::Session session(graph);
    for (const Leaf& leaf : graph.leaves())
      if (store_.contains(leaf.name) && leaf.kind != LeafKind::scalar)
        session.set_value(leaf.name, store_.at(leaf.name));
    prepare(session);
    session.step();
    for (const Leaf& leaf : graph.leaves())
      if (leaf.kind == LeafKind::parameter || leaf.kind == LeafKind::state)
        store_.insert_or_assign(leaf.name, session.value(leaf.name));
    for (const auto& [name, value] : graph.outputs())
      outputs_.insert_or_assign(name, session.output(name));
  }
  // One update from micro-batches of these sizes; the last may be short.
  void update(std::int64_t first, const std::vector<std::int64_t>& sizes,
              const CompileOptions& options) {
    bool is_first = true;
    for (const std::int64_t size : sizes) {
      const std::vector<StepGraph> steps = graphs(Regression(size), options);
      run(steps.at(0).graph, [&](ref::Session& s) {
        set_batch(s, first, size);
        s.set_scalar("accum.first", is_first ? 1 : 0);
      });
      first += size;
      is_first = false;
      if (first % 16 == 0) run(steps.at(1).graph, [](ref::Session&) {});
    }
  }
  const Values& store() const { return store_; }
  const Values& outputs() const { return outputs_; }

 private:
  Values store_, outputs_;
};

TEST(StepGraphs, however_sixteen_items_are_split_the_update_is_the_same) {
  CompileOptions options{.optimizer = optim::adam(0.05)};
  Steps whole;
  for (int update = 0; update < 3; ++update)
    whole.run(graphs(Regression(16), options).at(0).graph,
              [&](ref::Session& s) { set_batch(s, 16 * update, 16); });
  options.accumulation_steps = 4;
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{16},
                                                 {4, 4, 4, 4},
                                                 std::vector<std::int64_t>(16, 1),
                                                 {5, 5, 5, 1}}) {
    Steps split;
    for (int update = 0; update < 3; ++update) split.update(16 * update, sizes, options);
    for (const char* name : {"w", "b", "optim.m.w", "optim.v.w", "optim.m.b"}) {
      const std::vector<double> expected = whole.store().at(name).to_doubles(),
                                got = split.store().at(name).to_doubles();
      for (std::size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(got[k], expected[k], 1e-13) << name << " in " << sizes.size() << " parts";
    }
    EXPECT_NEAR(split.outputs().at("loss").at(0), whole.outputs().at("loss").at(0), 1e-13);
    EXPECT_EQ(split.store().at("optim.step").at(0), 3);
    EXPECT_EQ(split.store().at("rng.draw").at(0), 3.0 * static_cast<double>(sizes.size()));
  }
}

TEST(StepGraphs, a_loss_that_is_no_mean_counts_every_micro_batch_the_same) {
  Graph graph;
  const Tensor x = graph.input("x", {2}, f64), w = graph.parameter("w", {2}, init::ones(), f64);
  const Tensor loss = sum(x * w);
  Report report;
  const std::vector<StepGraph> steps =
      training_graphs(graph, loss, {.accumulation_steps = 2, .optimizer = optim::sgd(1.0)}, report);
  Steps run;
  for (const double scale : {1.0, 3.0})
    run.run(steps[0].graph, [&](ref::Session& s) {
      s.set_input("x", numbers({2}, {scale, 2 * scale}));
      s.set_scalar("accum.first", scale == 1.0 ? 1 : 0);
    });
  run.run(steps[1].graph, [](ref::Session&) {});
  EXPECT_THAT(run.store().at("w").to_doubles(), ElementsAre(1 - 2, 1 - 4));
  EXPECT_EQ(run.outputs().at("loss").at(0), 6);
}

TEST(StepGraphs, without_an_optimizer_apply_gives_the_mean_gradients) {
  const std::vector<StepGraph> steps = graphs(Regression(4), {.accumulation_steps = 2});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].role, "accumulate");
  EXPECT_EQ(steps[1].role, "apply");
  EXPECT_TRUE(steps[0].gradients.empty());
  ASSERT_EQ(steps[1].gradients.size(), 2u);
  EXPECT_EQ(steps[1].gradients[0].parameter, "w");
  EXPECT_EQ(steps[1].gradients[0].gradient, "grad.w");
  EXPECT_NO_THROW(steps[1].graph.output("grad.b"));
  EXPECT_TRUE(steps[1].graph.updates().empty());
}

TEST(StepGraphs, frozen_parameters_have_no_accumulator) {
  CompileOptions options{.accumulation_steps = 2, .optimizer = optim::sgd(0.1)};
  options.training.groups = {{.pattern = "b", .frozen = true}};
  const std::vector<StepGraph> steps = graphs(Regression(4), options);
  EXPECT_TRUE(steps[0].graph.find("accum.grad.w"));
  EXPECT_FALSE(steps[0].graph.find("accum.grad.b"));
  EXPECT_EQ(steps[1].graph.find("accum.grad.b"), std::nullopt);
  const auto updates = steps[1].graph.updates();
  EXPECT_TRUE(std::ranges::none_of(
      updates, [&](const auto& update) { return update.first == steps[1].graph.leaf("b"); }));
}

// --- guards

struct Diverging {
  Graph graph;
  Tensor loss;
  Diverging() {
    const Tensor x = graph.input("x", {2}, f64);
    const Tensor w = graph.parameter("w", {2}, init::ones(), f64);
    loss = sum(sqrt(x) * w);
    graph.update(graph.state("seen", {2}, init::zeros(), f64), x);
    const Tensor count = graph.state("count", {}, init::zeros(), i64);
    graph.update(count, count + 1);
  }
  StepGraph step(NonFiniteGuard guard) const {
    Report report;
    return training_graphs(graph, loss, {.non_finite = guard, .optimizer = optim::adam(0.1)},
                           report)
        .at(0);
  }
};

TEST(StepGraphs, a_loss_that_is_not_finite_changes_nothing_on_the_device) {
  const StepGraph step = Diverging().step(NonFiniteGuard::loss);
  ref::Session session(step.graph);
  session.set_input("x", numbers({2}, {4, -1}));
  session.step();
  EXPECT_TRUE(std::isnan(session.output_scalar("loss")));
  EXPECT_EQ(session.output_scalar("finite"), 0);
  EXPECT_THAT(session.value("w").to_doubles(), ElementsAre(1, 1));
  EXPECT_THAT(session.value("seen").to_doubles(), ElementsAre(0, 0));
  EXPECT_THAT(session.value("optim.m.w").to_doubles(), ElementsAre(0, 0));
  // Counters are the host's: whoever runs the step leaves them.
  EXPECT_EQ(session.value("count").at(0), 1);
  EXPECT_EQ(session.value("optim.step").at(0), 1);
  session.set_input("x", numbers({2}, {4, 1}));
  session.step();
  EXPECT_EQ(session.output_scalar("finite"), 1);
  EXPECT_LT(session.value("w").at(0), 1);
  EXPECT_THAT(session.value("seen").to_doubles(), ElementsAre(4, 1));
}

TEST(StepGraphs, a_gradient_that_is_not_finite_is_seen_by_the_stronger_guard) {
  // The loss is finite: 0 * inf is behind w, whose gradient is infinite.
  Graph graph;
  const Tensor w = graph.parameter("w", {2}, init::zeros(), f64), x = graph.input("x", {2}, f64);
  const Tensor loss = sum(sqrt(w) * x);
  for (const auto& [guard, moved] :
       {std::pair{NonFiniteGuard::loss, true}, std::pair{NonFiniteGuard::gradients, false}}) {
    Report report;
    const auto steps =
        training_graphs(graph, loss, {.non_finite = guard, .optimizer = optim::sgd(0.1)}, report);
    ref::Session session(steps[0].graph);
    session.set_input("x", numbers({2}, {1, 1}));
    session.step();
    EXPECT_EQ(session.output_scalar("loss"), 0);
    EXPECT_EQ(session.output_scalar("finite"), moved ? 1 : 0);
    EXPECT_EQ(session.value("w").at(0) != 0, moved);
  }
}

TEST(StepGraphs, a_guard_that_watches_selects_by_the_loss_alone) {
  const StepGraph step = Diverging().step(NonFiniteGuard::watched);
  ref::Session session(step.graph);
  session.set_input("x", numbers({2}, {4, -1}));
  session.step();
  EXPECT_EQ(session.output_scalar("finite"), 0);
  EXPECT_THAT(session.value("w").to_doubles(), ElementsAre(1, 1));
  EXPECT_THAT(session.value("optim.m.w").to_doubles(), ElementsAre(0, 0));
  session.set_input("x", numbers({2}, {4, 1}));
  session.step();
  EXPECT_EQ(session.output_scalar("finite"), 1);
  EXPECT_LT(session.value("w").at(0), 1);
}

TEST(StepGraphs, without_a_guard_updates_happen_whatever_the_numbers_are) {
  const StepGraph step = Diverging().step(NonFiniteGuard::none);
  EXPECT_THROW(step.graph.output("finite"), TypeError);
  ref::Session session(step.graph);
  session.set_input("x", numbers({2}, {4, -1}));
  session.step();
  EXPECT_TRUE(std::isnan(session.value("w").at(1)));
}

TEST(StepGraphs, a_counter_that_the_device_computes_is_guarded) {
  Graph graph;
  const Tensor x = graph.input("x", {}, f64), w = graph.parameter("w", {}, init::ones(), f64);
  const Tensor loss = log(x) * w;
  const Tensor total = graph.state("total", {}, init::zeros(), f64);
  graph.update(total, total + x);
  Report report;
  const auto steps = training_graphs(graph, loss, {.optimizer = optim::sgd(0.1)}, report);
  ref::Session session(steps[0].graph);
  session.set_input("x", numbers({}, {-1}));
  session.step();
  EXPECT_EQ(session.value("total").at(0), 0);
  session.set_input("x", numbers({}, {2}));
  session.step();
  EXPECT_EQ(session.value("total").at(0), 2);
}

TEST(StepGraphs, the_name_of_the_guard_is_taken) {
  Diverging model;
  model.graph.output("finite", model.loss);
  EXPECT_THROW(model.step(NonFiniteGuard::loss), TypeError);
  EXPECT_NO_THROW(model.step(NonFiniteGuard::none));
}

// --- observing

TEST(StepGraphs, observed_values_and_gradients_are_outputs) {
  const Regression model(4);
  CompileOptions options{.observe = {{"hidden", model.hidden}},
                         .observe_gradients = true,
                         .optimizer = optim::sgd(0.1)};
  const StepGraph step = graphs(model, options).at(0);
  EXPECT_EQ(step.graph.output("observe.hidden").shape(), Shape({4}));
  EXPECT_EQ(step.graph.output("grad.w").shape(), Shape({3}));
  ASSERT_EQ(step.gradients.size(), 2u);
  EXPECT_EQ(step.gradients[1].gradient, "grad.b");
  options.observe_gradients = false;
  EXPECT_TRUE(graphs(model, options).at(0).gradients.empty());
}

TEST(StepGraphs, handles_of_other_graphs_and_bad_options_are_refused) {
  const auto message = [](const std::function<void()>& action) {
    return message_of<TypeError>([&] { action(); });
  };
  const Regression model(4);
  Graph other;
  for (int k = 0; k < 30; ++k) other.input(fmt::format("other{}", k), {4});
  const Tensor stranger = other.leaf("other20");
  Report report;
  EXPECT_EQ(message([&] { training_graphs(model.graph, stranger, {}, report); }),
            "compile: the loss is not a value of the graph");
  EXPECT_EQ(message([&] { training_graphs(model.graph, {}, {}, report); }),
            "compile: the loss is an empty handle");
  EXPECT_EQ(message([&] { graphs(model, {.observe = {{"h", stranger}}}); }),
            "compile: the observed 'h' is not a value of the graph");
  EXPECT_EQ(message([&] { graphs(model, {.accumulation_steps = 0}); }),
            "compile: accumulation_steps must be at least 1, got 0");
  EXPECT_EQ(message([&] { Compilation::plain(model.graph, {.optimizer = optim::sgd()}); }),
            "compile: optimizer needs a loss; use compile_training_graph");
  // A copy of the graph has the same values.
  const Graph copy = model.graph;
  EXPECT_NO_THROW(training_graphs(copy, model.loss, {}, report));
}

TEST(StepGraphs, the_stages_are_recorded_in_order) {
  Report report;
  const Regression model(2);
  training_graphs(model.graph, model.loss, {.accumulation_steps = 2}, report);
  std::vector<std::string> names;
  for (const Report::Stage& stage : report.stages) names.push_back(stage.name);
  EXPECT_THAT(names, ElementsAre("canonicalise", "differentiate", "optimizer"));
}

}  // namespace
}  // namespace pantala::compiler
