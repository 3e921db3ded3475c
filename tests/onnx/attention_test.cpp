// Attention nodes are the attention op, whatever is masked; its numbers are those of the products
// and the softmax that stand for the forms which the op lacks.
#include "ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "onnx/model_maker.h"
#include "ops/face.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"

namespace pantala::tests::attention_test {
namespace {

struct AttentionCase {
  const char* name;
  Sizes mask = {};  // no axes: there is none
  bool bool_mask = false;
  std::int64_t causal = 0, past = 0, left = -1;
  bool lengths = false;  // how many keys of each item count
};

constexpr std::int64_t kBatch = 2, kHeads = 2, kQueries = 3, kSize = 4;

// With `scores` the node is asked for them too, which the op does not have.
onnx::Model model_of(const AttentionCase& c, bool scores) {
  ModelMaker maker("attention", 28);
  for (const char* name : {"q", "k", "v"}) maker.input(name, {kBatch, kHeads, kQueries, kSize});
  Names inputs = {"q", "k", "v", "", "", "", ""};
  if (!c.mask.empty()) {
    inputs[3] = "mask";
    maker.input("mask", c.mask,
                c.bool_mask ? ::onnx::TensorProto::BOOL : ::onnx::TensorProto::FLOAT);
  }
  if (c.past > 0)
    for (const int k : {4, 5}) {
      inputs[static_cast<std::size_t>(k)] = k == 4 ? "past_k" : "past_v";
      maker.input(inputs[static_cast<std::size_t>(k)], {kBatch, kHeads, c.past, kSize});
    }
  if (c.lengths) {
    inputs[6] = "lengths";
    maker.input("lengths", {kBatch}, ::onnx::TensorProto::INT64);
  }
  maker.node("Attention", inputs, scores ? Names{"y", "", "", "scores"} : Names{"y"});
  maker.with("is_causal", c.causal).with("left_window_size", c.left);
  const std::string file =
      maker.made(scores ? Names{"y", "scores"} : Names{"y"}).SerializeAsString();
  return onnx::import_model(std::as_bytes(std::span(file)), "m.onnx");
}

bool has_attention(const Graph& graph) {
  for (const ir::Node& node : graph.data()->nodes())
    if (ops::is<op::Attention>(node)) return true;
  return false;
}

Literal result_of(const onnx::Model& model) {
  ref::Bindings feeds;
  for (const Leaf& input : model.graph.leaves(LeafKind::input)) {
    Literal value(input.value.type());
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (value.is_float())
        value.f()[at] = std::sin(static_cast<double>(7 * k) + input.name.back());
      else
        value.i()[at] = value.dtype() == boolean ? (k * k) % 3 != 1 : kQueries - k;
    }
    feeds.emplace(input.name, value);
  }
  return ref::evaluate(model.graph, {model.graph.output("y")}, feeds)[0];
}

class OnnxAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(OnnxAttention, uses_the_op) {
  const onnx::Model by_op = model_of(GetParam(), false), by_parts = model_of(GetParam(), true);
  EXPECT_TRUE(has_attention(by_op.graph));
  EXPECT_FALSE(has_attention(by_parts.graph));
  const Literal got = result_of(by_op), expected = result_of(by_parts);
  for (std::size_t k = 0; k < expected.f().size(); ++k)
    ASSERT_NEAR(got.f()[k], expected.f()[k], 1e-12) << k;
}

INSTANTIATE_TEST_SUITE_P(
    masks, OnnxAttention,
    ::testing::Values(
        AttentionCase{.name = "none"},
        AttentionCase{.name = "added", .mask = {kBatch, 1, kQueries, kQueries}},
        AttentionCase{.name = "kept", .mask = {kQueries, kQueries}, .bool_mask = true},
        AttentionCase{.name = "short", .mask = {kQueries, 2}},
        AttentionCase{.name = "short_kept", .mask = {kQueries, 2}, .bool_mask = true},
        AttentionCase{
            .name = "causal_and_added", .mask = {1, kHeads, kQueries, kQueries}, .causal = 1},
        AttentionCase{.name = "cache", .causal = 1, .past = 2},
        AttentionCase{.name = "cache_and_kept",
                      .mask = {kQueries, kQueries + 2},
                      .bool_mask = true,
                      .causal = 1,
                      .past = 2},
        AttentionCase{.name = "window", .causal = 1, .left = 1},
        AttentionCase{.name = "window_both_sides", .left = 1},
        AttentionCase{.name = "lengths", .lengths = true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pantala::tests::attention_test
