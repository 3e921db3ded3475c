// The gradients of attention. The kernels find the probabilities again from the saved sums of the
// rows; they differ in which side lies in the lanes, and so in which sums they can keep: those of
// the queries (dq) or those of the keys (dk, dv). An item that walks over all keys of a head can
// collect dq in memory meanwhile. No two items write one element.
#include <cmath>

#include "kir/math.h"
#include "schedule/cpu/attention/kernels.h"
#include "schedule/cpu/attention/parts.h"
#include "schedule/cpu/contract/parts.h"

namespace pantala::schedule::cpu {

using kir::Builder;
using kir::Var;

namespace {

class GradKernel {
 public:
  GradKernel(std::string name, AttentionPart part, const AttentionSpec& spec,
             const AttentionTiling& tiling)
      : b(std::move(name)),
        spec_(spec),
        t_(tiling),
        for_queries_(part == AttentionPart::query_grad),
        all_(part == AttentionPart::all_grads),
        w_(b, part, spec, tiling),
        args_(w_.args()) {}

  kir::Kernel build() {
    packed_ = w_.scratch("packed", 2 * w_.panels_size());
    sums_ = w_.scratch("sums", sums_count() * w_.panels_size());
    scores_ = w_.scratch("scores", 2 * w_.score_size());
    stage_ = w_.scratch("stage", (all_ ? 3 : 2) * w_.stage_size());
    if (all_) key_rows_ = w_.scratch("key_rows", t_.block * w_.row_size());
    open_item();
    if (all_) {
      each_head([&] { clear_query_grad(); });
      b.loop(b.i64(0), args_.keys, args_.block, [&](Var first) { lane_block(first); });
    } else {
      const Var blocks = ceil_div(lane_count_, args_.block), block = b.item() % blocks;
      // Long and short rows in turns, so that any stretch of items is about the same work.
      lane_block(args_.block * (spec_.causal
                                    ? b.select(eq(block % 2, 0), block / 2, blocks - 1 - block / 2)
                                    : block));
    }
    return b.finish();
  }

 private:
  int sums_count() const { return for_queries_ ? 1 : 2; }

  void open_item() {
    lane_count_ = for_queries_ ? args_.queries : args_.keys;
    row_count_ = for_queries_ ? args_.keys : args_.queries;
    const Var heads = for_queries_ ? args_.heads : args_.heads / args_.group;
    const Var unit = all_ ? b.item() : b.item() / ceil_div(lane_count_, args_.block);
    item_head_ = unit % heads;
    batch_ = unit / heads;
  }

  // The heads of queries that the item's head is read by.
  void each_head(const std::function<void()>& body) {
    if (for_queries_) {
      open_head(item_head_);
      return body();
    }
    b.loop(item_head_ * args_.group, (item_head_ + 1) * args_.group, b.i64(1), [&](Var head) {
      open_head(head);
      body();
    });
  }

  // All rows for one block of lanes.
  void lane_block(Var first) {
    first_ = first;
    panels_ = ceil_div(min(args_.block, lane_count_ - first_), t_.columns());
    open_head(for_queries_ ? item_head_ : item_head_ * args_.group);
    w_.each(panels_, [&](Var panel) { pack(panel); });
    w_.clear(sums_, b.i64(sums_count() * w_.panels_size()));
    each_head([&] { visit_rows(); });
    w_.each(panels_, [&](Var panel) { finish(panel); });
  }

  // The tensors as one head of the queries sees them.
  void open_head(Var head) {
    const Var key_head = head / args_.group;
    head_ = head;
    q_ = w_.view(args_.q, batch_, head, args_.queries);
    dout_ = w_.view(args_.dout, batch_, head, args_.queries);
    k_ = w_.view(args_.k, batch_, key_head, args_.keys);
    v_ = w_.view(args_.v, batch_, key_head, args_.keys);
    if (all_) dq_ = w_.view(args_.dq, batch_, head, args_.queries);
    row_at_ = batch_ * args_.row_batch + head * args_.row_head;
    mask_base_ = w_.mask_base(batch_, head);
  }

  void clear_query_grad() {
    w_.clear(stage_, b.i64(w_.row_size()));
    w_.each(args_.queries, [&](Var query) { w_.copy_out(stage_, b.i64(0), dq_, query, b.i64(1)); });
  }

  void pack(Var panel) {
    const Var first = first_ + panel * t_.columns(), columns = b.i64(t_.columns());
    w_.copy_in(for_queries_ ? q_ : k_, first, columns, stage_, b.i64(0));
    w_.copy_in(for_queries_ ? dout_ : v_, first, columns, stage_, b.i64(w_.stage_size()));
    w_.each(b.i64(2), [&](Var which) {
      w_.to_panel(stage_, which * w_.stage_size(), packed_, panel_at(panel, which));
    });
    if (all_) w_.copy_in(k_, first, columns, key_rows_, key_rows_at(panel));
  }
  Var panel_at(Var panel, Var which) { return which * w_.panels_size() + panel * w_.panel_size(); }

  Var key_rows_at(Var panel) { return panel * (t_.columns() * w_.row_size()); }
  Var dq_at() { return b.i64(2 * w_.stage_size()); }

  AttentionWriter::Lanes lanes(Var first, Var count) {
    return {for_queries_, first, min(first + count, lane_count_) - 1, b.i64(0)};
  }

  void visit_rows() {
    const auto rows = w_.visible_rows(lanes(first_, args_.block), row_count_);
    b.loop(rows.begin, rows.end, b.i64(kKeyBlock), [&](Var row) {
      const Var here = min(rows.end - row, kKeyBlock), count = round_up(here, t_.rows);
      w_.copy_in(for_queries_ ? k_ : q_, row, count, stage_, b.i64(0));
      w_.copy_in(for_queries_ ? v_ : dout_, row, count, stage_, b.i64(w_.stage_size()));
      if (all_) w_.copy_in(dq_, row, count, stage_, dq_at());
      w_.each(panels_, [&](Var panel) { visit(panel, row); });
      if (all_) w_.copy_out(stage_, dq_at(), dq_, row, here);
    });
  }

  void visit(Var panel, Var row) {
    const auto positions = lanes(first_ + panel * t_.columns(), b.i64(t_.columns()));
    const auto rows = w_.visible_rows(positions, row_count_);
    const Var end = min(row + kKeyBlock, rows.end);
    if (!spec_.causal) return block(panel, positions, row, end);
    b.branch(lt(max(row, rows.begin), end), [&] { block(panel, positions, row, end); });
  }

  void block(Var panel, const AttentionWriter::Lanes& positions, Var row, Var end) {
    const Var count = end - row;
    // q k, scaled; and dout v.
    w_.each(b.i64(2), [&](Var which) {
      const Var factor = b.select(eq(which, 0), args_.scale, b.constant({spec_.dtype, 1}, 1.0));
      w_.score_block(w_.staged(stage_, which * w_.stage_size()), count,
                     {packed_, panel_at(panel, which)}, {scores_, which * w_.score_size()}, factor);
    });
    const auto gradients = [&](bool in_sight) {
      score_gradients(positions.first, row, count, in_sight);
      return Vectors{};
    };
    if (spec_.causal)
      b.branch(
          w_.all_seen(positions, row, end), [&] { return gradients(true); },
          [&] { return gradients(false); });
    else
      gradients(true);
    // ds for the sums over k or q, p for those over dout.
    w_.each(b.i64(sums_count()), [&](Var which) {
      w_.accumulate_block(w_.staged(stage_, which * w_.stage_size()), count,
                          {scores_, (1 - which) * w_.score_size()}, {sums_, panel_at(panel, which)},
                          {});
    });
    if (all_) collect_query_grad(panel, positions, count);
  }

  // Rows of the last tile that this panel does not see may be seen by others: they get + 0.
  void collect_query_grad(Var panel, const AttentionWriter::Lanes& positions, Var count) {
    const Var ds_at = b.i64(w_.score_size());
    b.loop(count * t_.columns(), round_up(count, t_.rows) * t_.columns(), b.i64(t_.lanes),
           [&](Var i) { b.store(scores_, ds_at + i, w_.number(0)); });
    w_.accumulate_rows({scores_, ds_at}, count, w_.staged(key_rows_, key_rows_at(panel)),
                       positions.last + 1 - positions.first, {stage_, dq_at()});
  }

  // lse and dots of a vector of queries, or of one query for all lanes.
  struct Saved {
    Var lse, dots;
  };
  Saved saved_of_lanes(Var query) {
    const Var within = w_.lanes_within(query, args_.queries), from = row_at_ + query;
    return {w_.finite_or_zero(b.load(args_.lse, from, t_.lanes, within)),
            b.load(args_.dots, from, t_.lanes, within)};
  }
  Saved saved_of_row(Var query) {
    return {b.splat(w_.finite_or_zero(b.load(args_.lse, row_at_ + query)), t_.lanes),
            b.splat(b.load(args_.dots, row_at_ + query), t_.lanes)};
  }

  // From the products q k and dout v to p and ds, in place.
  void score_gradients(Var first_lane, Var first_row, Var count, bool in_sight) {
    b.loop(b.i64(0), b.i64(t_.columns()), b.i64(t_.lanes), [&](Var lane) {
      const Saved of_lanes = for_queries_ ? saved_of_lanes(first_lane + lane) : Saved{};
      w_.each(count, [&](Var row) {
        const Var p_at = row * t_.columns() + lane, ds_at = p_at + w_.score_size();
        const Saved s = for_queries_ ? of_lanes : saved_of_row(first_row + row);
        const Var score =
            w_.finish_score(b.load(scores_, p_at, t_.lanes), {.lanes_are_queries = for_queries_,
                                                              .lane = first_lane + lane,
                                                              .row = first_row + row,
                                                              .offset = b.i64(0),
                                                              .mask_base = mask_base_,
                                                              .in_sight = in_sight});
        const Var p = kir::math::exp(score - s.lse);
        if (!for_queries_) b.store(scores_, p_at, p);
        b.store(scores_, ds_at, p * (b.load(scores_, ds_at, t_.lanes) - s.dots) * args_.scale);
      });
    });
  }

  void finish(Var panel) {
    const Var first = first_ + panel * t_.columns(), columns = b.i64(t_.columns());
    w_.each(b.i64(sums_count()), [&](Var which) {
      w_.from_panel(sums_, panel_at(panel, which), stage_, which * w_.stage_size());
    });
    w_.copy_out(stage_, b.i64(0),
                for_queries_ ? w_.view(args_.dq, batch_, item_head_, args_.queries)
                             : w_.view(args_.dk, batch_, item_head_, args_.keys),
                first, columns);
    if (for_queries_) return;
    w_.copy_out(stage_, b.i64(w_.stage_size()), w_.view(args_.dv, batch_, item_head_, args_.keys),
                first, columns);
  }

  Builder b;
  const AttentionSpec spec_;
  const AttentionTiling t_;
  const bool for_queries_, all_;
  AttentionWriter w_;
  const AttentionArguments& args_;
  // Each of two parts: what makes scores (q, k) and what makes values (dout, v) as panels and as
  // rows; p and ds; dq, or dk and dv. (all_grads has a third stage for dq.)
  kir::BufferId packed_, stage_, scores_, sums_, key_rows_;
  HeadView q_, k_, v_, dout_, dq_;
  Var batch_, item_head_, head_, first_, panels_, lane_count_, row_count_, row_at_, mask_base_;
};

}  // namespace

kir::Kernel build_attention_grad(std::string name, AttentionPart part, const AttentionSpec& spec,
                                 const AttentionTiling& tiling) {
  return GradKernel(std::move(name), part, spec, tiling).build();
}

// dots[row] = the sum over head_dim of dout * out: partial sums in lanes, then halved.
kir::Kernel build_attention_row_dots(std::string name, const AttentionSpec& spec,
                                     const AttentionTiling& tiling) {
  Builder b(std::move(name));
  AttentionWriter w(b, AttentionPart::row_dots, spec, tiling);
  const AttentionArguments& args = w.args();
  const Var blocks = ceil_div(args.queries, args.block);
  const Var first = b.item() % blocks * args.block, head = b.item() / blocks % args.heads,
            batch = b.item() / blocks / args.heads;
  const HeadView dout = w.view(args.dout, batch, head, args.queries),
                 out = w.view(args.out, batch, head, args.queries);
  b.loop(first, min(first + args.block, args.queries), b.i64(1), [&](Var query) {
    const auto add = [&](Var d, Var sum, Var mask) {
      const auto load = [&](const HeadView& t) {
        return b.load(t.buffer, t.base + query * t.ld + d, tiling.lanes, mask);
      };
      return Vectors{b.fma(load(dout), load(out), sum)};
    };
    const Var whole = args.head_dim / tiling.lanes * tiling.lanes;
    const Vectors sums = b.loop(b.i64(0), whole, b.i64(tiling.lanes), {w.number(0)},
                                [&](Var d, std::span<const Var> s) { return add(d, s[0], {}); });
    const Vectors all = b.branch(
        lt(whole, args.head_dim),
        [&] { return add(whole, sums[0], first_lanes(b, args.head_dim - whole, tiling.lanes)); },
        [&] { return sums; });
    b.store(args.dots, batch * args.row_batch + head * args.row_head + query,
            b.reduce(kir::Op::reduce_add, all[0]));
  });
  return b.finish();
}

}  // namespace pantala::schedule::cpu
