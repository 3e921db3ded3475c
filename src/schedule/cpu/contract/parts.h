// What the kernels of a contraction share: their arguments, an operand as seen from inside an item,
// and packing.
#pragma once

#include <cstdint>

#include "kir/builder.h"
#include "schedule/common/sizes.h"
#include "schedule/cpu/contract/kernel.h"

namespace pantala::schedule::cpu {

// The arguments in the order of contract_params().
struct ContractArguments {
  kir::BufferId a, b, c;
  kir::Var m, n, k;
  kir::Var a_batch, a_ld, b_batch, b_ld, c_batch, c_ld;
  kir::Var k_block, row_block, lane_block;
};
ContractArguments declare_arguments(kir::Builder& b, const ContractSpec& spec,
                                    const ContractHooks& hooks);

// One operand within one batch: element (at, k) stands at base + at * ld + k if k is inner, else at
// base + k * ld + at.
struct Operand {
  kir::BufferId buffer;
  bool k_inner = true;
  kir::Var size;  // of the axis that is not k
  kir::Var ld;
  kir::Var batch;
  kir::Var base;
  const Prologue* prologue = nullptr;

  kir::Var index(kir::Var at, kir::Var k) const {
    return k_inner ? base + at * ld + k : base + k * ld + at;
  }
  // A vector through the prologue. Along k if asked for, else along the other axis; contiguous or
  // not.
  kir::Var load(kir::Builder& b, kir::Var at, kir::Var k, int lanes, bool along_k,
                kir::Var mask) const;
};

// Where the sums of an item go.
struct Result {
  kir::BufferId buffer;
  bool n_inner = true;
  kir::Var ld;
  kir::Var batch;
  kir::Var base;
  const Epilogue* epilogue = nullptr;

  // Sums along c's contiguous axis, from (m, n) on, through the epilogue.
  void store(kir::Builder& b, kir::Var value, kir::Var m, kir::Var n, kir::Var mask) const;
};

// `width` neighbours of an operand, padded to `padded`: a multiple of the vector's lanes, or the
// width of a panel that is narrower than a vector. Of such a one every vector is written over the
// end of the one before it, and the last over the room of another vector behind the panel.
struct Panel {
  int width = 0, padded = 0, lanes = 0;
  bool always_whole = false;  // the operand ends with a panel
};
// Copies operand(first + i, k0 + k), k < depth, to scratch[k * padded + i]. Positions past the
// operand's end hold anything; up to the next multiple of the lanes, k's past the depth hold zeros.
// Several panels follow each other at a distance of `panel_size`.
struct PackRange {
  kir::Var first, panels;  // `first` of the first panel
  kir::Var k0, depth;
};
void pack(kir::Builder& b, const Operand& operand, Panel panel, const PackRange& range,
          kir::BufferId scratch, kir::Var panel_size);

// The kernel whose reduction runs over lanes.
kir::Kernel build_dot(std::string name, const ContractSpec& spec, const ContractOrder& order,
                      const ContractTiling& tiling, const ContractHooks& hooks);

}  // namespace pantala::schedule::cpu
