// Computing again instead of keeping: the same bits in less memory, and what is said where that is
// not enough.
#include "search/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "support/errors.h"
#include "support/fill.h"

namespace pantala::search::recompute_test {
namespace {

using ::testing::HasSubstr;

// Linear layers with activations that are dear to compute, as deep as said.
struct Deep {
  Graph graph;
  Tensor loss;

  explicit Deep(int layers) {
    Tensor x = graph.input("x", {256, 64});
    for (int k = 0; k < layers; ++k) {
      const Tensor w = graph.parameter("w" + std::to_string(k), {64, 64});
      x = gelu(matmul(x, w)) + tanh(x);
    }
    loss = mean(square(x));
    graph.output("loss", loss);
  }
};

CompileResult compiled(const Deep& deep, std::int64_t limit, Rewrite rewrite = Rewrite::egraph) {
  return compile_training_graph(
      deep.graph, deep.loss,
      {.threads = 2, .rewrite = rewrite, .memory_limit = limit, .optimizer = optim::adam(0.01)});
}

// All bits of three steps: losses, parameters, states.
std::vector<std::vector<double>> bits_after_steps(const CompileResult& result) {
  Session session(result.plan);
  for (const std::string& name : session.parameters())
    session.set_parameter(name, tests::fill(name, session.parameter(name).shape(), 0.2));
  session.set_input("x", tests::fill("x", {256, 64}, 1));
  std::vector<std::vector<double>> bits;
  for (int k = 0; k < 3; ++k) {
    session.step();
    bits.push_back({session.loss()});
  }
  for (const std::string& name : session.parameters()) {
    const Literal value = session.parameter(name);
    bits.emplace_back(value.f().begin(), value.f().end());
  }
  return bits;
}

TEST(Recomputing, keeps_a_limit_with_the_same_bits) {
  const Deep deep(12);
  const CompileResult free = compiled(deep, 0, Rewrite::none);
  const auto expected = bits_after_steps(free);
  std::int64_t last = free.report.peak_bytes;
  for (const double part : {0.95, 0.88, 0.8}) {
    const auto limit =
        static_cast<std::int64_t>(part * static_cast<double>(free.report.peak_bytes));
    for (const Rewrite rewrite : {Rewrite::none, Rewrite::egraph}) {
      const CompileResult limited = compiled(deep, limit, rewrite);
      EXPECT_LE(limited.report.peak_bytes, limit);
      EXPECT_FALSE(limited.report.recomputed.empty());
      if (rewrite == Rewrite::none) {
        EXPECT_EQ(bits_after_steps(limited), expected) << part;
        EXPECT_LE(limited.report.peak_bytes, last);
        last = limited.report.peak_bytes;
      }
    }
  }
}

TEST(Recomputing, names_the_smallest_peak_and_reaches_it) {
  const Deep deep(6);
  const std::string text = tests::message_of<UnsupportedError>([&] { compiled(deep, 1000); });
  EXPECT_THAT(text, HasSubstr("the memory limit of 1000 bytes is too small"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("of 'step' take ([0-9]+) bytes")));
  const std::int64_t smallest = std::stoll(found[1]);
  const CompileResult reached = compiled(deep, smallest);
  EXPECT_LE(reached.report.peak_bytes, smallest);
  EXPECT_LT(smallest, compiled(deep, 0).report.peak_bytes);
}

TEST(Recomputing, a_limit_that_holds_changes_nothing) {
  const Deep deep(4);
  for (const Rewrite rewrite : {Rewrite::none, Rewrite::greedy, Rewrite::egraph}) {
    const CompileResult free = compiled(deep, 0, rewrite);
    const CompileResult limited = compiled(deep, free.report.peak_bytes, rewrite);
    EXPECT_EQ(limited.report.recomputed.size(), free.report.recomputed.size());
    EXPECT_EQ(limited.report.stored.size(), free.report.stored.size());
    EXPECT_EQ(limited.report.peak_bytes, free.report.peak_bytes);
    EXPECT_EQ(limited.report.predicted_us, free.report.predicted_us);
    EXPECT_EQ(bits_after_steps(limited), bits_after_steps(free));
  }
}

TEST(Recomputing, a_negative_limit_is_refused) {
  EXPECT_THAT(tests::message_of<TypeError>([] { compiled(Deep(1), -1); }),
              HasSubstr("memory_limit must not be negative, got -1"));
}

TEST(Recomputing, sizes_are_texts_with_units) {
  EXPECT_EQ(memory_limit_named(""), 0);
  EXPECT_EQ(memory_limit_named("4096"), 4096);
  EXPECT_EQ(memory_limit_named("500M"), 500'000'000);
  EXPECT_EQ(memory_limit_named("1.5G"), 1'500'000'000);
  EXPECT_EQ(memory_limit_named("2GiB"), std::int64_t{2} << 30);
  EXPECT_EQ(memory_limit_named("64KB"), 64'000);
  for (const char* wrong : {"0", "-1", "M", "5 M", "5X", "5Mx", "nan", "inf", "1e30", "2GG"})
    EXPECT_THAT(tests::message_of<TypeError>([&] { memory_limit_named(wrong); }),
                HasSubstr("a memory limit must be a size such as 500M or 2G, got '"))
        << wrong;
}

}  // namespace
}  // namespace pantala::search::recompute_test
