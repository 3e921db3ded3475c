// What the graph sides of the conv archetype share, whatever the algorithm: the convolution that a
// group computes, its epilogue, and the launch that adds the slices of a weight gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/building.h"
#include "schedule/common/elementwise.h"
#include "schedule/cpu/conv/kernel.h"
#include "schedule/estimate.h"

namespace pantala::schedule::cpu {

// How a convolution is computed.
struct ConvPlan {
  ConvSizes sizes;
  ConvStrides strides;
  ConvSpec spec;
  ConvOrder order;
  std::vector<Loop> flat = {};  // weight_grad: the epilogue's loops over [c / groups, spatial...]
  bool is_sliced() const { return order.slices > 1; }
};

ConvPlan plan_of(const Context& context, const Group& group);
// The plan as numbers: equal ones are equal problems.
std::vector<std::int64_t> problem_of(const ConvPlan& plan);

// The group's outputs on the sums of a convolution.
class ConvEpilogue {
 public:
  // `result` is the index of the buffer that the kernel itself declares for the first output.
  ConvEpilogue(Building& building, std::uint32_t node, const std::vector<GroupOutput>& outputs,
               int result);
  Epilogue hook();
  Arguments& arguments() { return arguments_; }
  const ElementwiseBody& body() const { return body_; }

 private:
  kir::Var apply(kir::Builder& b, const ResultSite& at);

  const Context& context_;
  std::uint32_t node_;
  int result_;
  ElementwiseBody body_;
  Arguments arguments_;
  std::optional<BodyEmitter> emitter_;
};

// The sum of a weight gradient's slices, which lie in `partials`, with the epilogue.
KernelDraft build_combine(const Context& context, const Group& group, const ConvPlan& plan,
                          std::int64_t slices, std::uint32_t partials, ConvEpilogue& epilogue);
// The number of the slices among the group's own memory.
constexpr int kPartials = 2;
Effort effort_of_combine(const EffortSite& at, const ConvPlan& plan, std::int64_t slices,
                         double finish);

}  // namespace pantala::schedule::cpu
