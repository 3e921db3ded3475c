// Generated gradient checks: an op's sample in mid-graph, with an upstream gradient other than 1,
// against central differences in double.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "pantala/interpreter.h"

namespace pantala::tests {

// Values for the inputs of a sample: floats uniform in the sample's range, integers uniform in
// [low, high).
Literal draw(const ir::SampleInput& input, const std::string& name);

// A graph that holds one sample of an op: parameters p0, p1, ... for float inputs, inputs i0, ...
// for the others, each float input having passed through another op, and a scalar loss that weights
// every element of every float result differently.
struct Subject {
  Graph graph;
  std::vector<Tensor> results;  // of the op
  std::vector<Tensor> parameters;
  Tensor loss;  // invalid if no result can enter one
  ref::Bindings bindings;
};
Subject make_subject(const ir::OpDef& op, const ir::Sample& sample);

// Compares the gradients of a scalar with central differences; "" or a message with the worst
// element.
std::string check_gradients(const Graph& graph, const Tensor& scalar,
                            const std::vector<Tensor>& parameters, const ref::Bindings& bindings,
                            double tolerance);
// Order 1: the loss of the subject; order 2: a weighted sum of its gradients.
std::string check_sample(const ir::OpDef& op, const ir::Sample& sample, int order,
                         double tolerance = 1e-6);

}  // namespace pantala::tests
