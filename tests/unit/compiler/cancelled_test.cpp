// Compilations that are called off.
#include "pantala/cancelled.h"

#include <gtest/gtest.h>

#include <atomic>

#include "pantala/compile.h"
#include "pantala/ops.h"

namespace pantala::compiler {
namespace {

// Several kernels; `width` makes them others than those of other tests.
Graph chain(std::int64_t width) {
  Graph g;
  Tensor x = g.input("x", {3, width});
  for (int k = 0; k < 4; ++k) x = softmax(x, 1) - mean(x);
  g.output("y", x);
  return g;
}

TEST(CancelledCompilation, is_asked_before_every_stage_and_kernel_and_ends_where_it_is_told) {
  std::atomic<int> asked = 0;
  CompileOptions options{.threads = 2, .cancelled = [&] { return ++asked, false; }};
  compile(chain(37), options);
  const int all = asked;
  EXPECT_GT(all, 5);
  for (int at = 1; at <= all; ++at) {
    asked = 0;
    options.cancelled = [&] { return ++asked >= at; };
    EXPECT_THROW(compile(chain(37 + at), options), CancelledError) << at;
  }
}

// A model of many layers has few kernels, and takes long to schedule.
TEST(CancelledCompilation, is_asked_for_every_group_while_it_schedules) {
  const auto asked_for = [](int layers) {
    Graph g;
    Tensor x = g.input("x", {6, 6});
    for (int k = 0; k < layers; ++k) x = matmul(x, x);
    g.output("y", x);
    int asked = 0;
    compile(g, {.device = "kir", .cancelled = [&] { return ++asked, false; }});
    return asked;
  };
  EXPECT_GE(asked_for(40) - asked_for(20), 3 * 20);  // pieces are found, join, and are built
}

// The process shares code: another compilation of the same kernels is not the one called off.
TEST(CancelledCompilation, leaves_nothing_that_is_in_the_way_of_the_next_one) {
  const Graph graph = chain(71);
  std::atomic<int> asked = 0;
  EXPECT_THROW(compile(graph, {.cancelled = [&] { return ++asked > 4; }}), CancelledError);
  EXPECT_GT(compile(graph).report.kernels_after, 0);
}

}  // namespace
}  // namespace pantala::compiler
