// How a contraction is cut: the order of its reduction, which is part of its meaning, and the
// tiling, which is not.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "schedule/cpu/contract/kernel.h"

namespace pantala::schedule::cpu {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Blocks of nearly equal size: a short last one would pay the block's overhead for little work.
std::int64_t even_block(std::int64_t size, std::int64_t most, std::int64_t multiple) {
  if (size <= most) return std::max<std::int64_t>(ceil_div(size, multiple) * multiple, multiple);
  const std::int64_t blocks = ceil_div(size, most);
  return ceil_div(ceil_div(size, blocks), multiple) * multiple;
}

// Rows that stay in registers beside two vectors of the lanes operand and two of broadcasts.
int most_rows(const Target& target) { return (target.vector_registers - 4) / 2; }

// With many registers a tile of 6 rows and 4 vectors needs fewer loads and addresses than one of 12
// rows for as many products, and nothing of it is spilled. It pays where registers go straight to
// c.
constexpr int kWideVectors = 4, kWideRows = 6;
bool has_wide_tiles(const Target& target) { return target.vector_registers >= 32; }

// The problem from the point of view of a tiling.
struct View {
  std::int64_t rows, lanes;
  bool rows_k_inner, lanes_k_inner;
  std::int64_t rows_ld, lanes_ld;
  bool transposed;
};
View view(const ContractSpec& spec, const ContractSizes& sizes, const ContractStrides& strides,
          bool lanes_along_m) {
  if (lanes_along_m)
    return {sizes.n,      sizes.m,      spec.b_k_inner, spec.a_k_inner,
            strides.b_ld, strides.a_ld, spec.c_n_inner};
  return {sizes.m,      sizes.n,      spec.a_k_inner, spec.b_k_inner,
          strides.a_ld, strides.b_ld, !spec.c_n_inner};
}

// Cycles per vector, measured on cores with two fma units.
constexpr double kCopy = 2.0, kTranspose = 9.0, kFinish = 2.5, kFinishTransposed = 10.0,
                 kTileOverhead = 40.0, kPanelFromL2 = 0.5, kJump = 5.0, kShortestStep = 4.8,
                 kFarBytes = 16.0, kWide = 0.97;

// Rows at this distance share a set of the L1 cache.
bool rows_collide(std::int64_t ld, int rows, DType dtype, const Target& target) {
  const std::int64_t set_span = target.l1_bytes / target.l1_ways;
  return rows + 3 > target.l1_ways && ld * dtype_bytes(dtype) % set_span == 0;
}

// Bytes of scratch that an item walks over again and again.
std::int64_t footprint(const ContractTiling& t, const ContractOrder& order, std::int64_t k,
                       DType dtype) {
  const std::int64_t depth = std::min(order.k_block, k);
  const std::int64_t padded_rows =
      t.pack_rows && t.rows > t.lanes ? ceil_div(t.rows, t.lanes) * t.lanes : t.rows;
  const std::int64_t inner =
      (t.rows_outer ? t.lane_block : ceil_div(t.row_block, t.rows) * padded_rows) * depth;
  return (inner + (t.direct ? 0 : t.row_block * t.lane_block)) * dtype_bytes(dtype);
}

ContractTiling dot_tiling(const ContractSizes& sizes, const Target& target, DType dtype,
                          int workers) {
  ContractTiling t;
  t.lanes_along_m = sizes.n > sizes.m;
  t.rows = std::min(most_rows(target), 8);
  t.lanes = target.lanes(dtype);
  const std::int64_t rows = std::max(sizes.m, sizes.n);
  t.row_block = std::max<std::int64_t>(ceil_div(ceil_div(rows, workers), t.rows) * t.rows, t.rows);
  t.lane_block = std::max<std::int64_t>(std::min(sizes.m, sizes.n), 1);
  return t;
}

}  // namespace

ContractOrder reduction_order(const ContractSizes& sizes, bool a_k_last, bool b_k_last, DType dtype,
                              const Target& target) {
  const int lanes = target.lanes(dtype);
  // Few enough outputs per element of the larger operand that transposing it would dominate.
  if (a_k_last && b_k_last && std::min(sizes.m, sizes.n) <= 4 && sizes.k >= 2 * lanes)
    return {.k_block = 256 * lanes, .lanes = lanes};
  // Where both operands must be packed, blocks of half the depth leave room in the second cache for
  // all lanes of an item: neither is packed twice.
  const std::int64_t most = (a_k_last || b_k_last ? 2560 : 1280) / dtype_bytes(dtype);
  return {.k_block = even_block(sizes.k, most, 16), .lanes = 1};
}

double estimate(const ContractSpec& spec, const ContractSizes& sizes,
                const ContractStrides& strides, const ContractOrder& order, const ContractTiling& t,
                const Target& target, int workers) {
  const View v = view(spec, sizes, strides, t.lanes_along_m);
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const double k = static_cast<double>(sizes.k);
  const double row_block = static_cast<double>(std::min(t.row_block, v.rows)),
               lane_block = static_cast<double>(std::min(t.lane_block, v.lanes));
  const double tiles = static_cast<double>(ceil_div(std::min(t.row_block, v.rows), t.rows));
  const double panels = static_cast<double>(ceil_div(std::min(t.lane_block, v.lanes), columns));
  // Two fmas and two loads a cycle; few rows do not hide the latency of an fma.
  double step = std::max({0.5 * t.rows * t.vectors, 0.5 * (t.rows + t.vectors), kShortestStep});
  if (!t.pack_rows) step *= rows_collide(v.rows_ld, t.rows, spec.dtype, target) ? 2.0 : 1.03;
  const bool lanes_far = v.lanes * sizes.k * dtype_bytes(spec.dtype) > target.l2_bytes * 3 / 4;
  if (!t.pack_lanes)
    step *=
        (lanes_far ? 1.05 : 1.02) + (v.lanes_ld * dtype_bytes(spec.dtype) % 4096 == 0 ? 0.1 : 0.0);
  // The panel of lanes comes from L2 if it does not fit L1 or others come between its uses.
  const std::int64_t panel_bytes =
      std::min(order.k_block, sizes.k) * columns * dtype_bytes(spec.dtype);
  if ((t.rows_outer && panels > 1) || panel_bytes > target.l1_bytes * 3 / 4) step += kPanelFromL2;
  const double blocks =
      static_cast<double>(std::max<std::int64_t>(ceil_div(sizes.k, order.k_block), 1));
  double cycles =
      tiles * panels *
      (k * step + blocks * (kTileOverhead + (t.direct ? 0.5 : 1.0) * t.rows * t.vectors));
  const double lanes = t.lanes;
  const double row_vectors = static_cast<double>(ceil_div(t.rows, t.lanes));
  if (t.pack_rows)
    cycles += tiles * k *
              (v.rows_k_inner ? row_vectors * kTranspose
                              : row_vectors * kCopy + (t.rows_outer ? kJump : 0.0));
  if (t.pack_lanes) cycles += panels * k * t.vectors * (v.lanes_k_inner ? kTranspose : kCopy);
  if (lanes_far && !v.lanes_k_inner && (!t.rows_outer || !t.pack_lanes))
    cycles += panels * k * kJump;
  if (!t.direct)
    cycles += row_block * lane_block / lanes * (v.transposed ? kFinishTransposed : kFinish);
  // An operand that does not fit L2 comes from further away once per item.
  const bool rows_far = v.rows * sizes.k * dtype_bytes(spec.dtype) > target.l2_bytes * 3 / 4;
  const double far_elements = k * ((rows_far ? row_block : 0.0) + (lanes_far ? lane_block : 0.0));
  cycles += far_elements * static_cast<double>(dtype_bytes(spec.dtype)) / kFarBytes;
  if (footprint(t, order, sizes.k, spec.dtype) > target.l2_bytes * 3 / 4) cycles *= 1.3;
  const std::int64_t items = contract_items(sizes, t);
  return cycles * static_cast<double>(ceil_div(items, workers));
}

namespace {

// Sizes of blocks, multiples of `unit`, that cut `size` into nearly equal parts: every number of
// parts at first, then doubling.
std::vector<std::int64_t> block_sizes(std::int64_t size, std::int64_t unit) {
  std::vector<std::int64_t> list;
  for (std::int64_t parts = 1; parts <= 4096; parts = parts < 8 ? parts + 1 : parts * 2) {
    const std::int64_t block =
        std::max<std::int64_t>(ceil_div(ceil_div(size, parts), unit), 1) * unit;
    if (list.empty() || block != list.back()) list.push_back(block);
    if (block == unit) break;
  }
  return list;
}

bool is_direct(const View& v, const ContractNeeds& needs, const ContractTiling& t) {
  return needs.small_epilogue && t.single_block && !v.transposed;
}

// Calls `offer` with every structure that the needs allow, blocks still open.
void each_structure(const View& v, const ContractNeeds& needs, ContractTiling t,
                    const std::function<void(const ContractTiling&)>& offer) {
  const bool pack_rows = (t.lanes_along_m ? needs.pack_b : needs.pack_a) || !v.rows_k_inner;
  const bool pack_lanes = (t.lanes_along_m ? needs.pack_a : needs.pack_b) || v.lanes_k_inner;
  for (unsigned bits = 0; bits < 8; ++bits) {
    t.rows_outer = (bits & 1) != 0;
    t.pack_rows = (bits & 2) != 0;
    t.pack_lanes = (bits & 4) != 0;
    t.direct = is_direct(v, needs, t);
    if ((pack_rows && !t.pack_rows) || (pack_lanes && !t.pack_lanes)) continue;
    offer(t);
  }
}

}  // namespace

ContractTiling choose_tiling(const ContractSpec& spec, const ContractSizes& sizes,
                             const ContractStrides& strides, const ContractOrder& order,
                             const Target& target, const ContractNeeds& needs) {
  if (order.lanes > 1) return dot_tiling(sizes, target, spec.dtype, needs.workers);
  ContractTiling best, t;
  t.lanes = target.lanes(spec.dtype);
  t.single_block = sizes.k <= order.k_block;
  double least = std::numeric_limits<double>::infinity();
  for (const bool lanes_along_m : {false, true}) {
    t.lanes_along_m = lanes_along_m;
    const View v = view(spec, sizes, strides, lanes_along_m);
    const auto try_tiles = [&](int vectors, int most) {
      t.vectors = vectors;
      const std::vector<std::int64_t> lane_blocks =
          block_sizes(v.lanes, std::int64_t{vectors} * t.lanes);
      for (t.rows = std::min(4, most); t.rows <= most; ++t.rows) {
        const std::vector<std::int64_t> row_blocks = block_sizes(v.rows, t.rows);
        each_structure(v, needs, t, [&](ContractTiling candidate) {
          for (const std::int64_t row_block : row_blocks)
            for (const std::int64_t lane_block : lane_blocks) {
              candidate.row_block = row_block;
              candidate.lane_block = lane_block;
              const double cycles =
                  estimate(spec, sizes, strides, order, candidate, target, needs.workers);
              if (cycles < least) least = cycles, best = candidate;
            }
        });
      }
    };
    try_tiles(2, most_rows(target));
    if (has_wide_tiles(target) && is_direct(v, needs, t)) try_tiles(kWideVectors, kWideRows);
  }
  return with_whole_parts(best, sizes, order);
}

}  // namespace pantala::schedule::cpu
