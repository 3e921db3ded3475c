#include "schedule/common/recurrent/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "pantala/error.h"
#include "schedule/common/sizes.h"

namespace pantala::schedule {

using kir::Var;

namespace {

constexpr std::int64_t kMostRows = 8;

// A workgroup's threads have a hidden unit each; the states of its rows lie in what they share.
void share_by_group(RecurrentTiling& tiling, const RecurrentSpec& spec, const RecurrentSizes& sizes,
                    const Target& target) {
  constexpr std::int64_t kMostParts = 4;     // numbers per row and hidden unit
  constexpr std::int64_t kEnoughItems = 16;  // before they take several rows
  tiling.threads = static_cast<int>(std::bit_ceil(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(sizes.hidden, 2, target.group_threads))));
  while (tiling.rows > 1 && sizes.batch / tiling.rows < kEnoughItems) tiling.rows /= 2;
  const auto bytes = [&] {
    return kMostParts *
           (tiling.rows * tiling.room * dtype_bytes(spec.dtype) + kir::kScratchAlignment);
  };
  while (tiling.rows > 1 && bytes() > target.group_bytes) tiling.rows /= 2;
  if (bytes() > target.group_bytes)
    throw UnsupportedError(
        fmt::format("recurrent layers: {} hidden units do not fit into {} bytes of shared memory",
                    sizes.hidden, target.group_bytes));
}

}  // namespace

int gate_count(Cell cell) {
  if (cell == Cell::lstm) return 4;
  return cell == Cell::gru || cell == Cell::gru_reset_first ? 3 : 1;
}

// Half of the registers hold sums, but no more rows than each worker gets.
RecurrentTiling choose_tiling(const RecurrentSpec& spec, const RecurrentSizes& sizes,
                              const Target& target, int workers) {
  RecurrentTiling tiling;
  tiling.lanes = target.lanes(spec.dtype);
  const std::int64_t share = (sizes.batch + workers - 1) / workers,
                     fit = target.vector_registers / 2 / gate_count(spec.cell);
  tiling.rows = static_cast<int>(std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(std::min(share, fit), 1, kMostRows))));
  tiling.whole = sizes.hidden % tiling.lanes == 0;
  tiling.room = scratch_size((sizes.hidden + tiling.lanes - 1) / tiling.lanes * tiling.lanes);
  if (target.has_groups()) share_by_group(tiling, spec, sizes, target);
  return tiling;
}

std::int64_t recurrent_items(const RecurrentSizes& sizes, const RecurrentTiling& tiling) {
  return (sizes.batch + tiling.rows - 1) / tiling.rows;
}

std::vector<std::int64_t> recurrent_params(const RecurrentSizes& sizes, bool from_the_last) {
  return {sizes.steps, sizes.batch, sizes.hidden, from_the_last ? sizes.steps - 1 : 0,
          from_the_last ? -1 : 1};
}

void RecurrentWriter::open_item() {
  steps = b.param("steps");
  batch = b.param("batch");
  hidden = b.param("hidden");
  start = b.param("start");
  direction = b.param("direction");
  for (int row = 0; row < tiling.rows; ++row)
    rows_.push_back(min(b.item() * tiling.rows + row, batch - 1));
}

void RecurrentWriter::each_step(const std::function<void(Var, Var)>& body) {
  b.loop(b.i64(0), steps, b.i64(1), [&](Var number) { body(number, start + number * direction); });
}

void RecurrentWriter::each_vector(const std::function<void(Var)>& body) {
  if (tiling.threads == 1) return b.loop(b.i64(0), hidden, b.i64(tiling.lanes), body);
  b.loop(b.thread(), hidden, b.i64(tiling.threads), body);
  b.barrier();
}

void RecurrentWriter::each_row(const std::function<void(int)>& body) const {
  for (int row = 0; row < tiling.rows; ++row) body(row);
}

Var RecurrentWriter::mask(Var unit) {
  return tiling.whole ? Var() : first_lanes(b, hidden - unit, tiling.lanes);
}

Var RecurrentWriter::load(kir::BufferId buffer, Var at, Var unit) {
  return b.load(buffer, at, tiling.lanes, mask(unit));
}

void RecurrentWriter::store(kir::BufferId buffer, Var at, Var unit, Var value) {
  b.store(buffer, at, value, mask(unit));
}

RecurrentWriter::Sums RecurrentWriter::products(kir::BufferId weight, Var unit, const Gates& which,
                                                const std::function<Var(int, int, Var)>& factor,
                                                const std::function<Var(int, Var)>& weight_at) {
  const Var within = mask(unit);
  const std::vector<Var> zeros(static_cast<std::size_t>(tiling.rows * which.count), number(0));
  const std::vector<Var> sums =
      b.loop(b.i64(0), hidden, b.i64(1), zeros, [&](Var k, std::span<const Var> carried) {
        std::vector<Var> next(carried.begin(), carried.end());
        for (int g = 0; g < which.count; ++g) {
          const int gate = which.first + g;
          const Var w = b.load(weight, weight_at(gate, k) + unit, tiling.lanes, within);
          for (int row = 0; row < tiling.rows; ++row) {
            Var& sum = next[static_cast<std::size_t>(row * which.count + g)];
            sum = b.fma(b.splat(factor(row, gate, k), tiling.lanes), w, sum);
          }
        }
        return next;
      });
  return {which, sums};
}

}  // namespace pantala::schedule
