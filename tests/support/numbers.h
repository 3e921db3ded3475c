// Shorthands for tests: literals from lists, values of tensors on the interpreter, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "pantala/autodiff.h"
#include "pantala/interpreter.h"

namespace pantala::tests {

inline Literal floats(Shape shape, std::vector<double> values, DType dtype = f32) {
  return Literal::floats(std::move(shape), std::move(values), dtype);
}
inline Literal ints(Shape shape, std::vector<std::int64_t> values, DType dtype = i64) {
  return Literal::ints(std::move(shape), std::move(values), dtype);
}

inline std::vector<double> value_of(const Graph& graph, const Tensor& t,
                                    const ref::Bindings& bindings = {}) {
  return ref::evaluate(graph, {t}, bindings)[0].to_doubles();
}

// The gradients of a scalar, as numbers.
inline std::vector<std::vector<double>> gradients_of(const Graph& graph, const Tensor& loss,
                                                     const std::vector<Tensor>& wrt,
                                                     const ref::Bindings& bindings = {}) {
  const Gradients d = differentiate(graph, loss, wrt);
  std::vector<std::vector<double>> result;
  for (const Literal& l : ref::evaluate(d.graph, d.gradients, bindings))
    result.push_back(l.to_doubles());
  return result;
}

// Each element within `tolerance` of the expected one, relative to its magnitude (absolute below
// 1).
inline void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                         double tolerance = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k)
    EXPECT_NEAR(actual[k], expected[k], tolerance * std::max(1.0, std::fabs(expected[k])))
        << "element " << k;
}

}  // namespace pantala::tests
