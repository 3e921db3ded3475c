// Frozen parameters and batch norms that keep their statistics, in the graph of the step and in
// what a session of it does.
#include "compiler/kept_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/graph_data.h"
#include "ops/contract.h"
#include "ops/face.h"
#include "pantala/interpreter.h"
#include "pantala/text.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

constexpr std::int64_t kBatch = 4;

std::vector<std::string> updated(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [leaf, value] : graph.updates())
    names.push_back(graph.data()->leaf_name(leaf.id().node));
  return names;
}

std::vector<std::string> states(const Graph& graph) {
  std::vector<std::string> names;
  for (const Leaf& leaf : graph.leaves(LeafKind::state)) names.push_back(leaf.name);
  return names;
}

TrainingStep step_of(const TrainingStepOptions& options) {
  const Graph graph = dropout_graph(kBatch, Phase::training);
  return make_training_step(graph, graph.output("loss"), optim::adam(0.1), options);
}

const std::vector<std::string> kStatistics = {"norm.running_mean", "norm.running_var",
                                              "norm.num_batches_tracked"};

TEST(KeptStatistics, a_frozen_batch_norm_normalises_as_in_evaluation_and_updates_nothing) {
  const TrainingStep step = step_of({.groups = {{.pattern = "norm.*", .frozen = true}}});
  verify(step.graph);
  for (const std::string& name : kStatistics) {
    EXPECT_THAT(updated(step.graph), Not(Contains(name)));
    EXPECT_THAT(states(step.graph), Contains(name));  // checkpoints and files keep it
  }
  EXPECT_THAT(to_text(step.graph), HasSubstr("batch_norm_eval"));
  EXPECT_THAT(updated(step.graph), IsSupersetOf({"fc1.weight", "fc2.weight"}));
  EXPECT_THAT(updated(step.graph), Not(Contains("norm.weight")));
}

TEST(KeptStatistics, batch_norm_moves_on_where_only_a_part_of_it_is_frozen) {
  const TrainingStep step = step_of({.groups = {{.pattern = "norm.bias", .frozen = true}}});
  EXPECT_THAT(updated(step.graph), IsSupersetOf(kStatistics));
  EXPECT_THAT(to_text(step.graph), Not(HasSubstr("batch_norm_eval")));
}

TEST(KeptStatistics, the_option_says_which) {
  const std::vector<optim::ParameterGroup> frozen = {{.pattern = "norm.*", .frozen = true}};
  EXPECT_THAT(updated(step_of({.groups = frozen, .kept_statistics = KeptStatistics::none}).graph),
              IsSupersetOf(kStatistics));
  const TrainingStep all = step_of({.kept_statistics = KeptStatistics::all});
  for (const std::string& name : kStatistics) EXPECT_THAT(updated(all.graph), Not(Contains(name)));
  EXPECT_THAT(updated(all.graph), IsSupersetOf({"norm.weight", "norm.bias"}));  // still learnt
}

TEST(KeptStatistics, hold_under_accumulation_too) {
  const Graph graph = dropout_graph(kBatch, Phase::training);
  CompileOptions options{.accumulation_steps = 2, .optimizer = optim::sgd(0.1)};
  options.training.groups = {{.pattern = "norm.*", .frozen = true}};
  Session session = build_session(graph, graph.output("loss"), options);
  session.set_state("norm.running_mean", Literal::floats({8}, std::vector<double>(8, 0.25)));
  const data::Batch batch = random_batch(kBatch, 1);
  for (int k = 0; k < 2; ++k) {
    session.set_input("x", batch.data.elements());
    session.set_input("labels", batch.labels.elements());
    session.step();
  }
  EXPECT_EQ(session.state("norm.running_mean").at(3), 0.25);
  EXPECT_EQ(session.state("norm.num_batches_tracked").at(0), 0);
}

// fc2 alone: its gradient is one product. Without freezing there are two more, for the hidden layer
// and for fc1.
TEST(FrozenParameters, cost_no_backward_work_and_have_no_state) {
  const auto products = [](const Graph& graph) {
    const auto& nodes = graph.data()->nodes();
    return std::count_if(nodes.begin(), nodes.end(),
                         [](const ir::Node& node) { return ops::is<op::Contract>(node); });
  };
  const zoo::Model model = small_mlp(kBatch);
  const TrainingStep whole = make_training_step(model.graph, model.loss, optim::adam(0.1)),
                     part = make_training_step(model.graph, model.loss, optim::adam(0.1),
                                               {.groups = {{.pattern = "fc1.*", .frozen = true}}});
  EXPECT_EQ(products(whole.graph), 5);
  EXPECT_EQ(products(part.graph), 3);
  EXPECT_THAT(states(whole.graph), IsSupersetOf({"optim.m.fc1.weight", "optim.v.fc1.bias"}));
  for (const std::string& name : states(part.graph)) EXPECT_THAT(name, Not(HasSubstr("fc1")));
}

}  // namespace
}  // namespace pantala::tests
