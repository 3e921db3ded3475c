// Reductions. Their axes are an attribute in older versions and an input in newer ones.
#include <fmt/format.h>

#include <numeric>

#include "onnx/adapters.h"

namespace pantala::onnx {

namespace {

struct ReducedAxes {
  IntList axes;
  bool keep = true;
  bool none = false;  // no axis at all
};

ReducedAxes read_reduced_axes(const Node& node) {
  ReducedAxes r;
  const int rank = node.rank(0);
  for (const std::int64_t axis : node.integers(1, "axes")) r.axes.push_back(node.axis(axis, rank));
  r.keep = node.attribute("keepdims", std::int64_t{1}) != 0;
  if (r.axes.empty()) {
    r.none = node.attribute("noop_with_empty_axes", std::int64_t{0}) != 0;
    r.axes.resize(static_cast<std::size_t>(rank));
    std::iota(r.axes.begin(), r.axes.end(), 0);
  }
  return r;
}

using Reduce = Tensor (*)(Operand, const IntList&, bool);
Tensor same(const Tensor& x) { return x; }
Tensor squared(const Tensor& x) { return mul(x, x); }
Tensor magnitude(const Tensor& x) { return abs(x); }
Tensor root(const Tensor& x) { return sqrt(x); }
Tensor logarithm(const Tensor& x) { return log(x); }

// kAfter(kReduce(kBefore(x))). Integers that have no such reduction are reduced in f64.
template <Reduce kReduce, Tensor (*kBefore)(const Tensor&) = same,
          Tensor (*kAfter)(const Tensor&) = same, bool kFloatOnly = false>
void convert_reduction(Node& node) {
  const ReducedAxes r = read_reduced_axes(node);
  const DType dtype = node.dtype(0);
  const Tensor given = node.tensor(0);
  const bool in_double = dtype == boolean || (kFloatOnly && !is_float(dtype));
  const Tensor x = kBefore(in_double ? cast(given, f64) : given);
  const Tensor y = kAfter(r.none || x.rank() == 0 ? x : kReduce(x, r.axes, r.keep));
  node.give(in_double ? cast(y, dtype) : y);
}

// The extremes of nothing are infinite.
template <Reduce kReduce, int kSign>
void convert_extreme(Node& node) {
  const ReducedAxes r = read_reduced_axes(node);
  bool empty = false;
  for (const std::int64_t axis : r.axes)
    empty = empty || node.shape(0)[static_cast<int>(axis)] == 0;
  if (!empty || r.none) {
    convert_reduction<kReduce>(node);
    return;
  }
  if (!is_float(node.dtype(0))) node.unsupported("the extreme of no integers");
  IntList sizes;
  for (int k = 0; k < node.rank(0); ++k) {
    const bool gone = std::find(r.axes.begin(), r.axes.end(), k) != r.axes.end();
    if (!gone || r.keep) sizes.push_back(gone ? 1 : node.shape(0)[k]);
  }
  node.give(node.graph().constant(kSign * std::numeric_limits<double>::infinity(), Shape(sizes),
                                  node.dtype(0)));
}

using Arg = Tensor (*)(Operand, std::int64_t, bool);
template <Arg kArg>
void convert_arg(Node& node) {
  const Tensor x = node.tensor(0);
  const int axis = node.axis(node.attribute("axis", std::int64_t{0}), x.rank());
  const bool keep = node.attribute("keepdims", std::int64_t{1}) != 0;
  // The last of equals is the first one from the end.
  if (node.attribute("select_last_index", std::int64_t{0}) != 0)
    node.give(sub(x.dim(axis) - 1, kArg(flip(x, {axis}), axis, keep)));
  else
    node.give(kArg(x, axis, keep));
}

constexpr Adapter kReduceAdapters[] = {
    {"ReduceSum", convert_reduction<sum>, true, true},
    {"ReduceMean", convert_reduction<mean, same, same, true>, true, true},
    {"ReduceMax", convert_extreme<amax, -1>},
    {"ReduceMin", convert_extreme<amin, 1>},
    {"ReduceProd", convert_reduction<prod, same, same, true>, true, true},
    {"ReduceSumSquare", convert_reduction<sum, squared>, true, true},
    {"ReduceL1", convert_reduction<sum, magnitude>, true, true},
    {"ReduceL2", convert_reduction<sum, squared, root, true>, true, true},
    {"ReduceLogSum", convert_reduction<sum, same, logarithm, true>, true, true},
    {"ReduceLogSumExp", convert_reduction<logsumexp, same, same, true>, true, true},
    {"ArgMax", convert_arg<argmax>},
    {"ArgMin", convert_arg<argmin>},
};

}  // namespace

std::span<const Adapter> reduce_adapters() { return kReduceAdapters; }

}  // namespace pantala::onnx
