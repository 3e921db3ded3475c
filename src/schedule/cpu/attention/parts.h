// What the kernels of attention share: their arguments, the side that is broadcast row by row, the
// side that lies in the lanes of a panel, and the register tiles between them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "schedule/cpu/attention/kernel.h"

namespace pantala::schedule::cpu {

using Vectors = std::vector<kir::Var>;

// Rows to be broadcast: element (row, d) stands at base + row * ld + d.
struct Rows {
  kir::BufferId buffer;
  kir::Var base, ld;
  // In place: rows past `last` do not exist, nor do elements past head_dim. Invalid for rows in
  // scratch, which has room for whole tiles.
  kir::Var last;
};

// Writes code that all kernels need. The builder outlives it.
//
// Scratch: *panels* are [head_dim][columns], panel_size() apart; *scores* are [row][columns],
// score_size() apart; a *stage* holds rows as they are in memory, padded with zeros, row_size()
// apart and stage_size() in all.
class AttentionWriter {
 public:
  AttentionWriter(kir::Builder& builder, AttentionPart part, const AttentionSpec& spec,
                  const AttentionTiling& tiling);

  const AttentionArguments& args() const { return args_; }
  std::int64_t panel_size() const;
  std::int64_t score_size() const;
  std::int64_t row_size() const;
  std::int64_t stage_size() const;
  kir::BufferId scratch(std::string name, std::int64_t size);
  std::int64_t panels_size() const { return t_.block / t_.columns() * panel_size(); }

  HeadView view(const HeadTensor& t, kir::Var batch, kir::Var head, kir::Var size) const {
    return {t.buffer, t.offset + batch * t.batch + head * t.head, t.position, size};
  }
  void each(kir::Var count, const std::function<void(kir::Var)>& body) {
    b.loop(b.i64(0), count, b.i64(1), body);
  }
  kir::Var number(double value) { return b.constant({spec_.dtype, t_.lanes}, value); }
  kir::Var finite_or_zero(kir::Var x);
  // x + v * lanes is the first element of vector v of a panel that starts at x.
  kir::Var at(kir::Var x, int v) { return v == 0 ? x : x + v * t_.lanes; }
  // The lanes of a vector whose positions, from `first` on, are below `size`.
  kir::Var lanes_within(kir::Var first, kir::Var size);
  void clear(kir::BufferId scratch, kir::Var size);

  // Between a head and a stage. Rows past the head's end repeat its last one, and are not written.
  void copy_in(const HeadView& head, kir::Var first, kir::Var rows, kir::BufferId stage,
               kir::Var stage_at);
  void copy_out(kir::BufferId stage, kir::Var stage_at, const HeadView& head, kir::Var first,
                kir::Var rows);
  // Between the first rows of a stage and a panel. `divisors`, if there are any, hold a number per
  // position of the panel.
  struct Divisors {
    kir::BufferId buffer;
    kir::Var at;
  };
  void to_panel(kir::BufferId stage, kir::Var stage_at, kir::BufferId panel, kir::Var panel_at);
  void from_panel(kir::BufferId panel, kir::Var panel_at, kir::BufferId stage, kir::Var stage_at,
                  const Divisors* divisors = nullptr);

  Rows in_place(const HeadView& head, kir::Var first) {
    return {head.buffer, head.base + first * head.ld, head.ld, head.size - 1 - first};
  }
  Rows staged(kir::BufferId stage, kir::Var stage_at) {
    return {stage, stage_at, b.i64(row_size()), {}};
  }
  // scores[row][lane] = the products of the first `count` rows with a panel, times `factor` if
  // there is one. Returns for each vector of the panel the largest of `largest` and its scores,
  // none if none is given; a NaN does not count.
  struct Place {
    kir::BufferId buffer;
    kir::Var at;
  };
  Vectors score_block(const Rows& rows, kir::Var count, const Place& panel, const Place& scores,
                      kir::Var factor = {}, const Vectors& largest = {});
  kir::Var larger(kir::Var largest, kir::Var score) {
    return b.select(lt(largest, score), score, largest);
  }
  // sums[d][lane], times factors[lane] if there are any, plus the chain over the first `count` rows
  // of rows[row][d] * weights[row][lane].
  void accumulate_block(const Rows& rows, kir::Var count, const Place& weights, const Place& sums,
                        const Place* factors = nullptr);

  // target[row][d], in a stage, plus the chain over the first `lanes` lanes of weights[row][lane] *
  // rows[lane][d], for the first `count` rows of the target.
  void accumulate_rows(const Place& weights, kir::Var count, const Rows& rows, kir::Var lanes,
                       const Place& target);

  // The scaled scores of one row as the softmax sees them: masked, -inf where a key is not seen.
  // `lane` is the position of the first lane; `offset` is a query's position less its index.
  struct Row {
    bool lanes_are_queries = true;
    kir::Var lane, row, offset;
    kir::Var mask_base;    // of the head, if there is a mask
    bool in_sight = true;  // every lane sees the row
  };
  kir::Var finish_score(kir::Var score, const Row& row);
  kir::Var mask_base(kir::Var batch, kir::Var head) const;

  // Positions [first, last] of the side in the lanes.
  struct Lanes {
    bool are_queries = true;
    kir::Var first, last, offset;
  };
  // The rows below `size` that some of these lanes may see; none if end <= begin.
  struct RowRange {
    kir::Var begin, end;
  };
  RowRange visible_rows(const Lanes& lanes, kir::Var size);
  // Whether every one of these lanes sees the rows [begin, end); only for causal kernels.
  kir::Var all_seen(const Lanes& lanes, kir::Var begin, kir::Var end);

 private:
  kir::Var load_mask(const Row& row);
  kir::Var seen(const Row& row);
  std::int64_t depth() const;  // of a panel in scratch

  kir::Builder& b;
  const AttentionSpec spec_;
  const AttentionTiling t_;
  AttentionArguments args_;
};

}  // namespace pantala::schedule::cpu
