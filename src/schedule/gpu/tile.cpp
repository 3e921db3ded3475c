#include "schedule/gpu/tile.h"

#include <algorithm>
#include <bit>

namespace pantala::schedule::gpu {

using kir::Op;
using kir::Var;

namespace {

// A line of a slice has a gap behind it, so that threads that store along k do not all meet in one
// bank of the memory. Elements are read in fours.
constexpr int kGap = 4;
constexpr int kQuad = 4;
constexpr int kUnroll = 4;  // of the loop over a slice: more is only more code
// Elements that a thread brings at once: more are a loop, since drivers take long to compile them
// all.
constexpr int kFetches = 8;

std::int64_t slice(int extent, int k) { return std::int64_t{k} * (extent + kGap); }

}  // namespace

Var over(Var x, int power) {
  return power == 1 ? x
                    : x.builder().binary(Op::shr, x,
                                         like(x, std::countr_zero(static_cast<unsigned>(power))));
}
Var modulo(Var x, int power) { return x.builder().binary(Op::bit_and, x, like(x, power - 1)); }

std::int64_t TileShape::scratch() const {
  return std::max(slice(m, k) + slice(n, k), std::int64_t{m} * n);
}

TileShape choose_tile(std::int64_t m, std::int64_t n, std::int64_t times, const Target& target) {
  const double enough_groups = target.is_software() ? 2 : 16;
  constexpr TileShape kShapes[] = {
      {64, 64, 16, 8, 8}, {32, 64, 16, 4, 8}, {64, 32, 16, 8, 4}, {32, 32, 16, 4, 4},
      {16, 64, 16, 4, 4}, {64, 16, 16, 4, 4}, {16, 32, 16, 4, 4}, {32, 16, 16, 4, 4},
      {16, 16, 16, 4, 4}, {8, 8, 16, 4, 4},
  };
  // The largest that wastes little at the ends and leaves enough work for all; else that with the
  // least waste.
  const TileShape* best = nullptr;
  double best_cost = 0;
  for (const TileShape& shape : kShapes) {
    // Threads that share an instruction and have no part in it are lost.
    const bool is_tiny = shape.threads() < target.subgroup_threads && (m > shape.m || n > shape.n);
    if (is_tiny || shape.threads() > target.group_threads ||
        shape.scratch() * dtype_bytes(DType::f32) > target.group_bytes)
      continue;
    const auto tiles = [](std::int64_t size, int tile) { return (size + tile - 1) / tile; };
    const double groups = static_cast<double>(tiles(m, shape.m) * tiles(n, shape.n) * times);
    const double computed = groups * shape.m * shape.n;
    // What a product takes beside its additions: elements of the operands that are fetched for it.
    const double fetched = 4.0 / shape.m + 4.0 / shape.n;
    const double registers = 1.0 / shape.rows + 1.0 / shape.columns;
    const double idle = std::max(1.0, enough_groups / groups);
    const double cost = computed * (0.5 + fetched + registers) * idle;
    if (best == nullptr || cost < best_cost) best = &shape, best_cost = cost;
  }
  return best == nullptr ? kShapes[std::size(kShapes) - 1] : *best;
}

TileProduct::TileProduct(kir::Builder& b, DType dtype, const TileShape& shape)
    : b_(b), dtype_(dtype), shape_(shape), tile_(b.scratch("tile", dtype, shape.scratch())) {
  const int across = shape.n / shape.columns;
  row_ = over(b.thread(), across);
  column_ = modulo(b.thread(), across);
}

void TileProduct::run(const TileRange& range, const TileOperand& a, const TileOperand& b,
                      bool n_inner, const Finish& finish) {
  const Part of_a = part_of(a, range.first_m, range.m, shape_.m, 0),
             of_b = part_of(b, range.first_n, range.n, shape_.n, slice(shape_.m, shape_.k));
  std::vector<Var> sums(static_cast<std::size_t>(shape_.rows * shape_.columns),
                        b_.constant({dtype_, 1}, 0.0));
  sums = b_.loop(range.k_begin, range.k_end, b_.i64(shape_.k), sums,
                 [&](Var k0, std::span<const Var> before) {
                   fetch(of_a, k0, range.k_end);
                   fetch(of_b, k0, range.k_end);
                   b_.barrier();
                   std::vector<Var> after = multiply({before.begin(), before.end()});
                   b_.barrier();
                   return after;
                 });
  finish_tile(range, n_inner, sums, finish);
}

TileProduct::Part TileProduct::part_of(const TileOperand& operand, Var first, Var size, int extent,
                                       std::int64_t start) {
  Part part{.operand = operand, .first = first, .size = size, .extent = extent, .start = start};
  if (count(part) <= kFetches) part.opened = fetches(part, b_.i64(0), count(part));
  return part;
}

int TileProduct::count(const Part& part) const {
  return std::max(1, part.extent * shape_.k / shape_.threads());
}

// So many elements from number `first` of the thread's own on.
std::vector<TileProduct::Fetch> TileProduct::fetches(const Part& part, Var first, int count) {
  std::vector<Fetch> list;
  const TileOperand& operand = part.operand;
  const int threads = shape_.threads(), fast = operand.k_inner ? shape_.k : part.extent;
  for (int e = 0; e < count; ++e) {
    const Var number = first + e;
    // A thread stays in its column where whole lines are fetched together.
    const bool stays = threads % fast == 0;
    const Var all = b_.thread() + number * threads;
    const Var inner = modulo(stays ? b_.thread() : all, fast),
              outer = stays ? over(b_.thread(), fast) + number * (threads / fast) : over(all, fast);
    const Var at = operand.k_inner ? outer : inner, k = operand.k_inner ? inner : outer;
    Var inside = lt(part.first + at, part.size);
    if (part.extent * shape_.k < threads)
      inside = b_.binary(Op::bit_and, inside, lt(all, part.extent * shape_.k));
    list.push_back(
        {k, inside, k * (part.extent + kGap) + at + part.start, operand.open(part.first + at)});
  }
  return list;
}

void TileProduct::fetch(const Part& part, Var k0, Var k_end) {
  if (!part.opened.empty()) return fetch(part.opened, k0, k_end);
  b_.loop(b_.i64(0), b_.i64(count(part)), b_.i64(kFetches),
          [&](Var first) { fetch(fetches(part, first, kFetches), k0, k_end); });
}

void TileProduct::fetch(const std::vector<Fetch>& list, Var k0, Var k_end) {
  std::vector<Var> values;
  for (const Fetch& one : list) {
    const Var k = k0 + one.k, mask = b_.binary(Op::bit_and, one.inside, lt(k, k_end));
    const Var value = one.load(k, mask);
    values.push_back(b_.select(mask, value, like(value, 0.0)));
  }
  for (std::size_t k = 0; k < list.size(); ++k) b_.store(tile_, list[k].place, values[k]);
}

// A thread's rows are groups of four neighbours, and so are its columns.
std::vector<Var> TileProduct::multiply(std::vector<Var> sums) {
  const auto quads = [&](Var first, int extent, int count) {
    std::vector<Var> values;
    for (int g = 0; g < count; g += kQuad) {
      const Var quad = b_.load(tile_, first + g * (extent / count), kQuad);
      for (int k = 0; k < kQuad; ++k) values.push_back(b_.extract(quad, k));
    }
    return values;
  };
  const std::int64_t second = slice(shape_.m, shape_.k);
  const auto step = [&](Var k, std::span<const Var> before) {
    std::vector<Var> after(before.begin(), before.end());
    for (int u = 0; u < kUnroll; ++u) {
      const Var line = k + u;
      const std::vector<Var> a = quads(line * (shape_.m + kGap) + row_ * kQuad, shape_.m,
                                       shape_.rows),
                             b = quads(line * (shape_.n + kGap) + column_ * kQuad + second,
                                       shape_.n, shape_.columns);
      for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < b.size(); ++j) {
          Var& sum = after[i * b.size() + j];
          sum = b_.fma(a[i], b[j], sum);
        }
    }
    return after;
  };
  return b_.loop(b_.i64(0), b_.i64(shape_.k), b_.i64(kUnroll), sums, step);
}

void TileProduct::finish_tile(const TileRange& range, bool n_inner, const std::vector<Var>& sums,
                              const Finish& finish) {
  // Element (i, j) of the tile lies at i * n + j, or at i + j * m.
  const int by_row = n_inner ? shape_.n : 1, by_column = n_inner ? 1 : shape_.m;
  const auto place = [](int k, int extent, int count) {
    return k / kQuad * kQuad * (extent / count) + k % kQuad;
  };
  const Var first = (row_ * by_row + column_ * by_column) * kQuad;
  for (int i = 0; i < shape_.rows; ++i)
    for (int j = 0; j < shape_.columns; ++j)
      b_.store(tile_,
               first + (place(i, shape_.m, shape_.rows) * by_row +
                        place(j, shape_.n, shape_.columns) * by_column),
               sums[static_cast<std::size_t>(i * shape_.columns + j)]);
  b_.barrier();
  const int inner = n_inner ? shape_.n : shape_.m;
  b_.loop(b_.thread(), b_.i64(std::int64_t{shape_.m} * shape_.n), b_.i64(shape_.threads()),
          [&](Var e) {
            const Var slow = over(e, inner), fast = modulo(e, inner);
            const Var m = range.first_m + (n_inner ? slow : fast),
                      n = range.first_n + (n_inner ? fast : slow);
            b_.branch(b_.binary(Op::bit_and, lt(m, range.m), lt(n, range.n)),
                      [&] { finish(m, n, b_.load(tile_, e)); });
          });
}

}  // namespace pantala::schedule::gpu
