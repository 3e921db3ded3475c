// Images of direct convolutions with channels last or by planes: the same bits, and taken where the
// estimate says that it pays.
#include "search/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/options.h"
#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "schedule/cpu/cost_tables.h"
#include "schedule/schedule.h"
#include "support/compiled.h"
#include "support/fill.h"

namespace pantala::search::layouts_test {
namespace {

using ::testing::IsEmpty;

Options search_options() {
  static const schedule::CostTable& table = schedule::cpu::shipped_cost_table(64);
  return {.archetypes = compiler::backend_of("cpu").archetypes({}), .table = table};
}

// A strided convolution with its gradients, a pool and what is computed element by element.
Graph convolutions(std::int64_t batch, std::int64_t channels, std::int64_t size) {
  Graph graph;
  const Tensor x = graph.parameter("x", {batch, channels, size, size});
  const Tensor weight = graph.parameter("weight", {5, channels, 3, 3});
  const Tensor y = relu(conv2d(x, weight, {}, {.stride = {2, 2}, .padding = {1, 1}}));
  const Tensor loss = sum(max_pool2d(y, {2, 2}) * 0.5, {});
  graph.output("y", y);
  const Gradients joint = differentiate(graph, loss, {x, weight});
  Graph both = joint.graph;
  both.output("dx", both.value(joint.gradients[0].id()));
  both.output("dw", both.value(joint.gradients[1].id()));
  return Scales(search_options()).lowered(both);
}

std::vector<std::uint32_t> all_nodes(const std::vector<Imaged>& kinds) {
  std::vector<std::uint32_t> nodes;
  for (const Imaged& kind : kinds) nodes.insert(nodes.end(), kind.nodes.begin(), kind.nodes.end());
  return nodes;
}

int images_with_channels_last(const Graph& graph) {
  const Options options = search_options();
  const schedule::Decisions decisions = Scales(options).judge(graph).decisions;
  return static_cast<int>(
      std::ranges::count_if(decisions.buffers, [](const schedule::ProgramBuffer& buffer) {
        return buffer.order.size() == 4 && buffer.order[1] != 1;
      }));
}

TEST(Layouts, are_those_of_direct_convolutions_the_largest_first) {
  const std::vector<Imaged> kinds = with_channels_last(convolutions(2, 3, 16));
  ASSERT_EQ(kinds.size(), 3u);
  for (std::size_t k = 1; k < kinds.size(); ++k)
    EXPECT_GE(kinds[k - 1].elements, kinds[k].elements);
  const Graph planar = by_planes(convolutions(2, 3, 16), all_nodes(kinds));
  EXPECT_THAT(with_channels_last(planar), IsEmpty());
}

TEST(Layouts, by_planes_no_image_has_channels_last) {
  const Graph given = convolutions(2, 3, 16);
  EXPECT_GT(images_with_channels_last(given), 0);
  EXPECT_EQ(images_with_channels_last(by_planes(given, all_nodes(with_channels_last(given)))), 0);
}

TEST(Layouts, have_the_same_bits) {
  const Graph given = convolutions(2, 3, 11);
  const Graph planar = by_planes(given, all_nodes(with_channels_last(given)));
  const ref::Bindings inputs{{"x", tests::fill("x", {2, 3, 11, 11}, 1)},
                             {"weight", tests::fill("weight", {5, 3, 3, 3}, 1)}};
  const std::vector<Literal> expected = tests::run_compiled(given, inputs);
  for (const char* device : {"cpu", "kir"})
    EXPECT_EQ(
        tests::differing_bits(expected, tests::run_compiled(planar, inputs, {.device = device})),
        "");
}

TEST(Layouts, are_changed_only_where_it_pays) {
  const Options options = search_options();
  Scales scales(options);
  for (const std::int64_t channels : {1, 3, 64}) {
    const Graph given = convolutions(4, channels, 56);
    std::vector<Imaged> changed;
    const Judged before = scales.judge(given);
    const double time = before.estimate.microseconds;
    const Judged after = better_layouts(scales.judge(given), scales, 1'000'000, changed);
    if (changed.empty())
      EXPECT_EQ(after.estimate.microseconds, time);
    else
      EXPECT_LE(after.estimate.microseconds, time);
  }
}

TEST(Layouts, of_a_limited_search_are_left) {
  const Options options = search_options();
  Scales scales(options);
  std::vector<Imaged> changed;
  better_layouts(scales.judge(convolutions(4, 1, 56)), scales, 1, changed);
  EXPECT_THAT(changed, IsEmpty());
}

}  // namespace
}  // namespace pantala::search::layouts_test
