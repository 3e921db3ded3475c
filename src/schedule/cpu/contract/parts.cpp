#include "schedule/cpu/contract/parts.h"

#include <algorithm>
#include <vector>

namespace pantala::schedule::cpu {

using kir::Access;
using kir::Builder;
using kir::Var;

ContractArguments declare_arguments(Builder& b, const ContractSpec& spec,
                                    const ContractHooks& hooks) {
  ContractArguments args;
  args.a = b.buffer("a", spec.dtype, Access::read);
  args.b = b.buffer("b", spec.dtype, Access::read);
  args.c = b.buffer("c", spec.dtype, hooks.result.c_access);
  args.m = b.param("m");
  args.n = b.param("n");
  args.k = b.param("k");
  args.a_batch = b.param("a_batch");
  args.a_ld = b.param("a_ld");
  args.b_batch = b.param("b_batch");
  args.b_ld = b.param("b_ld");
  args.c_batch = b.param("c_batch");
  args.c_ld = b.param("c_ld");
  args.k_block = b.param("k_block");
  args.row_block = b.param("row_block");
  args.lane_block = b.param("lane_block");
  if (hooks.a.declare) hooks.a.declare(b);
  if (hooks.b.declare) hooks.b.declare(b);
  if (hooks.result.declare) hooks.result.declare(b);
  return args;
}

std::vector<std::int64_t> contract_params(const ContractSizes& sizes,
                                          const ContractStrides& strides,
                                          const ContractOrder& order,
                                          const ContractTiling& tiling) {
  return {sizes.m,      sizes.n,         sizes.k,          strides.a_batch,
          strides.a_ld, strides.b_batch, strides.b_ld,     strides.c_batch,
          strides.c_ld, order.k_block,   tiling.row_block, tiling.lane_block};
}

Var Operand::load(Builder& b, Var at, Var k, int lanes, bool along_k, Var mask) const {
  const Var from = index(at, k);
  const Var value = along_k == k_inner ? b.load(buffer, from, lanes, mask)
                                       : b.load_strided(buffer, from, ld, lanes, mask);
  if (!prologue || !prologue->apply) return value;
  return prologue->apply(b, {.value = value,
                             .batch = batch,
                             .at = at,
                             .k = k,
                             .mask = mask,
                             .lanes_along_k = along_k,
                             .coordinates = {batch, at, k},
                             .lane_dim = along_k ? 2 : 1});
}

void Result::store(Builder& b, Var value, Var m, Var n, Var mask) const {
  const Var at = n_inner ? base + m * ld + n : base + n * ld + m;
  if (epilogue && epilogue->apply) {
    value = epilogue->apply(b, {.value = value,
                                .batch = batch,
                                .m = m,
                                .n = n,
                                .mask = mask,
                                .c_at = at,
                                .c = buffer,
                                .lanes_along_n = n_inner,
                                .coordinates = {batch, m, n},
                                .lane_dim = n_inner ? 2 : 1});
    if (!value.valid()) return;
  }
  b.store(buffer, at, value, mask);
}

namespace {

// Rows of the operand are contiguous along k: squares of lanes x lanes are transposed on their way.
void pack_transposed(Builder& b, const Operand& operand, Panel panel, Var first, Var k0, Var depth,
                     kir::BufferId scratch, Var to) {
  const Var last = operand.size - 1;
  b.loop(b.i64(0), b.i64(panel.padded), b.i64(panel.lanes), [&](Var group) {
    std::vector<Var> at;
    for (int r = 0; r < panel.lanes; ++r) at.push_back(min(first + group + r, last));
    b.loop(b.i64(0), depth, b.i64(panel.lanes), [&](Var k) {
      const Var mask = first_lanes(b, depth - k, panel.lanes);
      std::vector<Var> square;
      for (const Var& position : at)
        square.push_back(operand.load(b, position, k0 + k, panel.lanes, true, mask));
      square = b.transpose(square);
      for (int j = 0; j < panel.lanes; ++j)
        b.store(scratch, to + (k + j) * panel.padded + group, square[static_cast<std::size_t>(j)]);
    });
  });
}

}  // namespace

void pack(Builder& b, const Operand& operand, Panel panel, const PackRange& range,
          kir::BufferId scratch, Var panel_size) {
  if (operand.k_inner) {
    b.loop(b.i64(0), range.panels, b.i64(1), [&](Var p) {
      pack_transposed(b, operand, panel, range.first + p * panel.width, range.k0, range.depth,
                      scratch, p * panel_size);
    });
    return;
  }
  // Panels inside: every line of the operand is then read once, and in order. Up to the last ones,
  // what is read past a panel's end is the next one's.
  const int reach = std::max(panel.padded, panel.lanes);
  const Var whole =
      panel.always_whole
          ? range.panels
          : max(min((operand.size - range.first - (reach - panel.width)) / panel.width,
                    range.panels),
                0);
  const auto copy = [&](Var k, Var p, bool is_whole) {
    const Var first = range.first + p * panel.width;
    for (int group = 0; group < panel.padded; group += panel.lanes) {
      const Var mask = is_whole ? Var() : first_lanes(b, operand.size - first - group, panel.lanes);
      b.store(scratch, p * panel_size + k * panel.padded + group,
              operand.load(b, first + group, range.k0 + k, panel.lanes, false, mask));
    }
  };
  b.loop(b.i64(0), range.depth, b.i64(1), [&](Var k) {
    b.loop(b.i64(0), whole, b.i64(1), [&](Var p) { copy(k, p, true); });
    if (panel.always_whole) return;
    b.loop(whole, range.panels, b.i64(1), [&](Var p) { copy(k, p, false); });
  });
}

}  // namespace pantala::schedule::cpu
