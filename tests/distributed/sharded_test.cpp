// Batches that are cut into shards: the bits of a run depend on the number of shards, not on that
// of the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

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

struct Training {
  ModelFactory model = dropout_graph;
  std::int64_t batch_size = 24;
  CompileOptions compile = {.threads = 1};
  TrainConfig train = {.optimizer = optim::adam(0.01), .log_interval = 0};
  bool shard_optimizer = false, overlap = true;
};

Trainer make_trainer(const Training& setup, const Ranks& ranks, std::int64_t shards = kShards) {
  TrainConfig train = setup.train;
  train.distributed = {.ranks = ranks,
                       .shards = shards,
                       .shard_optimizer = setup.shard_optimizer,
                       .overlap = setup.overlap,
                       .check_every = 2};
  return Trainer(setup.model, setup.batch_size, train, setup.compile, {.seed = 3});
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
std::vector<Result> results(const Training& setup, const data::Dataset& data, int size,
                            std::int64_t shards = kShards) {
  std::vector<Result> all(static_cast<std::size_t>(size));
  run_ranks_well(size, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(setup, ranks, shards);
    const auto losses = std::make_shared<LossHistory>();
    trainer.add_callback(losses);
    const auto training =
        data::make_loader(data, {.batch_size = setup.batch_size, .seed = 1, .threads = 0});
    const auto validation =
        data::make_loader(data, {.batch_size = setup.batch_size, .shuffle = false, .threads = 0});
    trainer.fit(*training, {.epochs = 2, .validation = validation.get()});
    all[static_cast<std::size_t>(ranks->rank())] = {everything_in(trainer.session()),
                                                    trainer.state().history, losses->losses};
  });
  return all;
}

void expect_same_for_all_ranks(const Training& setup, const data::Dataset& data,
                               const std::vector<int>& sizes = {2, 3, 4, 8}) {
  const Result one = results(setup, data, 1)[0];
  EXPECT_GE(one.losses.size(), 2u);
  for (const int size : sizes) {
    const std::vector<Result> all = results(setup, data, size);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      expect_same(all[rank], one, std::to_string(size) + " ranks, rank " + std::to_string(rank));
  }
}

TEST(Sharded, dropout_and_batch_norm_have_the_same_bits_for_any_number_of_ranks) {
  expect_same_for_all_ranks({}, random_dataset(88, 5));
}

TEST(Sharded, accumulation_and_clipping_have_the_same_bits_for_any_number_of_ranks) {
  Training setup;
  setup.compile.accumulation_steps = 2;
  setup.compile.training.clip.norm = 0.5;
  expect_same_for_all_ranks(setup, random_dataset(88, 6), {2, 4});
}

TEST(Sharded, a_small_transformer_has_the_same_bits_for_any_number_of_ranks) {
  Training setup;
  setup.model = [](std::int64_t batch, Phase) {
    const zoo::LlamaSizes sizes{.width = 32, .layers = 2, .heads = 4, .kv_heads = 2};
    return zoo::llama(zoo::resized(zoo::llama_bytes(), sizes), {.batch = batch, .sequence = 8});
  };
  setup.batch_size = 8;
  setup.compile.accumulation_steps = 2;
  setup.compile.training.clip.norm = 1;
  setup.train.class_axis = -1;
  setup.train.measured = metrics::Kind::bytes;
  constexpr std::int64_t kItems = 30;
  expect_same_for_all_ranks(setup,
                            data::make_dataset({{kItems, 8}, random_labels(kItems * 8, 256, 1)},
                                               {{kItems, 8}, random_labels(kItems * 8, 256, 2)}),
                            {4});
}

TEST(Sharded, gradients_that_travel_late_have_the_same_bits) {
  Training late;
  late.overlap = false;
  const data::Dataset data = random_dataset(88, 5);
  expect_same(results(late, data, 4)[2], results({}, data, 4)[2], "late");
}

// Of more threads a launch has finished only when all of them have done their share.
TEST(Sharded, several_threads_have_the_same_bits) {
  Training threads;
  threads.compile.threads = 2;
  const data::Dataset data = random_dataset(88, 5);
  expect_same(results(threads, data, 2)[1], results({}, data, 2)[1], "threads");
}

// All values that are anywhere, by name.
std::map<std::string, Literal> joined(const std::vector<Result>& ranks) {
  std::map<std::string, Literal> all;
  for (const Result& rank : ranks)
    for (const auto& [name, value] : rank.values) {
      const auto [known, is_new] = all.emplace(name, value);
      EXPECT_EQ(known->second, value) << name;
    }
  return all;
}

void expect_same_with_shared_out_states(Training setup, int size) {
  const data::Dataset data = random_dataset(88, 5);
  const std::vector<Result> whole = results(setup, data, size);
  setup.shard_optimizer = true;
  const std::vector<Result> parts = results(setup, data, size);
  // Sums of gradients are only where they are needed, and no part of what was learnt.
  const auto learnt = [](const std::vector<Result>& ranks) {
    std::map<std::string, Literal> values;
    for (std::vector<Result> one(1); const Result& rank : ranks) {
      one[0].values = rank.values;
      std::erase_if(one[0].values, [](const auto& v) { return v.first.starts_with("accum."); });
      for (const auto& [name, value] : joined(one)) {
        const auto [known, is_new] = values.emplace(name, value);
        EXPECT_EQ(known->second, value) << name;
      }
    }
    return values;
  };
  EXPECT_EQ(learnt(parts), learnt(whole)) << size;
  std::map<std::string, int> keepers;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    EXPECT_EQ(parts[rank].history, whole[rank].history);
    EXPECT_EQ(parts[rank].losses, whole[rank].losses);
    EXPECT_LT(parts[rank].values.size(), whole[0].values.size());
    for (const auto& [name, value] : parts[rank].values)
      if (name.starts_with("optim.") && value.numel() > 1) ++keepers[name];
  }
  EXPECT_FALSE(keepers.empty());
  for (const auto& [name, ranks] : keepers) EXPECT_EQ(ranks, 1) << name;
}

// Each rank gets the sums of its own gradients alone.
TEST(Sharded, optimizer_states_on_one_rank_each_have_the_same_bits) {
  for (const int size : {2, 3, 4}) expect_same_with_shared_out_states({}, size);
  expect_same_with_shared_out_states({.overlap = false}, 4);
}

// Here every rank needs all of them.
TEST(Sharded, optimizer_states_on_one_rank_each_have_the_same_bits_with_clipping) {
  Training setup;
  setup.compile.training.clip.norm = 0.5;
  for (const int size : {2, 3, 4}) expect_same_with_shared_out_states(setup, size);
}

// A callback that reads the gradients of all parameters, on one rank alone.
TEST(Sharded, callbacks_see_gradients_of_all_parameters_where_states_are_shared_out) {
  struct Reads : MetricCallback {
    void on_gradients(Session& session) override {
      for (const std::string& name : session.parameters())
        seen.emplace_back(name, session.gradient(name));
    }
    std::vector<std::pair<std::string, Literal>> seen;
  };
  std::vector<std::pair<std::string, Literal>> expected;
  for (const int size : {1, 4})
    run_ranks_well(size, [&](const Ranks& ranks) {
      Training setup;
      setup.shard_optimizer = true;
      Trainer trainer = make_trainer(setup, ranks);
      const auto reads = std::make_shared<Reads>();
      if (ranks->rank() == size - 1) trainer.add_callback(reads);
      trainer.step(random_batch(24, 1));
      if (size == 1)
        expected = reads->seen;
      else if (ranks->rank() == size - 1)
        EXPECT_EQ(reads->seen, expected);
    });
}

// A gradient that only one rank has the sum of stops all of them.
TEST(Sharded, a_gradient_that_is_not_finite_stops_all_where_states_are_shared_out) {
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) {
    Training setup;
    setup.shard_optimizer = true;
    setup.model = [](std::int64_t batch, Phase) {
      // The gradient of b overflows where x is large, and neither the loss nor that of w does.
      Graph g;
      const Tensor x = g.input("x", {batch, kInputs});
      g.input("labels", {batch}, i64);
      const Tensor w = g.parameter("w", {1}, init::constant(1)),
                   b = g.parameter("b", {kInputs}, init::zeros());
      g.output("loss", mean(x * 0.0 + w) + mean(x * b));
      return g;
    };
    Trainer trainer = make_trainer(setup, ranks);
    trainer.step(random_batch(24, 1));
    const auto before = everything_in(trainer.session());
    data::Batch bad = random_batch(24, 2);
    std::get<std::vector<float>>(bad.data.values).back() = 3e38F;
    EXPECT_THROW(trainer.step(bad), DivergenceError);
    const auto after = everything_in(trainer.session());
    for (std::size_t k = 0; k < before.size(); ++k)
      if (!before[k].first.starts_with("accum.")) EXPECT_EQ(after[k], before[k]);
    trainer.step(random_batch(24, 3));
  });
  for (const auto& error : thrown)
    if (error) std::rethrow_exception(error);
}

TEST(Sharded, a_checkpoint_of_shared_out_states_is_that_of_a_single_rank) {
  Training parts;
  parts.shard_optimizer = true;
  const TemporaryFolder folder;
  Result expected;
  run_ranks_well(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(parts, ranks);
    for (int k = 0; k < 3; ++k) trainer.step(random_batch(24, 1));
    trainer.save_checkpoint(folder.path() / "saved");
  });
  for (const bool again : {false, true})
    run_ranks_well(again ? 3 : 1, [&](const Ranks& ranks) {
      Training setup;
      setup.shard_optimizer = again;
      Trainer trainer = make_trainer(setup, ranks);
      trainer.load_checkpoint(folder.path() / "saved");
      trainer.step(random_batch(24, 2));
      const auto parameters = trainer.session().parameter("fc1.weight");
      if (!again)
        expected = {{{"fc1.weight", parameters}}, {}, {}};
      else
        EXPECT_EQ(parameters, expected.values[0].second);
    });
}

// Numbers as labels: their metrics are sums that depend on the order.
TEST(Sharded, metrics_of_numbers_have_the_same_bits_for_any_number_of_ranks) {
  Training setup;
  setup.model = [](std::int64_t batch, Phase) {
    Graph g;
    const Tensor x = g.input("x", {batch, kInputs}), labels = g.input("labels", {batch, 2});
    const Tensor y = nn::linear("fc", x, 2);
    g.output("logits", y);
    g.output("loss", mse_loss(y, labels));
    return g;
  };
  data::Dataset data = data::make_dataset({{70, kInputs}, random_floats(70 * kInputs, 1)},
                                          {{70, 2}, random_floats(140, 2)});
  expect_same_for_all_ranks(setup, data, {2, 3});
}

// A batch of 24 in one shard is a step of a session that splits its update.
TEST(Sharded, one_shard_is_the_plain_step) {
  Training setup;
  const data::Dataset data = random_dataset(48, 5);
  setup.model = mlp_graph;
  const Result sharded = results(setup, data, 1, 1)[0];
  Training plain = setup;
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
  Training setup;
  setup.model = mean_graph;
  setup.batch_size = 8;
  setup.train.optimizer = optim::sgd(1.0);
  for (const std::int64_t shards : {2, 3, 8}) {
    run_ranks_well(2, [&](const Ranks& ranks) {
      Trainer trainer = make_trainer(setup, ranks, shards);
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
  Training setup;
  setup.compile.accumulation_steps = 2;
  const data::Dataset data = random_dataset(120, 5);
  const auto loader = [&] {
    return data::make_loader(data, {.batch_size = 24, .seed = 1, .threads = 0});
  };
  Result whole;
  run_ranks_well(2, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(setup, ranks);
    trainer.fit(*loader(), {.epochs = 2});
    if (ranks->rank() == 0) whole = {everything_in(trainer.session()), trainer.state().history, {}};
  });
  const TemporaryFolder folder;
  // Stopped by rank 3 after the third batch of an epoch, in the middle of a window.
  run_ranks_well(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(setup, ranks);
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
    Trainer trainer = make_trainer(setup, ranks);
    ASSERT_TRUE(trainer.resume(folder.path()));
    trainer.fit(*loader(), {.epochs = 2});
    expect_same({everything_in(trainer.session()), trainer.state().history, {}}, whole, "resumed");
  });
}

TEST(Sharded, a_number_that_is_not_finite_on_one_rank_stops_all_before_the_update) {
  Training setup;
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(setup, ranks);
    trainer.step(random_batch(24, 1));
    const auto before = everything_in(trainer.session());
    data::Batch bad = random_batch(24, 2);
    // Of the last shard.
    std::vector<float>& values = std::get<std::vector<float>>(bad.data.values);
    values.back() = std::numeric_limits<float>::infinity();
    data::Batch bad_items;
    bad_items.data = {{3, kInputs}, std::vector<float>(values.end() - 3 * kInputs, values.end())};
    EXPECT_THAT([&] { trainer.step(bad); },
                ThrowsMessage<DivergenceError>(HasSubstr("it began in shard 7 on rank 3")));
    ASSERT_TRUE(trainer.failed_batch());
    EXPECT_EQ(trainer.failed_batch()->data, bad_items.data);
    const auto after = everything_in(trainer.session());
    for (std::size_t k = 0; k < before.size(); ++k)
      if (!before[k].first.starts_with("accum.")) EXPECT_EQ(after[k], before[k]);
    trainer.step(random_batch(24, 3));
  });
  for (const auto& error : thrown) EXPECT_FALSE(error);
}

TEST(Sharded, a_rank_whose_weights_have_gone_astray_is_named) {
  Training setup;
  setup.model = mlp_graph;
  const auto thrown = run_ranks(4, [&](const Ranks& ranks) {
    Trainer trainer = make_trainer(setup, ranks);
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
                ThrowsMessage<Error>(HasSubstr("the weights of rank 2 on ")));
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
