// Random graphs, forward and backward, through the whole compiler. What must hold for any graph:
//   f64    machine code agrees with the interpreter to 1e-11 of a result's largest magnitude;
//   exact  small integers through sums, products, convolutions and gathers: equal in f32;
//   f32    real numbers: within kMultiple times the interpreter's own error in float
//          (support/float_error.h), result by result;
//   bits   the same from interpreted kernels, from machine code, op by op and for any threads;
//   plans  no temporary is written over while it is needed (support/plan_overlap.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "support/compiled.h"
#include "support/float_error.h"
#include "support/plan_overlap.h"
#include "support/random_graph.h"

namespace pantala::testing {
namespace {

constexpr int kSteps = 3;
constexpr int kShards = 10;  // of each suite, so that they can run at once
constexpr double kMultiple = 8;

// A random graph with its gradients, and what the interpreter says.
struct Case {
  Graph graph;  // the outputs are all that is compared
  ref::Bindings bindings;
  std::vector<Literal> exact;
};

Case make_case(std::uint64_t seed, DType dtype, bool exact) {
  const RandomGraph r = random_graph(seed, {.steps = kSteps, .dtype = dtype, .exact = exact});
  const Gradients d = differentiate(r.graph, r.loss, r.wrt);
  std::vector<Tensor> wanted;
  for (const auto& [name, value] : d.graph.outputs()) wanted.push_back(value);
  wanted.insert(wanted.end(), d.gradients.begin(), d.gradients.end());
  Case c{.graph = with_outputs(d.graph, wanted), .bindings = r.bindings, .exact = {}};
  std::vector<Tensor> outputs;
  for (const auto& [name, value] : c.graph.outputs()) outputs.push_back(value);
  c.exact = ref::evaluate(c.graph, outputs, c.bindings);
  return c;
}

// The outputs; the plan that computes them is checked on the way.
std::vector<Literal> run_checked(const Case& c, const CompiledRun& how) {
  const compiler::Compiled compiled = compile_graph(c.graph, how);
  EXPECT_EQ(memory_offence(compiled.plan), "");
  return run_compiled(c.graph, compiled, c.bindings, how);
}

// The first result that is further from the truth than kMultiple times its error in float, or "".
std::string beyond(const std::vector<Literal>& exact, const std::vector<Literal>& got,
                   const std::vector<double>& errors) {
  for (std::size_t r = 0; r < exact.size(); ++r)
    for (std::int64_t k = 0; k < exact[r].numel(); ++k) {
      const double x = exact[r].at(k), y = got[r].at(k);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::isinf(errors[r])) continue;
      const double times = std::fabs(x - y) / errors[r];
      if (!(times <= kMultiple))
        return fmt::format("result {} element {}: expected {}, got {}: {:.1f} times its error", r,
                           k, x, y, times);
    }
  return "";
}

// `wrong` says what is wrong with a case, or "". An error of the compiler fails this case alone.
template <class Wrong>
void expect_right(std::uint64_t seed, const Case& c, const Wrong& wrong) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::string message;
  try {
    message = wrong();
  } catch (const Error& error) { message = error.what(); }
  EXPECT_EQ(message, "") << to_text(c.graph);
}

// One of kShards equal parts of [0, count).
struct Seeds {
  std::uint64_t begin, end;
  Seeds(int shard, int count)
      : begin(static_cast<std::uint64_t>(shard * count / kShards)),
        end(static_cast<std::uint64_t>((shard + 1) * count / kShards)) {}
};

class CompiledGraphs : public ::testing::TestWithParam<int> {};

TEST_P(CompiledGraphs, agree_in_f64_to_1e_11) {
  const Seeds seeds(GetParam(), 300);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Case c = make_case(seed, f64, false);
    expect_right(seed, c, [&] { return differing(c.exact, run_checked(c, {}), 1e-11); });
  }
}

TEST_P(CompiledGraphs, agree_exactly_on_small_integers) {
  constexpr int kCount = 30, kMostTried = 100;
  int exact = 0;
  for (int k = 0; exact < kCount; ++k) {
    ASSERT_LT(k, kMostTried) << "only " << exact << " of the graphs are exact";
    const auto seed = static_cast<std::uint64_t>(GetParam() * kMostTried + k);
    const Case c = make_case(seed, f32, true);
    if (!is_exact_in_float(c.graph, c.bindings)) continue;
    ++exact;
    expect_right(seed, c, [&] { return differing(c.exact, run_checked(c, {}), 0); });
  }
}

TEST_P(CompiledGraphs, agree_in_f32_within_a_multiple_of_the_error_of_float) {
  const Seeds seeds(GetParam(), 400);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Case c = make_case(seed, f32, false);
    expect_right(seed, c, [&] {
      return beyond(c.exact, run_checked(c, {}), errors_in_float(c.graph, c.bindings, c.exact));
    });
  }
}

TEST_P(CompiledGraphs, have_the_same_bits_interpreted_unfused_and_on_any_threads) {
  const Seeds seeds(GetParam(), 300);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Case c = make_case(seed, f32, false);
    const CompiledRun others[] = {{.device = "kir"},
                                  {.device = "kir", .fuse = false},
                                  {.threads = 2},
                                  {.threads = 3},
                                  {.threads = 7}};
    expect_right(seed, c, [&] {
      const std::vector<Literal> bits = run_checked(c, {});
      for (const CompiledRun& how : others)
        if (const std::string other = differing_bits(bits, run_checked(c, how)); !other.empty())
          return fmt::format("{}{} with {} threads: {}", how.device, how.fuse ? "" : " unfused",
                             how.threads, other);
      return std::string();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, CompiledGraphs, ::testing::Range(0, kShards));

}  // namespace
}  // namespace pantala::testing
