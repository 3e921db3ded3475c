// What tests of the trainer share: small models, batches, loaders that record, and comparisons of
// sessions to the bit.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/trainer.h"
#include "pantala/zoo.h"
#include "support/training_data.h"

namespace pantala::tests {

constexpr std::int64_t kInputs = 6, kClasses = 3;

inline zoo::Model small_mlp(std::int64_t batch) {
  return zoo::mlp({.batch = batch, .inputs = kInputs, .hidden = {8}, .classes = kClasses});
}
inline Graph mlp_graph(std::int64_t batch, Phase) { return small_mlp(batch).graph; }

// With dropout and batch norm: random counters and running statistics.
inline Graph dropout_graph(std::int64_t batch, Phase phase) {
  const bool training = phase == Phase::training;
  Graph g;
  const Tensor x = g.input("x", {batch, kInputs}), labels = g.input("labels", {batch}, i64);
  const Tensor h = relu(nn::batch_norm("norm", nn::linear("fc1", x, 8), {.training = training}));
  const Tensor logits = nn::linear("fc2", nn::dropout(h, 0.25, training), kClasses);
  g.output("logits", logits);
  g.output("loss", cross_entropy(logits, labels));
  return g;
}

// The loss is w times the mean of x, with one weight w = 1.
inline Graph mean_graph(std::int64_t batch, Phase) {
  Graph g;
  const Tensor x = g.input("x", {batch, 1});
  g.input("labels", {batch});
  const Tensor w = g.parameter("w", {1}, init::constant(1));
  g.output("loss", mean(x * w));
  return g;
}

inline Session session_of(const Graph& graph, const optim::Optimizer& optimizer) {
  return build_session(graph, graph.output("loss"), {.optimizer = optimizer});
}

// Items whose label is the largest of the first inputs: something that can be learnt.
inline data::Batch random_batch(std::int64_t items, std::uint64_t seed) {
  std::vector<float> x = random_floats(items * kInputs, seed);
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < items; ++k) {
    const auto row = x.begin() + k * kInputs;
    labels.push_back(std::max_element(row, row + kClasses) - row);
  }
  return {{{items, kInputs}, std::move(x)}, {{items}, std::move(labels)}};
}
inline std::vector<data::Batch> random_batches(int count, std::int64_t items,
                                               std::uint64_t seed = 0) {
  std::vector<data::Batch> batches;
  for (int k = 0; k < count; ++k)
    batches.push_back(random_batch(items, seed * 1000 + static_cast<std::uint64_t>(k)));
  return batches;
}
inline data::Dataset random_dataset(std::int64_t items, std::uint64_t seed) {
  data::Batch batch = random_batch(items, seed);
  return data::make_dataset(std::move(batch.data), std::move(batch.labels));
}
// Of mean_graph().
inline data::Batch constant_batch(std::int64_t items, float value) {
  const auto count = static_cast<std::size_t>(items);
  return {{{items, 1}, std::vector<float>(count, value)}, {{items}, std::vector<float>(count)}};
}

// Batches in their order, whatever the epoch; notes what it was asked.
class FixedLoader : public data::Loader {
 public:
  explicit FixedLoader(std::vector<data::Batch> batches) : batches_(std::move(batches)) {}
  void shuffle(std::uint64_t epoch) override {
    shuffles.push_back(epoch);
    next_ = 0;
  }
  void reset() override { next_ = 0; }
  std::optional<data::Batch> next_batch() override {
    if (next_ == batches_.size()) return {};
    return batches_[next_++];
  }
  std::vector<std::uint64_t> shuffles;

 private:
  std::vector<data::Batch> batches_;
  std::size_t next_ = 0;
};

// Every parameter, state and scalar by name.
inline std::vector<std::pair<std::string, Literal>> everything_in(const Session& session) {
  std::vector<std::pair<std::string, Literal>> values;
  for (const std::string& name : session.parameters())
    values.emplace_back(name, session.parameter(name));
  for (const std::string& name : session.states()) values.emplace_back(name, session.state(name));
  for (const std::string& name : session.scalars())
    values.emplace_back(name, Literal::scalar(session.scalar(name)));
  return values;
}
inline void expect_same_bits(const Session& actual, const Session& expected,
                             const std::string& about = "") {
  const auto ours = everything_in(actual), theirs = everything_in(expected);
  ASSERT_EQ(ours.size(), theirs.size()) << about;
  for (std::size_t k = 0; k < ours.size(); ++k) {
    EXPECT_EQ(ours[k].first, theirs[k].first) << about;
    EXPECT_EQ(ours[k].second, theirs[k].second) << ours[k].first << ' ' << about;
  }
}

// The lines that are logged while the function runs.
template <class F>
std::vector<std::string> logged(logging::Level from, F&& f) {
  std::vector<std::string> lines;
  const logging::Capture capture(from, [&](logging::Level level, std::string_view text) {
    if (level == from) lines.emplace_back(text);
  });
  f();
  return lines;
}

}  // namespace pantala::tests
