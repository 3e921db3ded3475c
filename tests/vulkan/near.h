// What a graph computes on the Vulkan device against the truth: within a multiple of what computing
// in f32 may do to it, and with the same bits when it is run again.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "pantala/text.h"
#include "support/compiled.h"
#include "support/float_error.h"
#include "vulkan/vulkan_case.h"

namespace pantala::vulkan_tests {

// The results of a graph (support/compiled.h) and, if given, further values of it.
inline void expect_near_the_truth(const Graph& given, const ref::Bindings& bindings,
                                  const std::vector<Tensor>& more = {}) {
  constexpr double kMultiple = 16;  // twice what the CPU is allowed
  std::vector<Tensor> wanted;
  for (const auto& [name, value] : given.outputs()) wanted.push_back(value);
  wanted.insert(wanted.end(), more.begin(), more.end());
  const Graph graph = tests::with_outputs(given, wanted);
  const std::vector<Literal> exact = ref::evaluate(graph, tests::results_of(graph), bindings);
  const std::vector<double> errors = tests::errors_in_float(graph, bindings, exact);
  const tests::CompiledRun how{.device = test_device()};
  const plan::CompiledStep compiled = tests::compile_graph(graph, how);
  const std::vector<Literal> got = tests::run_compiled(graph, compiled, bindings, how);
  EXPECT_EQ(tests::differing_bits(got, tests::run_compiled(graph, compiled, bindings, how)), "");
  ASSERT_EQ(got.size(), exact.size());
  for (std::size_t result = 0; result < exact.size(); ++result)
    for (std::int64_t i = 0; i < exact[result].numel(); ++i) {
      const double x = exact[result].at(i), y = got[result].at(i);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::isinf(errors[result])) continue;
      ASSERT_LE(std::fabs(x - y), kMultiple * errors[result])
          << "result " << result << " element " << i << ": expected " << x << ", got " << y << '\n'
          << to_text(graph);
    }
}

}  // namespace pantala::vulkan_tests
