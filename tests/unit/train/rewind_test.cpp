// The way back from a step that has stored numbers which are not finite.
#include "train/rewind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using namespace tests;  // NOLINT: the tests' own words
using ::testing::HasSubstr;

// A model with moments, running statistics and random numbers whose loss stays finite where the
// gradient of `spoiler` is infinite: the square root at 0, which a batch that is all zeros makes.
Graph spoilt_graph(std::int64_t batch, Phase phase) {
  Graph g = dropout_graph(batch, phase);
  const Tensor spoiler = g.parameter("spoiler", {1}, init::constant(1));
  const Tensor size = sum(abs(g.leaf("x"))) * exp(reshape(spoiler, {}));
  const Tensor loss = g.output("loss") + 1e-3 * sqrt(size);
  Graph spoilt = g.with_outputs({{"logits", g.output("logits")}, {"loss", loss}});
  return spoilt;
}

data::Batch bad_batch(std::int64_t items) {
  data::Batch batch = random_batch(items, 99);
  for (float& x : std::get<std::vector<float>>(batch.data.values)) x = 0;
  return batch;
}

Trainer watched_trainer(const RateSchedule& schedule = {}, CompileOptions options = {}) {
  Trainer trainer(spoilt_graph, 4, {.optimizer = optim::adam(0.05), .rate_schedule = schedule},
                  std::move(options), {.seed = 3});
  return trainer;
}

void expect_same_values(const Trainer& a, const Trainer& b, const std::string& about = "") {
  EXPECT_TRUE(everything_in(a.session()) == everything_in(b.session())) << about;
}

TEST(Rewind, a_step_whose_gradient_is_not_finite_is_as_if_it_had_never_been) {
  for (const int before : {0, 1, 5}) {
    const RateSchedule cosine(CosineRate{.T_max = 20});
    Trainer trainer = watched_trainer(cosine), reference = watched_trainer(cosine);
    ASSERT_EQ(trainer.session().compiled().data()->non_finite, NonFiniteGuard::watched);
    for (int k = 0; k < before; ++k)
      for (Trainer* t : {&trainer, &reference}) t->step(random_batch(k == 3 ? 2 : 4, 10 + k));
    const TrainerState state = trainer.state();
    EXPECT_THAT(message_of<DivergenceError>([&] { trainer.step(bad_batch(4)); }),
                HasSubstr("a gradient is not finite, or its norm; the weights are those before"));
    EXPECT_EQ(trainer.state(), state);
    EXPECT_FALSE(trainer.session().last_step_finite());
    EXPECT_FALSE(trainer.session().last_step_spoilt());
    reference.session().set_learning_rate(trainer.session().learning_rate());
    expect_same_values(trainer, reference, std::to_string(before));
    // And it goes on as if nothing had been.
    for (Trainer* t : {&trainer, &reference}) t->step(random_batch(4, 77));
    expect_same_values(trainer, reference, "after it");
  }
}

TEST(Rewind, finds_back_over_many_epochs_of_a_loader) {
  std::vector<data::Batch> good = random_batches(40, 4), bad = good;
  bad[33] = bad_batch(4);
  Trainer trainer = watched_trainer(), reference = watched_trainer();
  FixedLoader loader(good), bad_loader(bad), beginning({good.begin(), good.begin() + 33});
  trainer.fit(loader, {.epochs = 30});  // more steps than are kept
  reference.fit(loader, {.epochs = 30});
  EXPECT_THROW(trainer.fit(bad_loader, {.epochs = 31}), DivergenceError);
  EXPECT_EQ(trainer.state().batches, 33);
  reference.train(beginning, 1);
  expect_same_values(trainer, reference);
}

// What somebody else sets between two steps is kept, too.
TEST(Rewind, knows_of_values_that_were_set_between_steps) {
  const auto train = [](Trainer& trainer) {
    trainer.step(random_batch(4, 1));
    trainer.session().set_parameter("fc1.bias", Literal::floats({8}, std::vector<double>(8, 0.5)));
    trainer.step(random_batch(4, 2));
    trainer.session().set_scalar("optim.beta1", 0.5);
    trainer.step(random_batch(4, 3));
    trainer.session().set_learning_rate(0.001);
    trainer.step(random_batch(4, 4));
    trainer.session().set_state("optim.m.fc1.bias", Literal(Type{f32, {8}}));
  };
  Trainer trainer = watched_trainer(), reference = watched_trainer();
  for (Trainer* t : {&trainer, &reference}) train(*t);
  EXPECT_THROW(trainer.step(bad_batch(4)), DivergenceError);
  expect_same_values(trainer, reference);
}

TEST(Rewind, goes_back_to_a_checkpoint_that_was_loaded) {
  const TemporaryFolder folder;
  Trainer first = watched_trainer();
  for (int k = 0; k < 3; ++k) first.step(random_batch(4, 20 + k));
  first.save_checkpoint(folder.file("saved"));
  Trainer trainer = watched_trainer();
  trainer.step(random_batch(4, 50));
  trainer.load_checkpoint(folder.file("saved"));
  EXPECT_THROW(trainer.step(bad_batch(4)), DivergenceError);
  expect_same_values(trainer, first);
}

TEST(Rewind, averages_of_the_weights_come_back_after_an_evaluation) {
  const auto make = [] { return watched_trainer({}, {.training = {.ema_decay = 0.9}}); };
  Trainer trainer = make(), reference = make();
  FixedLoader validation(random_batches(1, 4, 7));
  for (Trainer* t : {&trainer, &reference}) t->step(random_batch(4, 1));
  trainer.evaluate(validation);
  for (Trainer* t : {&trainer, &reference}) t->step(random_batch(4, 2));
  EXPECT_THROW(trainer.step(bad_batch(4)), DivergenceError);
  expect_same_values(trainer, reference);
}

// The guard is the strict one where updates wait for all gradients anyway.
TEST(Rewind, is_not_needed_where_the_guard_is_strict) {
  for (const CompileOptions& options :
       {CompileOptions{.training = {.clip = {.norm = 1}}}, CompileOptions{.accumulation_steps = 2},
        CompileOptions{.split_update = true}}) {
    Trainer trainer = watched_trainer({}, options), reference = watched_trainer({}, options);
    EXPECT_EQ(trainer.session().compiled().data()->non_finite, NonFiniteGuard::gradients);
    for (Trainer* t : {&trainer, &reference}) t->step(random_batch(4, 1));
    EXPECT_THROW(trainer.step(bad_batch(4)), DivergenceError);
    auto values = everything_in(trainer.session()), expected = everything_in(reference.session());
    for (auto* list : {&values, &expected})
      std::erase_if(*list, [](const auto& value) { return value.first == "accum.first"; });
    EXPECT_TRUE(values == expected);
  }
}

// --- a session without a trainer
TEST(WatchedSession, says_that_a_step_has_spoilt_its_values) {
  for (const char* device : {"cpu", "kir"}) {
    const Graph graph = spoilt_graph(4, Phase::training);
    Session session = build_session(
        graph, graph.output("loss"),
        {.device = device, .non_finite = NonFiniteGuard::watched, .optimizer = optim::adam(0.1)});
    const auto step = [&](const data::Batch& batch) {
      session.set_input("x", batch.data.elements());
      session.set_input("labels", batch.labels.elements());
      session.step();
    };
    step(random_batch(4, 1));
    EXPECT_TRUE(session.last_step_finite());
    // Not even the loss is finite: nothing has changed.
    data::Batch nan = random_batch(4, 2);
    std::get<std::vector<float>>(nan.data.values)[0] = NAN;
    const auto before = everything_in(session);
    step(nan);
    EXPECT_FALSE(session.last_step_finite());
    EXPECT_FALSE(session.last_step_spoilt());
    EXPECT_TRUE(everything_in(session) == before);
    step(bad_batch(4));
    EXPECT_TRUE(std::isfinite(session.loss()));
    EXPECT_FALSE(session.last_step_finite());
    EXPECT_TRUE(session.last_step_spoilt());
    EXPECT_FALSE(std::isfinite(session.parameter("spoiler").at(0)));
    EXPECT_EQ(session.state("optim.step"), Literal::integer(1));
  }
}

// Each weight takes its update where its gradient is made: no launch waits for all of them.
TEST(WatchedSession, needs_no_more_launches_than_the_guard_of_the_loss) {
  const zoo::Model model = small_mlp(4);
  const auto launches = [&](NonFiniteGuard guard, const optim::Optimizer& optimizer) {
    return compile_training_graph(model.graph, model.loss,
                                  {.non_finite = guard, .optimizer = optimizer})
        .plan.launches();
  };
  for (const optim::Optimizer& optimizer : {optim::sgd(0.1), optim::adam(0.1)}) {
    EXPECT_EQ(launches(NonFiniteGuard::watched, optimizer),
              launches(NonFiniteGuard::loss, optimizer));
    EXPECT_LT(launches(NonFiniteGuard::watched, optimizer),
              launches(NonFiniteGuard::gradients, optimizer));
  }
}

// --- copies of a session
TEST(SessionCopy, brings_back_every_value_from_memory_and_from_a_file) {
  for (const bool in_file : {false, true}) {
    Graph graph;
    const std::int64_t size = in_file ? runtime::SessionCopy::kMostInMemory / 4 + 1000 : 6;
    const Tensor w = graph.parameter("w", {size}, init::uniform(-1, 1));
    const Tensor loss = sum(w * w);
    graph.output("loss", loss);
    Session session = build_session(graph, loss, {.optimizer = optim::sgd(0.1, {.momentum = 0.9})});
    const TemporaryFolder folder;
    runtime::SessionCopy copy(folder.path());
    session.step();
    const auto sample = [&] {
      std::vector<float> values(static_cast<std::size_t>(size));
      session.parameter("w", HostBuffer(std::span<float>(values)));
      return values;
    };
    const std::vector<float> before = sample();
    copy.take(session.data());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));  // a file has no name
    session.step();
    EXPECT_NE(sample(), before);
    copy.restore(session.data());
    EXPECT_EQ(sample(), before);
    EXPECT_EQ(session.state("optim.step"), Literal::integer(1));
  }
}

TEST(SessionCopy, makes_first_values_again) {
  const zoo::Model model = small_mlp(4);
  Session session = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.1)});
  Session other = build_session(model.graph, model.loss, {.optimizer = optim::adam(0.1)});
  runtime::SessionCopy copy;
  copy.take(session.data());
  const data::Batch batch = random_batch(4, 1);
  session.set_input("x", batch.data.elements());
  session.set_input("labels", batch.labels.elements());
  session.step();
  copy.restore(session.data());
  EXPECT_TRUE(everything_in(session) == everything_in(other));
}

}  // namespace
}  // namespace pantala::tests
