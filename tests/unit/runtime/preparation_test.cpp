// What follows from parameters alone is kept from run to run: it must follow whatever changes them,
// and bits must be those of a plan that computes it in every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/error.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "plan/compiled_plan.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/training_data.h"

namespace pantala::preparation_test {
namespace {

using testing::HasSubstr;
using tests::message_of;

constexpr std::int64_t kBatch = 2, kChannels = 8, kSide = 9;

// Convolutions bring their weights into panels, or transform them.
struct Model {
  Graph graph;
  Tensor loss;
  Model() {
    const Tensor x = graph.input("x", {kBatch, kChannels, kSide, kSide});
    const nn::ConvLayerOptions same{.padding = {1}, .bias = false};
    Tensor h = nn::conv2d("a", x, 16, {3, 3}, same);
    h = relu(nn::batch_norm("norm", h, {.training = false}));
    h = relu(nn::conv2d("b", h, 16, {3, 3}, same));
    h = relu(nn::conv2d("c", h, 16, {3, 3}, same));
    h = nn::conv2d("d", h, 16, {3, 3}, same);
    graph.output("h", h);
    loss = mean(square(h));
  }
};

void give(const SessionPlan& plan, std::uint64_t seed) {
  plan.set_input("x", tests::random_floats(kBatch * kChannels * kSide * kSide, seed));
}

std::uint32_t preparation_of(const CompiledPlan& plan) {
  return plan.data()->steps.at(0).plan.preparation;
}

class Preparation : public testing::TestWithParam<std::string> {
 protected:
  CompileOptions options() const { return {.device = GetParam(), .threads = 2}; }
  // Where a limit of memory leaves no room for it nothing is kept.
  CompileOptions without() const {
    const CompileResult kept = compile(model_.graph, options());
    CompileOptions options = this->options();
    options.memory_limit =
        kept.report.peak_bytes + Session(kept.plan).memory_summary().prepared - 1;
    return options;
  }
  Literal output(Session& session, const std::string& plan, std::uint64_t seed) const {
    give(session.plan(plan), seed);
    session.run(plan);
    return session.plan(plan).output("h");
  }
  // What a session says that has just been made with the same values.
  Literal expected(const Session& of, std::uint64_t seed) const {
    Session fresh = build_inference_session(model_.graph, without());
    for (const std::string& name : of.parameters()) fresh.set_parameter(name, of.parameter(name));
    for (const std::string& name : fresh.states()) fresh.set_state(name, of.state(name));
    return output(fresh, "step", seed);
  }
  const Model model_;
};

TEST_P(Preparation, is_made_once_and_gives_the_same_bits) {
  const CompiledPlan plan = compile(model_.graph, options()).plan,
                     other = compile(model_.graph, without()).plan;
  EXPECT_GT(preparation_of(plan), 0U);
  EXPECT_EQ(preparation_of(other), 0U);
  Session session(plan), reference(other);
  EXPECT_GT(session.memory_summary().prepared, 0);
  EXPECT_EQ(reference.memory_summary().prepared, 0);
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(output(session, "step", seed), output(reference, "step", seed)) << seed;
}

TEST_P(Preparation, is_left_out_of_runs_behind_the_first) {
  Session session(compile(model_.graph, options()).plan);
  output(session, "step", 0);
  session.set_timing(true);
  for (std::uint64_t seed = 1; seed < 3; ++seed) output(session, "step", seed);
  const std::uint32_t first = preparation_of(session.compiled());
  const std::vector<KernelInfo> kernels = session.kernels();
  for (std::size_t k = 0; k < kernels.size(); ++k)
    EXPECT_EQ(kernels[k].milliseconds == 0, k < first) << kernels[k].name;
}

TEST_P(Preparation, follows_values_that_are_set_or_loaded) {
  Session session(compile(model_.graph, options()).plan, {.seed = 1}),
      other(compile(model_.graph, options()).plan, {.seed = 2});
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("other.safetensors");
  other.save(path);
  output(session, "step", 0);
  session.set_parameter("a.weight", other.parameter("a.weight"));
  EXPECT_EQ(output(session, "step", 1), expected(session, 1));
  session.load(path);
  EXPECT_EQ(output(session, "step", 2), output(other, "step", 2));
  session.set_state("norm.running_var", Literal::floats({16}, std::vector<double>(16, 0.5)));
  EXPECT_EQ(output(session, "step", 3), expected(session, 3));
}

TEST_P(Preparation, follows_steps_of_the_same_session) {
  CompileOptions training = options();
  training.optimizer = optim::sgd(0.1);
  Session session = build_session(model_.graph, model_.loss, training);
  session.attach("evaluation", compile(model_.graph, options()).plan);
  EXPECT_EQ(preparation_of(session.compiled()), 0U);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    EXPECT_EQ(output(session, "evaluation", 7), expected(session, 7)) << seed;
    give(session.plan("step"), seed);
    session.step();
  }
  EXPECT_EQ(output(session, "evaluation", 7), expected(session, 7));
}

// A kernel that reports something reports it in every run.
TEST_P(Preparation, that_fails_is_made_again) {
  Graph graph;
  const Tensor x = graph.input("x", {3, 4});
  const Tensor rows = take(graph.parameter("w", {5, 4}, init::normal(1.0)),
                           graph.state("rows", {6}, init::zeros(), i64), 0);
  graph.output("y", matmul(x, transpose(softmax(rows, 1))));
  Session session = build_inference_session(graph, options());
  session.set_input("x", tests::random_floats(12, 1));
  session.step();
  session.set_state("rows", Literal::ints({6}, {0, 1, 2, 3, 4, 5}));
  for (int k = 0; k < 2; ++k)
    EXPECT_THAT(message_of<ValueError>([&] { session.step(); }), HasSubstr("5")) << k;
  session.set_state("rows", Literal::ints({6}, {0, 1, 2, 3, 4, 4}));
  session.step();
  const Literal y = session.output("y");
  for (std::int64_t row = 0; row < 3; ++row) EXPECT_EQ(y.at(row * 6 + 4), y.at(row * 6 + 5)) << row;
}

INSTANTIATE_TEST_SUITE_P(devices, Preparation, testing::Values("cpu", "kir"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pantala::preparation_test
