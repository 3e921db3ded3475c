#include "schedule/cpu/attention/parts.h"

#include <algorithm>
#include <cmath>

#include "schedule/cpu/contract/parts.h"

namespace pantala::schedule::cpu {

using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Var;

namespace {

std::int64_t round_up_to(std::int64_t a, std::int64_t b) { return (a + b - 1) / b * b; }

}  // namespace

AttentionWriter::AttentionWriter(Builder& builder, AttentionPart part, const AttentionSpec& spec,
                                 const AttentionTiling& tiling)
    : b(builder), spec_(spec), t_(tiling), args_(declare_attention(builder, part, spec)) {}

// --- scratch

std::int64_t AttentionWriter::depth() const {
  return std::max(round_up_to(t_.head_dim, t_.lanes), round_up_to(t_.head_dim, t_.dims));
}
// Neighbours start a line apart from a multiple of the cache's sets.
std::int64_t AttentionWriter::panel_size() const { return depth() * t_.columns() + t_.lanes; }
std::int64_t AttentionWriter::score_size() const {
  return round_up_to(kKeyBlock, t_.rows) * t_.columns() + t_.lanes;
}
std::int64_t AttentionWriter::row_size() const {
  return round_up_to(depth(), t_.columns()) + t_.lanes;
}
std::int64_t AttentionWriter::stage_size() const {
  return std::max<std::int64_t>(round_up_to(kKeyBlock, t_.rows), t_.columns()) * row_size();
}
BufferId AttentionWriter::scratch(std::string name, std::int64_t size) {
  return b.scratch(std::move(name), spec_.dtype, size);
}

// --- numbers

Var AttentionWriter::finite_or_zero(Var x) {
  const Var infinity = like(x, INFINITY);
  return b.select(lt(b.unary(kir::Op::abs, x), infinity), x, like(x, 0.0));
}

Var AttentionWriter::lanes_within(Var first, Var size) {
  return first_lanes(b, size - first, t_.lanes);
}

void AttentionWriter::clear(BufferId scratch, Var size) {
  b.loop(b.i64(0), size, b.i64(t_.lanes), [&](Var i) { b.store(scratch, i, number(0)); });
}

// --- panels

void AttentionWriter::copy_in(const HeadView& head, Var first, Var rows, BufferId stage,
                              Var stage_at) {
  const Var start = head.base + first * head.ld, last = head.size - 1 - first;
  const Var width = round_up(round_up(args_.head_dim, t_.dims), t_.columns());
  each(rows, [&](Var row) {
    const Var from = start + min(row, last) * head.ld, to = stage_at + row * row_size();
    b.loop(b.i64(0), width, b.i64(t_.lanes), [&](Var d) {
      const Var mask = first_lanes(b, args_.head_dim - d, t_.lanes);
      b.store(stage, to + d, b.load(head.buffer, from + d, t_.lanes, mask));
    });
  });
}

void AttentionWriter::copy_out(BufferId stage, Var stage_at, const HeadView& head, Var first,
                               Var rows) {
  const Var start = head.base + first * head.ld;
  each(min(rows, head.size - first), [&](Var row) {
    b.loop(b.i64(0), args_.head_dim, b.i64(t_.lanes), [&](Var d) {
      const Var mask = first_lanes(b, args_.head_dim - d, t_.lanes);
      b.store(head.buffer, start + row * head.ld + d,
              b.load(stage, stage_at + row * row_size() + d, t_.lanes), mask);
    });
  });
}

void AttentionWriter::to_panel(BufferId stage, Var stage_at, BufferId panel, Var panel_at) {
  b.loop(b.i64(0), b.i64(t_.columns()), b.i64(t_.lanes), [&](Var lane) {
    b.loop(b.i64(0), args_.head_dim, b.i64(t_.lanes), [&](Var d) {
      const Var from = stage_at + lane * row_size() + d, to = panel_at + d * t_.columns() + lane;
      Vectors square;
      for (int r = 0; r < t_.lanes; ++r)
        square.push_back(b.load(stage, from + r * row_size(), t_.lanes));
      square = b.transpose(square);
      for (int r = 0; r < t_.lanes; ++r)
        b.store(panel, to + r * t_.columns(), square[static_cast<std::size_t>(r)]);
    });
  });
}

void AttentionWriter::from_panel(BufferId panel, Var panel_at, BufferId stage, Var stage_at,
                                 const Divisors* divisors) {
  b.loop(b.i64(0), b.i64(t_.columns()), b.i64(t_.lanes), [&](Var lane) {
    const Var divisor = divisors ? b.load(divisors->buffer, divisors->at + lane, t_.lanes) : Var();
    b.loop(b.i64(0), args_.head_dim, b.i64(t_.lanes), [&](Var d) {
      const Var from = panel_at + d * t_.columns() + lane, to = stage_at + lane * row_size() + d;
      Vectors square;
      for (int r = 0; r < t_.lanes; ++r) {
        const Var sum = b.load(panel, from + r * t_.columns(), t_.lanes);
        square.push_back(divisors ? sum / divisor : sum);
      }
      square = b.transpose(square);
      for (int r = 0; r < t_.lanes; ++r)
        b.store(stage, to + r * row_size(), square[static_cast<std::size_t>(r)]);
    });
  });
}

// --- register tiles

Vectors AttentionWriter::score_block(const Rows& rows, Var count, const Place& panel,
                                     const Place& scores, Var factor, const Vectors& largest) {
  const Vectors zeros(static_cast<std::size_t>(t_.rows * t_.vectors), number(0));
  return b.loop(
      b.i64(0), count, b.i64(t_.rows), largest, [&](Var tile, std::span<const Var> so_far) {
        // Rows past the end repeat the last one: their scores are never read, and no larger.
        Vectors row_at, next_largest(so_far.begin(), so_far.end());
        for (int r = 0; r < t_.rows; ++r)
          row_at.push_back(rows.last.valid() ? rows.base + min(tile + r, rows.last) * rows.ld
                                             : rows.base + tile * rows.ld + r * row_size());
        const Vectors sums = b.loop(
            b.i64(0), args_.head_dim, b.i64(1), zeros, [&](Var d, std::span<const Var> carried) {
              Vectors next(carried.begin(), carried.end()), lanes;
              for (int v = 0; v < t_.vectors; ++v)
                lanes.push_back(b.load(panel.buffer, at(panel.at + d * t_.columns(), v), t_.lanes));
              for (int r = 0; r < t_.rows; ++r) {
                const Var x =
                    b.splat(b.load(rows.buffer, row_at[static_cast<std::size_t>(r)] + d), t_.lanes);
                for (int v = 0; v < t_.vectors; ++v) {
                  Var& sum = next[static_cast<std::size_t>(r * t_.vectors + v)];
                  sum = b.fma(x, lanes[static_cast<std::size_t>(v)], sum);
                }
              }
              return next;
            });
        for (int i = 0; i < t_.rows * t_.vectors; ++i) {
          const Var sum = sums[static_cast<std::size_t>(i)],
                    score = factor.valid() ? sum * factor : sum;
          b.store(scores.buffer, scores.at + tile * t_.columns() + i * t_.lanes, score);
          if (largest.empty()) continue;
          Var& most = next_largest[static_cast<std::size_t>(i % t_.vectors)];
          most = larger(most, score);
        }
        return next_largest;
      });
}

void AttentionWriter::accumulate_block(const Rows& rows, Var count, const Place& weights,
                                       const Place& sums, const Place* factors) {
  const bool clamp = rows.last.valid() && !t_.whole_dims;
  b.loop(b.i64(0), args_.head_dim, b.i64(t_.dims), [&](Var d0) {
    Vectors start, dim_at;
    const Var to = sums.at + d0 * t_.columns();
    for (int r = 0; r < t_.dims; ++r) {
      dim_at.push_back(rows.base + (clamp ? min(d0 + r, args_.head_dim - 1) : d0 + r));
      for (int v = 0; v < t_.vectors; ++v) {
        const Var sum = b.load(sums.buffer, to + (r * t_.vectors + v) * t_.lanes, t_.lanes);
        start.push_back(factors ? sum * b.load(factors->buffer, at(factors->at, v), t_.lanes)
                                : sum);
      }
    }
    const Vectors totals =
        b.loop(b.i64(0), count, b.i64(1), start, [&](Var row, std::span<const Var> carried) {
          Vectors next(carried.begin(), carried.end()), lanes;
          for (int v = 0; v < t_.vectors; ++v)
            lanes.push_back(
                b.load(weights.buffer, at(weights.at + row * t_.columns(), v), t_.lanes));
          for (int r = 0; r < t_.dims; ++r) {
            const Var x = b.splat(
                b.load(rows.buffer, dim_at[static_cast<std::size_t>(r)] + row * rows.ld), t_.lanes);
            for (int v = 0; v < t_.vectors; ++v) {
              Var& sum = next[static_cast<std::size_t>(r * t_.vectors + v)];
              sum = b.fma(x, lanes[static_cast<std::size_t>(v)], sum);
            }
          }
          return next;
        });
    for (int i = 0; i < t_.dims * t_.vectors; ++i)
      b.store(sums.buffer, to + i * t_.lanes, totals[static_cast<std::size_t>(i)]);
  });
}

void AttentionWriter::accumulate_rows(const Place& weights, Var count, const Rows& rows, Var lanes,
                                      const Place& target) {
  b.loop(b.i64(0), args_.head_dim, b.i64(t_.columns()), [&](Var d0) {
    b.loop(b.i64(0), count, b.i64(t_.rows), [&](Var tile) {
      const Var to = target.at + tile * row_size() + d0;
      const Var weights_at = weights.at + tile * t_.columns();
      Vectors start;
      for (int r = 0; r < t_.rows; ++r)
        for (int v = 0; v < t_.vectors; ++v)
          start.push_back(b.load(target.buffer, to + (r * row_size() + v * t_.lanes), t_.lanes));
      const Vectors totals =
          b.loop(b.i64(0), lanes, b.i64(1), start, [&](Var lane, std::span<const Var> carried) {
            Vectors next(carried.begin(), carried.end()), row;
            for (int v = 0; v < t_.vectors; ++v)
              row.push_back(b.load(rows.buffer, at(rows.base + lane * rows.ld + d0, v), t_.lanes));
            for (int r = 0; r < t_.rows; ++r) {
              const Var x =
                  b.splat(b.load(weights.buffer, weights_at + lane + r * t_.columns()), t_.lanes);
              for (int v = 0; v < t_.vectors; ++v) {
                Var& sum = next[static_cast<std::size_t>(r * t_.vectors + v)];
                sum = b.fma(x, row[static_cast<std::size_t>(v)], sum);
              }
            }
            return next;
          });
      for (int r = 0; r < t_.rows; ++r)
        for (int v = 0; v < t_.vectors; ++v)
          b.store(target.buffer, to + (r * row_size() + v * t_.lanes),
                  totals[static_cast<std::size_t>(r * t_.vectors + v)]);
    });
  });
}

// --- scores

Var AttentionWriter::mask_base(Var batch, Var head) const {
  if (spec_.mask == AttentionMask::none) return {};
  return batch * args_.mask_batch + head * args_.mask_head;
}

Var AttentionWriter::load_mask(const Row& row) {
  const MaskAxis axis = row.lanes_are_queries ? spec_.mask_queries : spec_.mask_keys;
  const Var query = row.lanes_are_queries ? row.lane : row.row,
            key = row.lanes_are_queries ? row.row : row.lane;
  if (axis == MaskAxis::broadcast) {
    const Var rest = row.lanes_are_queries ? key * args_.mask_key : query * args_.mask_query;
    return b.splat(b.load(args_.mask, row.mask_base + rest), t_.lanes);
  }
  const Var from = row.mask_base + query * args_.mask_query + key * args_.mask_key;
  const Var within = lanes_within(row.lane, row.lanes_are_queries ? args_.queries : args_.keys);
  if (axis == MaskAxis::contiguous) return b.load(args_.mask, from, t_.lanes, within);
  return b.load_strided(args_.mask, from, row.lanes_are_queries ? args_.mask_query : args_.mask_key,
                        t_.lanes, within);
}

// The distance from key to query is counted in 32 bits: that is the width of a mask of lanes.
Var AttentionWriter::seen(const Row& row) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  const auto narrow = [&](Var x) {
    return b.splat(b.cast(max(min(x, kFar), -kFar), DType::i32), t_.lanes);
  };
  const Var lane = b.iota({DType::i32, t_.lanes});
  const Var distance = row.lanes_are_queries ? narrow(row.lane + row.offset - row.row) + lane
                                             : narrow(row.row + row.offset - row.lane) - lane;
  const Var behind = le(like(distance, 0), distance);
  if (!spec_.windowed) return behind;
  return b.binary(kir::Op::bit_and, behind, lt(distance, narrow(args_.window)));
}

Var AttentionWriter::finish_score(Var score, const Row& row) {
  const Var hidden = number(-INFINITY);
  if (spec_.mask == AttentionMask::additive) score = score + load_mask(row);
  if (spec_.mask == AttentionMask::boolean) score = b.select(load_mask(row), score, hidden);
  if (row.in_sight) return score;
  return b.select(seen(row), score, hidden);
}

AttentionWriter::RowRange AttentionWriter::visible_rows(const Lanes& lanes, Var size) {
  RowRange rows{b.i64(0), size};
  if (!spec_.causal) return rows;
  if (lanes.are_queries) {
    rows.end = min(size, lanes.last + lanes.offset + 1);
    if (spec_.windowed) rows.begin = max(lanes.first + lanes.offset - args_.window + 1, 0);
  } else {
    rows.begin = max(lanes.first - lanes.offset, 0);
    if (spec_.windowed) rows.end = min(size, lanes.last - lanes.offset + args_.window);
  }
  return rows;
}

Var AttentionWriter::all_seen(const Lanes& lanes, Var begin, Var end) {
  const Var nearest = lanes.are_queries ? lanes.first + lanes.offset - (end - 1)
                                        : begin + lanes.offset - lanes.last;
  const Var behind = le(b.i64(0), nearest);
  if (!spec_.windowed) return behind;
  const Var farthest =
      lanes.are_queries ? lanes.last + lanes.offset - begin : end - 1 + lanes.offset - lanes.first;
  return b.binary(kir::Op::bit_and, behind, lt(farthest, args_.window));
}

}  // namespace pantala::schedule::cpu
