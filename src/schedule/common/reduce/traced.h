// What the kernels of a reduction share: the group as traced, its loops, and the arithmetic of
// partial results.
#pragma once

#include <optional>
#include <vector>

#include "schedule/arguments.h"
#include "schedule/common/reduce/group.h"
#include "schedule/loops.h"

namespace pantala::schedule {

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

// Whether memory is walked element by element along a loop: by one of the accesses that come to
// the most elements. A number per row beside a whole tensor does not count.
bool reads_along(const TracedReduce& traced, const Loop& loop);

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

}  // namespace pantala::schedule
