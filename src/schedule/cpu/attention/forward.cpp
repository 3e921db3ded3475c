// The forward kernel of attention: an item makes a block of queries of one head, in panels that
// share every block of keys while it is in the cache. Per query it keeps the largest score, the sum
// and the output of the keys so far.
#include <cmath>

#include "kir/math.h"
#include "schedule/cpu/attention/kernels.h"
#include "schedule/cpu/attention/parts.h"
#include "schedule/cpu/contract/parts.h"

namespace pantala::schedule::cpu {

using kir::Builder;
using kir::Var;

namespace {

class ForwardKernel {
 public:
  ForwardKernel(std::string name, const AttentionSpec& spec, const AttentionTiling& tiling)
      : b(std::move(name)),
        spec_(spec),
        t_(tiling),
        w_(b, AttentionPart::forward, spec, tiling),
        args_(w_.args()) {}

  kir::Kernel build() {
    make_scratch();
    open_item();
    w_.each(panels_, [&](Var panel) {
      w_.copy_in(q_, first_ + panel * t_.columns(), b.i64(t_.columns()), stage_, b.i64(0));
      w_.to_panel(stage_, b.i64(0), packed_, panel * w_.panel_size());
    });
    w_.clear(out_sums_, panels_ * w_.panel_size());
    b.loop(b.i64(0), panels_ * t_.columns(), b.i64(t_.lanes), [&](Var i) {
      b.store(largest_, i, w_.number(-INFINITY));
      b.store(totals_, i, w_.number(0));
    });
    const auto rows = w_.visible_rows(
        {true, first_, min(first_ + args_.block, args_.queries) - 1, offset_}, valid_keys_);
    b.loop(rows.begin / kKeyBlock * kKeyBlock, rows.end, b.i64(kKeyBlock), [&](Var key) {
      if (t_.copy_rows) copy_rows(key, min(rows.end - key, kKeyBlock));
      w_.each(panels_, [&](Var panel) { visit(panel, key); });
    });
    w_.each(panels_, [&](Var panel) { finish(panel); });
    return b.finish();
  }

 private:
  void make_scratch() {
    packed_ = w_.scratch("packed", w_.panels_size());
    out_sums_ = w_.scratch("out_sums", w_.panels_size());
    scores_ = w_.scratch("scores", w_.score_size());
    stage_ = w_.scratch("stage", t_.columns() * w_.row_size());
    if (t_.copy_rows) rows_ = w_.scratch("rows", 2 * w_.stage_size());
    largest_ = w_.scratch("largest", t_.block);
    totals_ = w_.scratch("totals", t_.block);
    factors_ = w_.scratch("factors", t_.columns());
    if (finds_largest()) highest_ = w_.scratch("highest", t_.columns());
  }

  void open_item() {
    const Var blocks = ceil_div(args_.queries, args_.block);
    const Var block = b.item() % blocks, head = b.item() / blocks % args_.heads;
    batch_ = b.item() / blocks / args_.heads;
    head_ = head;
    // Long and short rows in turns, so that any stretch of items is about the same work.
    first_ = args_.block *
             (spec_.causal ? b.select(eq(block % 2, 0), block / 2, blocks - 1 - block / 2) : block);
    panels_ = ceil_div(min(args_.block, args_.queries - first_), t_.columns());
    valid_keys_ = args_.keys;
    offset_ = b.i64(0);
    if (spec_.length != AttentionLength::keys) {
      const Var length = spec_.length == AttentionLength::param ? args_.length_param
                                                                : b.load(args_.length, b.i64(0));
      valid_keys_ = max(min(length, args_.keys), 0);
      offset_ = length - args_.queries;
    }
    const Var key_head = head / args_.group;
    q_ = w_.view(args_.q, batch_, head, args_.queries);
    k_ = w_.view(args_.k, batch_, key_head, valid_keys_);
    v_ = w_.view(args_.v, batch_, key_head, valid_keys_);
    out_ = w_.view(args_.out, batch_, head, args_.queries);
  }

  void copy_rows(Var key, Var here) {
    const Var count = round_up(here, t_.rows);
    w_.copy_in(k_, key, count, rows_, b.i64(0));
    w_.copy_in(v_, key, count, rows_, b.i64(w_.stage_size()));
  }
  Rows keys_from(Var key) {
    return t_.copy_rows ? w_.staged(rows_, b.i64(0)) : w_.in_place(k_, key);
  }
  Rows values_from(Var key) {
    return t_.copy_rows ? w_.staged(rows_, b.i64(w_.stage_size())) : w_.in_place(v_, key);
  }

  // One block of keys for one panel, if there is anything to see.
  void visit(Var panel, Var key) {
    const Var first = first_ + panel * t_.columns();
    const AttentionWriter::Lanes lanes{true, first, min(first + t_.columns(), args_.queries) - 1,
                                       offset_};
    const auto rows = w_.visible_rows(lanes, valid_keys_);
    const Var end = min(key + kKeyBlock, rows.end);
    if (!spec_.causal) return block(panel, lanes, key, end);
    b.branch(lt(max(key, rows.begin), end), [&] { block(panel, lanes, key, end); });
  }

  void block(Var panel, const AttentionWriter::Lanes& lanes, Var key, Var end) {
    const Var count = end - key, panel_at = panel * w_.panel_size();
    const AttentionWriter::Place scores{scores_, b.i64(0)}, factors{factors_, b.i64(0)};
    note_largest(w_.score_block(keys_from(key), count, {packed_, panel_at}, scores, args_.scale,
                                largest_of(panel)));
    const Var seen = spec_.causal ? w_.all_seen(lanes, key, end) : Var();
    b.loop(b.i64(0), b.i64(t_.columns()), b.i64(t_.lanes), [&](Var lane) {
      const Var state_at = panel * t_.columns() + lane;
      const Var before = b.load(largest_, state_at, t_.lanes);
      const auto finished = [&](bool in_sight) {
        if (in_sight && finds_largest()) return Vectors{b.load(highest_, lane, t_.lanes)};
        return finish_scores(lanes.first, lane, key, count, before, in_sight);
      };
      const Var largest = spec_.causal ? b.branch(
                                             seen, [&] { return finished(true); },
                                             [&] { return finished(false); })[0]
                                       : finished(true)[0];
      const Var shift = w_.finite_or_zero(largest), factor = kir::math::exp(before - shift);
      const Var total = b.load(totals_, state_at, t_.lanes) * factor;
      b.store(largest_, state_at, largest);
      b.store(factors_, lane, factor);
      b.store(totals_, state_at, exponentials(lane, count, shift, total));
    });
    w_.accumulate_block(values_from(key), count, scores, {out_sums_, panel_at}, &factors);
  }

  // Where nothing is masked, the products find the largest on their way, as long as no tile of
  // theirs looks into the next block; else it is found once all that hides some of them was looked
  // at.
  bool finds_largest() const {
    return spec_.mask == AttentionMask::none && kKeyBlock % t_.rows == 0;
  }
  Vectors largest_of(Var panel) {
    Vectors largest;
    for (int v = 0; v < (finds_largest() ? t_.vectors : 0); ++v)
      largest.push_back(b.load(largest_, w_.at(panel * t_.columns(), v), t_.lanes));
    return largest;
  }
  void note_largest(const Vectors& largest) {
    for (int v = 0; v < static_cast<int>(largest.size()); ++v)
      b.store(highest_, b.i64(v * t_.lanes), largest[static_cast<std::size_t>(v)]);
  }

  // Scores as the softmax sees them, in place; returns the largest. A NaN does not count: it
  // reaches the sum as it is.
  Vectors finish_scores(Var first, Var lane, Var key, Var count, Var before, bool in_sight) {
    const Var base = w_.mask_base(batch_, head_);
    return b.loop(b.i64(0), count, b.i64(1), {before}, [&](Var row, std::span<const Var> largest) {
      const Var at = row * t_.columns() + lane;
      const Var score = w_.finish_score(b.load(scores_, at, t_.lanes), {.lanes_are_queries = true,
                                                                        .lane = first + lane,
                                                                        .row = key + row,
                                                                        .offset = offset_,
                                                                        .mask_base = base,
                                                                        .in_sight = in_sight});
      b.store(scores_, at, score);
      return Vectors{w_.larger(largest[0], score)};
    });
  }

  // exp(score - shift) in place; returns the sum.
  Var exponentials(Var lane, Var count, Var shift, Var start) {
    return b.loop(b.i64(0), count, b.i64(1), {start}, [&](Var row, std::span<const Var> sum) {
      const Var at = row * t_.columns() + lane;
      const Var e = kir::math::exp(b.load(scores_, at, t_.lanes) - shift);
      b.store(scores_, at, e);
      return Vectors{sum[0] + e};
    })[0];
  }

  void finish(Var panel) {
    const Var first = first_ + panel * t_.columns(), state_at = panel * t_.columns();
    const Var lse_at = batch_ * args_.row_batch + head_ * args_.row_head + first;
    b.loop(b.i64(0), b.i64(t_.columns()), b.i64(t_.lanes), [&](Var lane) {
      const Var total = b.load(totals_, state_at + lane, t_.lanes);
      const Var has_keys = ne(total, 0.0);
      const Var divisor = b.select(has_keys, total, w_.number(1));
      b.store(totals_, state_at + lane, divisor);
      if (!spec_.save_lse) return;
      const Var shift = w_.finite_or_zero(b.load(largest_, state_at + lane, t_.lanes));
      b.store(args_.lse, lse_at + lane,
              b.select(has_keys, kir::math::log(divisor) + shift, w_.number(-INFINITY)),
              w_.lanes_within(first + lane, args_.queries));
    });
    const AttentionWriter::Divisors divisors{totals_, state_at};
    w_.from_panel(out_sums_, panel * w_.panel_size(), stage_, b.i64(0), &divisors);
    w_.copy_out(stage_, b.i64(0), out_, first, b.i64(t_.columns()));
  }

  Builder b;
  const AttentionSpec spec_;
  const AttentionTiling t_;
  AttentionWriter w_;
  const AttentionArguments& args_;
  kir::BufferId packed_, out_sums_, scores_, stage_, rows_, largest_, totals_, factors_, highest_;
  HeadView q_, k_, v_, out_;
  Var batch_, head_, first_, panels_, valid_keys_, offset_;
};

}  // namespace

kir::Kernel build_attention_forward(std::string name, const AttentionSpec& spec,
                                    const AttentionTiling& tiling) {
  return ForwardKernel(std::move(name), spec, tiling).build();
}

}  // namespace pantala::schedule::cpu
