// A session without fusion and rewriting: slower, the same numbers.
#include <gtest/gtest.h>

#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/fill.h"

namespace pantala::unoptimized_test {
namespace {

Session session(bool optimize) {
  Graph graph;
  const Tensor x = graph.input("x", {8, 6});
  const Tensor labels = graph.input("labels", {8}, i32);
  const Tensor hidden = gelu(nn::layer_norm("norm", nn::linear("in", x, 16)));
  const Tensor loss = cross_entropy(nn::linear("out", hidden, 5), labels);
  const CompileOptions options{.threads = 1, .optimizer = optim::adam(0.01)};
  return optimize ? build_session(graph, loss, options)
                  : build_session_unoptimized(graph, loss, options);
}

TEST(Unoptimized, trains_with_a_kernel_per_op_to_the_same_bits) {
  Session fused = session(true), plain = session(false);
  EXPECT_GT(plain.report().kernels_after, 2 * fused.report().kernels_after);
  EXPECT_EQ(plain.report().kernels_before, fused.report().kernels_before);
  for (int step = 0; step < 20; ++step) {
    for (Session* s : {&fused, &plain}) {
      s->set_input("x", tests::fill("x", {8, 6}));
      s->set_input("labels", tests::fill_int("labels", {8}, 0, 5));
      s->step();
    }
    ASSERT_EQ(fused.loss(), plain.loss()) << step;
  }
  for (const std::string& name : fused.parameters())
    EXPECT_EQ(fused.parameter(name), plain.parameter(name)) << name;
}

}  // namespace
}  // namespace pantala::unoptimized_test
