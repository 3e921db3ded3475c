// What the kernels of a reduction share: the group as traced, its loops, and the arithmetic of
// partial results.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "schedule/arguments.h"
#include "schedule/cpu/elementwise.h"
#include "schedule/cpu/reduce/group.h"
#include "schedule/cpu/reduce/reduce.h"
#include "schedule/loops.h"

namespace pantala::schedule::cpu {

struct Reduction {
  ValueId value, operand;
  kir::Op op = kir::Op::add;  // add, max or min
  DType dtype = DType::f32;   // of the registers
  DType result = DType::f32;  // of the value
  Indices at;                 // of its element in a row
  int level = 1;              // reductions that it waits for, and itself
};

struct ReduceOutput {
  GroupOutput to;
  bool per_row = false;
  Indices at;
  Affine write;
  int level = 0;  // reductions that it waits for
};

// The group with everything that kernels read traced.
struct TracedReduce {
  Domain domain;
  Indices reduced;  // of an element that is reduced, by the domain's loops
  std::vector<Reduction> reductions;
  std::vector<ReduceOutput> outputs;
  Footprint footprint;         // of all
  Footprint made_of_rows;      // of the outputs alone
  double row_cost = 0;         // of the footprint's: what is computed once a row
  std::vector<Loop> rows;      // kept axes, outermost first
  std::vector<Loop> elements;  // reduced axes, as the passes that reduce walk them
  std::vector<Loop> made;      // the same for the pass that only makes outputs
  std::int64_t count = 1;      // reduced elements
  int levels = 1;
  bool has_full_outputs() const;
  double flops() const;
};
// There are loops_of() the group.
TracedReduce trace_group(const Context& context, const ReduceGroup& group);
// Whether a pass that reduces has lanes along the elements: along the only loop, or the innermost
// one where vectors never cross its end.
bool has_lanes(const TracedReduce& traced, int lanes);

// Partial results of one reduction.
kir::Var start_of(kir::Builder& b, const Reduction& r, int lanes);
kir::Var combine(kir::Builder& b, const Reduction& r, kir::Var a, kir::Var x);
// What is added where there is no element.
kir::Var nothing(kir::Builder& b, const Reduction& r);
// Of partial results in lanes, halved.
kir::Var finish(kir::Builder& b, const Reduction& r, kir::Var partials);
// Makes a whole result known to the emitter, as a number of the result's dtype.
void provide_result(Emitter& emitter, const Reduction& r, kir::Var result);

// An emitter for the traced group; the buffers have been declared.
Emitter make_emitter(kir::Builder& b, const Context& context, const Domain& domain,
                     const Footprint& footprint, Arguments& arguments);
void announce_reads(const Context& context, const Footprint& footprint, Arguments& arguments);

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
