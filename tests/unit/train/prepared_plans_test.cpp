// Plans that are compiled while the first epoch runs: same bits, errors where the plan is needed,
// and neither compiling nor validating is time of training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "pantala/error.h"
#include "pantala/trainer.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using namespace tests;  // NOLINT: the tests' own words
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Activity::Kind;

// The same batches, of sizes that nobody knows before.
class SilentLoader : public data::Loader {
 public:
  explicit SilentLoader(data::Loader& loader) : loader_(loader) {}
  void shuffle(std::uint64_t epoch) override { loader_.shuffle(epoch); }
  void reset() override { loader_.reset(); }
  std::optional<data::Batch> next_batch() override { return loader_.next_batch(); }
  std::optional<std::int64_t> batches() const override { return loader_.batches(); }

 private:
  data::Loader& loader_;
};

class Activities : public MetricCallback {
 public:
  void on_activity(const Activity& activity) override { all.push_back(activity); }
  std::vector<Activity> all;
};

std::unique_ptr<data::Loader> loader_of(std::int64_t items, std::uint64_t seed) {
  return data::make_loader(random_dataset(items, seed), {.batch_size = 4, .threads = 0});
}

TEST(PreparedPlans, change_no_bit) {
  const CompileOptions accumulating{.accumulation_steps = 2};
  for (const CompileOptions& options : {CompileOptions{}, accumulating}) {
    const auto training = loader_of(19, 1), validation = loader_of(10, 2);
    Trainer prepared(dropout_graph, 4, {.optimizer = optim::adam(0.01)}, options);
    const FitResult result = prepared.fit(*training, {.epochs = 3, .validation = validation.get()});
    SilentLoader silent_training(*training), silent_validation(*validation);
    Trainer plain(dropout_graph, 4, {.optimizer = optim::adam(0.01)}, options);
    const FitResult expected =
        plain.fit(silent_training, {.epochs = 3, .validation = &silent_validation});
    EXPECT_EQ(result.history, expected.history);
    EXPECT_EQ(prepared.state(), plain.state());
    expect_same_bits(prepared.session(), plain.session());
    EXPECT_EQ(prepared.session().plans(), plain.session().plans());
  }
}

TEST(PreparedPlans, the_model_is_made_by_the_thread_that_trains) {
  const std::thread::id mine = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0;
  std::multiset<std::pair<std::int64_t, Phase>> made;
  const auto model = [&](std::int64_t batch, Phase phase) {
    if (std::this_thread::get_id() != mine) ++elsewhere;
    made.emplace(batch, phase);
    return mlp_graph(batch, phase);
  };
  const auto training = loader_of(11, 1), validation = loader_of(10, 2);
  Trainer trainer(model, 4);
  trainer.fit(*training, {.epochs = 2, .validation = validation.get()});
  EXPECT_EQ(elsewhere, 0);
  EXPECT_THAT(made, ElementsAre(std::pair(2, Phase::evaluation), std::pair(3, Phase::training),
                                std::pair(4, Phase::training), std::pair(4, Phase::evaluation)));
}

TEST(PreparedPlans, an_error_shows_where_the_plan_is_needed) {
  // Of the model itself, and of the compiler.
  const auto fails = [](std::int64_t batch, Phase phase) {
    if (batch == 3) throw TypeError("no model of three");
    return mlp_graph(batch, phase);
  };
  const auto is_huge = [](std::int64_t batch, Phase phase) {
    Graph graph = mlp_graph(batch, phase);
    if (batch == 3)
      graph.output("huge", exp(broadcast_to(graph.output("loss"), {std::int64_t{1} << 41})));
    return graph;
  };
  const auto loader = loader_of(11, 1);
  Trainer failing(fails, 4), huge(is_huge, 4);
  EXPECT_EQ(message_of<TypeError>([&] { failing.fit(*loader); }), "no model of three");
  EXPECT_EQ(failing.state().batches, 2);
  EXPECT_THAT(message_of<UnsupportedError>([&] { huge.fit(*loader); }), HasSubstr("GiB"));
  EXPECT_EQ(huge.state().batches, 2);
  // A run that ends before does not need it.
  Trainer enough(is_huge, 4);
  EXPECT_EQ(enough.fit(*loader, {.max_steps = 2}).history.epochs.size(), 1U);
}

TEST(PreparedPlans, go_into_the_cache) {
  const TemporaryFolder folder;
  const auto training = loader_of(11, 1), validation = loader_of(9, 2);
  for (int again = 0; again < 2; ++again) {
    Trainer trainer(mlp_graph, 4, {.plan_cache = folder.path() / "plans"});
    trainer.fit(*training, {.validation = validation.get()});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "plans"), {}), 4);
  }
}

TEST(PreparedPlans, a_trainer_that_goes_does_not_wait_for_all_of_them) {
  const auto training = loader_of(11, 1), validation = loader_of(9, 2);
  struct Enough {};
  Trainer trainer(dropout_graph, 4);
  const FitOptions options{.validation = validation.get(),
                           .poll = []() -> Request { throw Enough(); }};
  EXPECT_THROW(trainer.fit(*training, options), Enough);
  // What was begun is stopped, or was ready; a trainer in its place begins anew.
  trainer = Trainer(dropout_graph, 4);
  EXPECT_EQ(trainer.fit(*training, {.validation = validation.get()}).history.epochs.size(), 1U);
}

TEST(TrainerActivity, tells_what_takes_a_while) {
  FixedLoader training({random_batch(4, 0), random_batch(3, 1)}),
      validation({random_batch(4, 2), random_batch(2, 3)});
  Trainer trainer(mlp_graph, 4);
  const auto told = std::make_shared<Activities>();
  trainer.add_callback(told);
  trainer.fit(training, {.epochs = 2, .validation = &validation});
  const Activity trains{}, compiles{.kind = Kind::compiling};
  const auto validates = [](std::int64_t batch) {
    return Activity{.kind = Kind::validating, .batch = batch};
  };
  EXPECT_THAT(told->all,
              ElementsAre(compiles, trains, validates(0), compiles, validates(1), compiles,
                          validates(2), trains, validates(0), validates(1), validates(2), trains));
}

TEST(TrainerActivity, compiling_and_validating_are_no_time_of_training) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(100);
  const auto slow_model = [&](std::int64_t batch, Phase phase) {
    if (batch == 3) std::this_thread::sleep_for(kPause);
    return mlp_graph(batch, phase);
  };
  FixedLoader training({random_batch(4, 0), random_batch(3, 1)}), validation({random_batch(3, 2)});
  Trainer trainer(slow_model, 4);
  const Clock::time_point begin = Clock::now();
  trainer.fit(training, {.validation = &validation});
  const std::chrono::duration<double> taken = Clock::now() - begin, pauses = 2 * kPause;
  EXPECT_LE(trainer.progress().seconds, (taken - pauses).count());
  EXPECT_GT(trainer.progress().seconds, 0);
}

}  // namespace
}  // namespace pantala::tests
