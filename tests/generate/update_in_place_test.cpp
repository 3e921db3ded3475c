// update_slice on state: only the window is written, wherever it lies, and the rest of the tensor
// costs nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pantala/compile.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/fill.h"

namespace pantala::tests {
namespace {

struct Case {
  Shape state, update;
  std::int64_t axis;
  std::int64_t last;  // position
};

// Who else looks at the state in the same step.
enum class Reader { of_new, of_both, outside };

// The update is computed from an input, and the new state is read again in the same step.
Graph graph_of(const Case& c, Reader reader) {
  Graph graph;
  const Tensor state = graph.state("state", c.state, init::normal(), f32),
               x = graph.input("x", c.update), position = graph.input("position", {}, i64);
  const Tensor after = update_slice(state, tanh(x) * 2.0, position, c.axis);
  graph.update(state, after);
  // The old value is needed when the new one is there already: it cannot be written in place.
  graph.output("sum", sum(after * (reader == Reader::of_both ? state : after)));
  if (reader == Reader::outside) graph.output("after", after);
  return graph;
}

// The same as on the interpreter, step after step.
void expect_interpreted(const Case& c, Reader reader, const std::string& device) {
  const Graph graph = graph_of(c, reader);
  ref::Session expected(graph, 3);
  Session session(compile(graph, {.device = device, .threads = 2}), {.seed = 3});
  for (const std::int64_t position : {std::int64_t{0}, c.last, c.last / 2}) {
    const Literal x = fill(fmt::format("x{}", position), c.update);
    session.set_input("x", x);
    session.set_input("position", Literal::integer(position));
    session.step();
    expected.set_input("x", x);
    expected.set_input("position", Literal::integer(position));
    expected.step();
    const Literal got = session.state("state"), &want = expected.value("state");
    for (std::int64_t k = 0; k < got.numel(); ++k)
      ASSERT_NEAR(got.at(k), want.at(k), 1e-6) << c.state.str() << " " << position << " " << k;
    EXPECT_NEAR(session.output_scalar("sum"), expected.output("sum").at(0), 1e-3);
  }
  EXPECT_THROW(session.set_input("position", Literal::integer(c.last + 1)), ValueError)
      << c.state.str();
}

TEST(UpdateInPlace, writes_the_window_and_nothing_else) {
  const std::vector<Case> cases{{{7}, {2}, 0, 5},
                                {{4, 6, 5}, {4, 2, 5}, 1, 4},
                                {{4, 6, 5}, {1, 6, 5}, 0, 3},
                                {{3, 2, 37}, {3, 2, 9}, 2, 28},
                                {{2, 3, 8, 4}, {2, 3, 1, 4}, 2, 7},
                                {{3, 4}, {3, 4}, 1, 0},
                                {{1, 1}, {1, 1}, 0, 0},
                                {{5, 3}, {0, 3}, 0, 5}};
  for (const Case& c : cases)
    for (const Reader reader : {Reader::of_new, Reader::of_both, Reader::outside})
      for (const std::string device : {"cpu", "kir"}) expect_interpreted(c, reader, device);
}

TEST(UpdateInPlace, costs_what_the_window_costs) {
  const auto flops = [](std::int64_t size) {
    Graph graph;
    const Tensor state = graph.state("state", {8, size, 16}), x = graph.input("x", {8, 1, 16}),
                 position = graph.input("position", {}, i64);
    graph.update(state, update_slice(state, tanh(x), position, 1));
    graph.output("x", x);
    return compile(graph).report.flops;
  };
  EXPECT_EQ(flops(4), flops(4096));
}

}  // namespace
}  // namespace pantala::tests
