// The contract archetype on the CPU: c[batch, m, n] = sum over k of a[batch, m, k] * b[batch, n,
// k], with a prologue on either operand and an epilogue on the sums. Sizes and strides are run-time
// parameters of the kernel; only the layout kind and tile constants are baked.
//
// The bits of a result depend on the ContractOrder alone, never on tiling, tails, packing, the
// exchange of roles, items or hooks:
//  - k is cut into blocks of `k_block` (the last may be shorter).
//  - A block with lanes == 1: block = +0; then, for k in the block, ascending:
//    block = fma(a[i][k], b[j][k], block).
//  - A block with lanes == L has L partial sums. For k' ascending, counted from the start of the
//    block: partial[k' mod L] = fma(a[i][k], b[j][k], partial[k' mod L]). A block whose size is no
//    multiple of L ends with products 0 * 0. Then the partial sums are halved:
//    p[l] += p[l + L/2], ...
//  - c[i][j] = block 0; then c[i][j] = c[i][j] + block 1, ... in order. k == 0 gives +0.
//
// How: a register tile of `rows` x `vectors`. The *rows* operand is broadcast element by element,
// the *lanes* operand is read in vectors; either of m and n may be the lanes (then the tile is
// transposed on its way to c). An operand is read in place where its layout allows it, or packed
// into the worker's scratch: the outer one of the two a panel at a time (it then comes from L1),
// the inner one a block at a time (L2).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "kir/kernel.h"
#include "schedule/common/contract/contraction.h"
#include "schedule/target.h"

namespace pantala::schedule::cpu {

using schedule::ContractSizes;

// Which axis of a matrix is contiguous is its layout; the other one has a stride.
struct ContractSpec {
  DType dtype = DType::f32;  // f32 or f64
  bool a_k_inner = true;     // [m, k], else [k, m]
  bool b_k_inner = true;     // [n, k], else [k, n]
  bool c_n_inner = true;     // [m, n], else [n, m]
  friend bool operator==(const ContractSpec&, const ContractSpec&) = default;
};

// In elements. `ld` is the stride of the axis that is not contiguous. A batch stride of 0 shares an
// operand.
struct ContractStrides {
  std::int64_t a_batch = 0, a_ld = 0, b_batch = 0, b_ld = 0, c_batch = 0, c_ld = 0;
  // Of tensors without gaps.
  static ContractStrides dense(const ContractSpec& spec, const ContractSizes& sizes);
};

struct ContractOrder {
  std::int64_t k_block = 1;
  int lanes = 1;
  // A reduction over several items, combined in order by another kernel; contract makes one.
  int slices = 1;
  friend bool operator==(const ContractOrder&, const ContractOrder&) = default;
};

// From what the op says alone: `a_k_last` and `b_k_last` are whether the contracted axis is the
// last one of the operand as the op sees it, not as a buffer happens to store it.
ContractOrder reduction_order(const ContractSizes& sizes, bool a_k_last, bool b_k_last, DType dtype,
                              const Target& target);

// Everything that may be chosen freely without a change of the result's bits.
struct ContractTiling {
  bool lanes_along_m = false;  // m is read in vectors and n broadcast; else the other way round
  // Walk all lanes for each register tile of rows, else all rows for each panel of lanes.
  bool rows_outer = false;
  bool pack_rows = true;      // only [.., k] operands can be broadcast in place
  bool pack_lanes = true;     // only [k, ..] operands can be read in vectors in place
  bool single_block = false;  // the kernel may rely on k <= k_block
  // And on sizes that are multiples of the tile's columns, of its rows, and of the unrolled steps
  // along k: then nothing is written out twice, for what is whole and for what is left.
  bool whole_lanes = false, whole_rows = false, whole_steps = false;
  // Registers go straight to c: needs single_block and lanes along c's contiguous axis.
  bool direct = false;
  int rows = 6;     // of the register tile
  int vectors = 2;  // and of its columns
  int lanes = 8;    // of a vector
  // Of c per item, in elements of the rows and the lanes axis.
  std::int64_t row_block = 0, lane_block = 0;
  friend bool operator==(const ContractTiling&, const ContractTiling&) = default;
};

constexpr int kContractUnroll = 4;  // of the loop over k
// The tiling with what it may rely on for these sizes.
ContractTiling with_whole_parts(ContractTiling tiling, const ContractSizes& sizes,
                                const ContractOrder& order);

// Whether this tiling can be built for this problem; "" or what is wrong.
std::string broken_rule(const ContractSpec& spec, const ContractSizes& sizes,
                        const ContractOrder& order, const ContractTiling& tiling);

// What a choice of tiling must respect beside the problem.
struct ContractNeeds {
  int workers = 1;  // that share the items
  // A prologue stands on the operand: it is to run once per element.
  bool pack_a = false, pack_b = false;
  bool small_epilogue = true;  // cheap enough to be written out for every register
};

// Cycles of the slowest worker, roughly; the tilings of one problem compare by it.
double estimate(const ContractSpec& spec, const ContractSizes& sizes,
                const ContractStrides& strides, const ContractOrder& order,
                const ContractTiling& tiling, const Target& target, int workers);
// The cheapest tiling.
ContractTiling choose_tiling(const ContractSpec& spec, const ContractSizes& sizes,
                             const ContractStrides& strides, const ContractOrder& order,
                             const Target& target, const ContractNeeds& needs = {});

// A vector of an operand on its way to the product: lanes run along k if the operand is [.., k],
// else along its other axis; `at` is the position in that other axis (m or n) and `k` that in k,
// both of the first lane. A lane that the mask switches off reads 0 and is never used.
struct OperandSite {
  kir::Var value;
  kir::Var batch, at, k;
  kir::Var mask;  // invalid: all lanes
  bool lanes_along_k = false;
  // The logical index of the first lane, one number per dimension of the operand, and the dimension
  // that the lanes run along: [batch, at, k] here; convolutions say theirs (conv/kernel.h).
  std::vector<kir::Var> coordinates = {};
  int lane_dim = 0;
};

// A vector of sums, with lanes along c's contiguous axis (a scalar where the reduction runs over
// lanes); `m` and `n` are the position of the first lane.
struct ResultSite {
  kir::Var value;
  kir::Var batch, m, n;
  kir::Var mask;  // invalid: all lanes
  kir::Var c_at;  // where c has the first lane
  kir::BufferId c;
  bool lanes_along_n = true;
  // As in OperandSite: [batch, m, n] here; convolutions say theirs (conv/kernel.h).
  std::vector<kir::Var> coordinates = {};
  int lane_dim = 0;
};

// `declare` makes the hook's own buffers and parameters; they follow those of the contraction.
struct Prologue {
  std::function<void(kir::Builder&)> declare;
  std::function<kir::Var(kir::Builder&, const OperandSite&)> apply;
};
// `apply` returns what is stored to c, or an invalid value if nothing is.
struct Epilogue {
  std::function<void(kir::Builder&)> declare;
  std::function<kir::Var(kir::Builder&, const ResultSite&)> apply;
  kir::Access c_access = kir::Access::write;  // read_write if it reads c
};
struct ContractHooks {
  Prologue a, b;
  Epilogue result;
};

// Buffers: a, b, c, those of the hooks. Parameters: contract_params(), those of the hooks. The
// operand with a prologue is packed: the tiling must say so.
kir::Kernel build_contract(std::string name, const ContractSpec& spec, const ContractOrder& order,
                           const ContractTiling& tiling, const ContractHooks& hooks = {});
std::vector<std::int64_t> contract_params(const ContractSizes& sizes,
                                          const ContractStrides& strides,
                                          const ContractOrder& order, const ContractTiling& tiling);
std::int64_t contract_items(const ContractSizes& sizes, const ContractTiling& tiling);

}  // namespace pantala::schedule::cpu
