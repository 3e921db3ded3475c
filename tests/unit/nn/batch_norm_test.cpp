// Batch norm that keeps its statistics, as a layer's option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/text.h"

namespace pantala::tests {
namespace {

TEST(BatchNormLayer, frozen_is_as_evaluation_in_training_too) {
  const auto graph = [](const nn::BatchNormLayerOptions& options) {
    Graph g;
    g.output("y", nn::batch_norm("bn", g.input("x", {4, 3}), options));
    return g;
  };
  const Graph frozen = graph({.training = true, .frozen = true});
  EXPECT_TRUE(frozen.updates().empty());
  EXPECT_EQ(graph({.training = true}).updates().size(), 3U);
  EXPECT_EQ(to_text(frozen), to_text(graph({.training = false})));
  // One value per channel has no variance, but nobody asks for it.
  Graph one;
  nn::batch_norm("bn", one.input("x", {1, 3}), {.frozen = true});
}

}  // namespace
}  // namespace pantala::tests
