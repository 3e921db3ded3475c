// The kernels of a reduction on the CPU, and what they share.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "schedule/common/elementwise.h"
#include "schedule/common/reduce/traced.h"
#include "schedule/cpu/reduce/reduce.h"

namespace pantala::schedule::cpu {

// Reduces one row with lanes along its elements.
class RowReducer {
 public:
  RowReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
             Arguments& arguments);
  Emitter& emitter() { return emitter_; }

  // Everything that is made of whole results at the elements of a row.
  void make(const Site& row, const std::function<void(const Site&)>& body);
  // The results of the reductions of a level over elements [begin, end) of one block. `beside` is
  // emitted at each element as well.
  std::vector<kir::Var> reduce_range(const Site& row, kir::Var begin, kir::Var end, int level,
                                     const std::function<void(const Site&)>& beside = {});
  // Over the whole row, block by block.
  std::vector<kir::Var> reduce_row(const Site& row, int level,
                                   const std::function<void(const Site&)>& beside = {});
  // Makes the results of a level known to the emitter.
  void provide(int level, const std::vector<kir::Var>& results);

 private:
  using Pass = std::function<std::vector<kir::Var>(const Site&, kir::Var element,
                                                   std::vector<kir::Var> carried)>;
  std::vector<kir::Var> over(const Site& row, kir::Var begin, kir::Var end,
                             std::vector<kir::Var> carried, const Pass& body);
  std::vector<kir::Var> along(LoopId dim, Site site, kir::Var begin, kir::Var end,
                              std::vector<kir::Var> carried, const Pass& body);

  kir::Builder& b_;
  const TracedReduce& traced_;
  int lanes_;
  kir::Var count_;
  std::vector<kir::Var> extents_, made_extents_;  // of all loops but the first
  Emitter emitter_;
};

// The kernels.
KernelDraft build_rows(Building& building, const ReduceGroup& group, const TracedReduce& traced);
KernelDraft build_columns(Building& building, const TracedReduce& traced, std::size_t lane_row);
// Partial results of blocks go to buffers [blocks, rows], which the second kernel combines.
std::vector<KernelDraft> build_split(Building& building, const TracedReduce& traced,
                                     std::optional<std::size_t> lane_row);

}  // namespace pantala::schedule::cpu
