// Random graphs, forward and backward, through the whole compiler. What must hold for any graph:
//  - f64: machine code agrees with the interpreter to 1e-11 of a result's largest magnitude.
//  - exact: small integers through sums, products, convolutions and gathers are equal in f32.
//    Both also hold for what the e-graph chooses, and what rules in their order make, so that these
//    suites run that.
//  - f32: real numbers are within kMultiple times the interpreter's own error in float
//    (support/float_error.h), result by result.
//  - bits: the same from interpreted kernels, from machine code, op by op and for any threads.
//  - gpu: the kernels of a GPU agree with the interpreter as well.
//  - plans: no temporary is written over while it is needed (support/plan_overlap.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "support/compiled.h"
#include "support/float_error.h"
#include "support/plan_overlap.h"
#include "support/random_graph.h"

namespace pantala::tests {
namespace {

constexpr int kSteps = 3;
constexpr int kShards = 10;  // of each suite, so that they can run at once
constexpr double kMultiple = 8;
CompiledRun chosen(std::uint64_t seed) {
  return {.level = seed % 3 == 0 ? search::Level::greedy : search::Level::egraph};
}
// Without Winograd's algorithms: their points are fractions, so that integers are rounded too.
CompiledRun chosen_exactly(std::uint64_t seed) {
  CompiledRun how = chosen(seed);
  how.rules_off = winograd_rules();
  return how;
}

// A random graph with its gradients, and what the interpreter says.
struct Case {
  Graph graph;  // its outputs and updates are compared
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
  // Every other parameter takes a step down: its memory is written while others are still read.
  for (std::size_t k = 0; k < r.wrt.size(); k += 2) {
    const Tensor parameter = c.graph.value(d.at(r.wrt[k]).id());
    c.graph.update(parameter, parameter - c.graph.value(d.gradients[k].id()));
  }
  c.exact = ref::evaluate(c.graph, results_of(c.graph), c.bindings);
  return c;
}

// The outputs; the plan that computes them is checked on the way.
std::vector<Literal> run_checked(const Case& c, const CompiledRun& how) {
  const plan::CompiledStep compiled = compile_graph(c.graph, how);
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
    expect_right(seed, c, [&] { return differing(c.exact, run_checked(c, chosen(seed)), 1e-11); });
  }
}

// The kernels of a GPU, interpreted: races between threads are errors, too.
TEST_P(CompiledGraphs, agree_in_f64_with_kernels_of_a_gpu) {
  const Seeds seeds(GetParam(), 150);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Case c = make_case(seed, f64, false);
    expect_right(seed, c, [&] {
      return differing(c.exact, run_checked(c, {.device = "kir", .target = "gpu"}), 1e-11);
    });
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
    expect_right(seed, c,
                 [&] { return differing(c.exact, run_checked(c, chosen_exactly(seed)), 0); });
  }
}

// What differs from `bits` when the case is run in other ways, or "".
std::string other_bits(const Case& c, const std::vector<Literal>& bits) {
  const CompiledRun ways[] = {{.device = "kir"},
                              {.device = "kir", .fuse = false},
                              {.threads = 2},
                              {.threads = 3},
                              {.threads = 7}};
  for (const CompiledRun& how : ways)
    if (const std::string other = differing_bits(bits, run_checked(c, how)); !other.empty())
      return fmt::format("{}{} with {} threads: {}", how.device, how.fuse ? "" : " unfused",
                         how.threads, other);
  return "";
}

// Code is generated once for both: most of the time goes there.
TEST_P(CompiledGraphs, agree_in_f32_within_the_error_of_float_and_with_the_same_bits_everywhere) {
  const Seeds seeds(GetParam(), 400);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Case c = make_case(seed, f32, false);
    expect_right(seed, c, [&] {
      const std::vector<Literal> got = run_checked(c, {});
      const std::string far = beyond(c.exact, got, errors_in_float(c.graph, c.bindings, c.exact));
      return far.empty() && seed % 4 != 0 ? other_bits(c, got) : far;
    });
  }
}

// The checks themselves: a plan whose temporaries all lie in one place, and a result that is off by
// more than float explains.
TEST(CompiledGraphChecks, see_overlapping_temporaries) {
  Graph g;
  const Tensor x = g.input("x", {64});
  const Tensor a = exp(x), b = sin(x);
  g.output("y", (a + b) * a);
  plan::CompiledStep compiled = compile_graph(g, {.device = "kir", .fuse = false});
  EXPECT_EQ(memory_offence(compiled.plan), "");
  for (plan::Buffer& buffer : compiled.plan.buffers)
    if (buffer.storage == plan::Storage::arena) buffer.offset = 0;
  EXPECT_NE(memory_offence(compiled.plan), "");
  compiled.plan.arena_bytes = 0;
  EXPECT_NE(memory_offence(compiled.plan), "");
}

TEST(CompiledGraphChecks, see_errors_beyond_float) {
  Graph g;
  const Tensor x = g.input("x", {64});
  g.output("y", exp(x) * sin(x));
  const ref::Bindings bindings{{"x", Literal::floats({64}, std::vector<double>(64, 0.75))}};
  const std::vector<Literal> exact = ref::evaluate(g, results_of(g), bindings);
  const std::vector<double> errors = errors_in_float(g, bindings, exact);
  std::vector<Literal> off = exact;
  off[0].f()[7] *= 1 + 3e-8;
  EXPECT_EQ(beyond(exact, off, errors), "");
  off[0].f()[7] *= 1 + 1e-5;
  EXPECT_NE(beyond(exact, off, errors), "");
}

INSTANTIATE_TEST_SUITE_P(Shards, CompiledGraphs, ::testing::Range(0, kShards));

}  // namespace
}  // namespace pantala::tests
