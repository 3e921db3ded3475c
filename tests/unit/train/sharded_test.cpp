// Batches that are cut into shards: the bits of a run depend on the number of shards, not on that
// of the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/zoo/llama.h"
#include "support/ranks.h"
#include "support/temporary.h"
#include "support/trainer_case.h"

namespace pantala::tests {
namespace {

using distributed::Communicator;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ranks = std::shared_ptr<Communicator>;

constexpr std::int64_t kShards = 8;

struct Run {
  ModelFactory model = dropout_graph;
  std::int64_t batch_size = 24;
  CompileOptions compile = {.threads = 1};
  TrainConfig train = {.optimizer = optim::adam(0.01), .log_interval = 0};
};

Trainer make_trainer(const Run& run, const Ranks& ranks, std::int64_t shards = kShards) {
  TrainConfig train = run.train;
  train.distributed = {.ranks = ranks, .shards = shards, .check_every = 2};
  return Trainer(run.model, run.batch_size, train, run.compile, {.seed = 3});
}

struct Result {
  std::vector<std::pair<std::string, Literal>> values;
  TrainHistory history;
  std::vector<double> losses;
};

void expect_same(const Result& a, const Result& b, const std::string& about) {
  EXPECT_EQ(a.losses, b.losses) << about;
  EXPECT_EQ(a.history, b.history) << about;
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t k = 0; k < a.values.size(); ++k)
    EXPECT_EQ(a.values[k], b.values[k]) << a.values[k].first << ' ' << about;
}

// Two epochs; the last batch of each is a short one. Of every rank.
std::vector<Result> results(const Run& run, const data::Dataset& data, int size,
                            std::int64_t shards = kShards) {
  std::vector<Result> all(static_cast<std::size_t>(size));
  run_ranks_well(size, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks, shards);
    const auto losses = std::make_shared<LossHistory>();
    trainer.add_callback(losses);
    const auto training =
        data::make_loader(data, {.batch_size = run.batch_size, .seed = 1, .threads = 0});
    const auto validation =
        data::make_loader(data, {.batch_size = run.batch_size, .shuffle = false, .threads = 0});
    trainer.fit(*training, {.epochs = 2, .validation = validation.get()});
    all[static_cast<std::size_t>(ranks->rank())] = {everything_in(trainer.session()),
                                                    trainer.state().history, losses->losses};
  });
  return all;
}

void expect_same_for_all_ranks(const Run& run, const data::Dataset& data,
                               const std::vector<int>& sizes = {2, 3, 4, 8}) {
  const Result one = results(run, data, 1)[0];
  EXPECT_GE(one.losses.size(), 2u);
  for (const int size : sizes) {
    const std::vector<Result> all = results(run, data, size);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      expect_same(all[rank], one, std::to_string(size) + " ranks, rank " + std::to_string(rank));
  }
}

TEST(Sharded, dropout_and_batch_norm_have_the_same_bits_for_any_number_of_ranks) {
  expect_same_for_all_ranks({}, random_dataset(75, 5));
}

TEST(Sharded, accumulation_and_clipping_have_the_same_bits_for_any_number_of_ranks) {
  Run run;
  run.compile.accumulation_steps = 2;
  run.compile.training.clip.norm = 0.5;
  expect_same_for_all_ranks(run, random_dataset(75, 6), {2, 4});
}

// Numbers as labels: their metrics are sums that depend on the order.
TEST(Sharded, metrics_of_numbers_have_the_same_bits_for_any_number_of_ranks) {
  Run run;
  run.model = [](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, kInputs}), labels = g.input("labels", {batch, 2});
    const Tensor y = nn::linear("fc", x, 2);
    g.output("logits", y);
    g.output("loss", mse_loss(y, labels));
    return g;
  };
  data::Dataset data = data::make_dataset({{70, kInputs}, random_floats(70 * kInputs, 1)},
                                          {{70, 2}, random_floats(140, 2)});
  expect_same_for_all_ranks(run, data, {2, 3});
}

// A batch of 24 in one shard is a step of a session that splits its update.
TEST(Sharded, one_shard_is_the_plain_step) {
  Run run;
  const data::Dataset data = random_dataset(48, 5);
  run.model = mlp_graph;
  const Result sharded = results(run, data, 1, 1)[0];
  Run plain = run;
  plain.compile.split_update = true;
  Trainer trainer(plain.model, 24, plain.train, plain.compile, {.seed = 3});
  const auto loader = data::make_loader(data, {.batch_size = 24, .seed = 1, .threads = 0});
  trainer.fit(*loader, {.epochs = 2});
  const auto values = everything_in(trainer.session());
  ASSERT_EQ(values.size(), sharded.values.size());
  for (std::size_t k = 0; k < values.size(); ++k) EXPECT_EQ(values[k], sharded.values[k]);
}

TEST(Sharded, every_item_counts_the_same_whatever_the_shards) {
  // Of mean_graph the gradient is the mean of x: 1 of 24 items, 3 of the last 5.
  Run run;
  run.model = mean_graph;
  run.batch_size = 8;
  run.train.optimizer = optim::sgd(1.0);
  for (const std::int64_t shards : {2, 3, 8}) {
    run_ranks_well(2, [&](const Ranks& ranks) {
      Trainer trainer = make_trainer(run, ranks, shards);
      data::Batch batch = constant_batch(5, 0);
      std::get<std::vector<float>>(batch.data.values) = {1, 2, 3, 4, 6};
      trainer.step(batch);
      EXPECT_FLOAT_EQ(static_cast<float>(trainer.session().parameter("w").at(0)), 1 - 16.0F / 5);
    });
  }
}

TEST(Sharded, a_loader_makes_only_the_items_of_its_shards) {
  const data::Dataset data = random_dataset(75, 5);
  const auto whole = data::make_loader(data, {.batch_size = 24, .seed = 1, .threads = 0});
  const auto part = data::make_loader(
      data,
      {.batch_size = 24, .seed = 1, .threads = 0, .shards = 8, .first_shard = 2, .last_shard = 5});
  EXPECT_EQ(whole->fingerprint(), part->fingerprint());
  EXPECT_EQ(whole->batch_sizes(), part->batch_sizes());
  while (const auto batch = whole->next_batch()) {
    const auto own = part->next_batch();
    ASSERT_TRUE(own);
    EXPECT_EQ(own->whole_items(), batch->items());
    // 24 items: 3 a shard; the last batch has 3 items for 8 shards.
    EXPECT_EQ(own->items(), batch->items() == 24 ? 9 : 1);
    EXPECT_EQ(own->first, batch->items() == 24 ? 6 : 2);
    const auto& all = std::get<std::vector<float>>(batch->data.values);
    const auto& ours = std::get<std::vector<float>>(own->data.values);
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), all.begin() + own->first * kInputs));
  }
}

TEST(Sharded, a_checkpoint_goes_on_with_another_number_of_ranks) {
  Run run;
  run.compile.accumulation_steps = 2;
  const data::Dataset data = random_dataset(120, 5);
  const auto loader = [&] {
    return data::make_loader(data, {.batch_size = 24, .seed = 1, .threads = 0});
  };
  Result whole;
  run_ranks_well(2, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks);
    trainer.fit(*loader(), {.epochs = 2});
    if (ranks->rank() == 0) whole = {everything_in(trainer.session()), trainer.state().history, {}};
  });
  const TemporaryFolder folder;
  // Stopped by rank 3 after the third batch of an epoch, in the middle of a window.
  run_ranks_well(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks);
    int polls = 0;
    const FitResult end =
        trainer.fit(*loader(), {.epochs = 2, .checkpoints = {.folder = folder.path()}, .poll = [&] {
                                  return ranks->rank() == 3 && ++polls == 1 ? Request::save_and_stop
                                                                            : Request::none;
                                }});
    EXPECT_EQ(end.end, FitEnd::interrupted);
    EXPECT_EQ(trainer.state().batches, 2);
  });
  run_ranks_well(1, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks);
    ASSERT_TRUE(trainer.resume(folder.path()));
    trainer.fit(*loader(), {.epochs = 2});
    expect_same({everything_in(trainer.session()), trainer.state().history, {}}, whole, "resumed");
  });
}

TEST(Sharded, a_number_that_is_not_finite_on_one_rank_stops_all_before_the_update) {
  Run run;
  run.model = mlp_graph;
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks);
    trainer.step(random_batch(24, 1));
    const auto before = everything_in(trainer.session());
    data::Batch bad = random_batch(24, 2);
    // Of the last shard.
    std::get<std::vector<float>>(bad.data.values).back() = std::numeric_limits<float>::infinity();
    EXPECT_THROW(trainer.step(bad), DivergenceError);
    const auto after = everything_in(trainer.session());
    for (std::size_t k = 0; k < before.size(); ++k)
      if (!before[k].first.starts_with("accum.") && before[k].first != "rng.draw")
        EXPECT_EQ(after[k], before[k]);
    trainer.step(random_batch(24, 3));
  });
  for (const auto& error : thrown) EXPECT_FALSE(error);
}

TEST(Sharded, a_rank_whose_weights_have_gone_astray_is_named) {
  Run run;
  run.model = mlp_graph;
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(run, ranks);
    if (ranks->rank() == 2) {
      Literal bias = trainer.session().parameter("fc1.bias");
      bias.f()[0] += 1e-3;
      trainer.session().set_parameter("fc1.bias", bias);
    }
    trainer.step(random_batch(24, 1));
    trainer.step(random_batch(24, 2));
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_THAT([&] { std::rethrow_exception(error); },
                ThrowsMessage<distributed::AstrayError>(HasSubstr("of rank 2 on ")));
  }
}

TEST(Sharded, fewer_shards_than_ranks_are_refused) {
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) { make_trainer({}, ranks, 3); });
  for (const auto& error : thrown)
    EXPECT_THAT([&] { std::rethrow_exception(error); },
                ThrowsMessage<TypeError>(HasSubstr("3 shards for 4 ranks")));
}

}  // namespace
}  // namespace pantala::tests
