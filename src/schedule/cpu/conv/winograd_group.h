// The graph side of Winograd's convolutions.
#pragma once

#include <optional>
#include <vector>

#include "schedule/cpu/conv/group.h"
#include "schedule/cpu/conv/winograd.h"

namespace pantala::schedule::cpu {

// How Winograd's algorithm computes a convolution.
struct WinogradPlan {
  WinogradSpec spec;
  WinogradOrder order;
  std::vector<WinogradLaunch> launches;
  LoopId kernels_loop = {};  // of spec.result_rows: counts the elements of a channel's kernels
  // Launches of the group: the first two are those of the operands, the last one has the epilogue.
  int kernels() const { return static_cast<int>(launches.size()) + (order.slices > 1 ? 1 : 0); }
};
// Nothing unless its node says so and the algorithm is one for these sizes.
std::optional<WinogradPlan> winograd_of(const ir::Node& node, const ConvPlan& plan);
// The same for a group, whose epilogue has a say in how results are written.
std::optional<WinogradPlan> winograd_of(const Context& context, const Group& group,
                                        const ConvPlan& plan);

// `finish`: cycles of the epilogue.
std::vector<Effort> efforts_of_winograd(const EffortSite& at, const ConvPlan& plan,
                                        const WinogradPlan& winograd, double finish);
std::vector<KernelDraft> build_winograd_group(Building& building, const Group& group,
                                              const ConvPlan& plan, const WinogradPlan& winograd);

}  // namespace pantala::schedule::cpu
