// The gradients of attention. Both kernels find the probabilities again from the saved sums of the
// rows; they differ in which side lies in the lanes, and so in which sums they can keep: those of
// the queries (dq) or those of the keys (dk, dv). No two items write one element.
#include <cmath>

#include "kir/math.h"
#include "schedule/cpu/attention_kernels.h"
#include "schedule/cpu/attention_parts.h"
#include "schedule/cpu/contract_parts.h"

namespace pantala::schedule {

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
        w_(b, part, spec, tiling),
        args_(w_.args()) {}

  kir::Kernel build() {
    make_scratch();
    open_item();
    if (for_queries_) {
      open_head(item_head_);
      w_.pack_panels(q_, first_, panels_, packed_scores_);
      w_.pack_panels(dout_, first_, panels_, packed_values_);
    } else {
      const Var head = item_head_ * args_.group;
      open_head(head);
      w_.pack_panels(k_, first_, panels_, packed_scores_);
      w_.pack_panels(v_, first_, panels_, packed_values_);
      w_.clear_panels(value_sums_, panels_);
    }
    w_.clear_panels(score_sums_, panels_);
    if (for_queries_)
      visit_rows();
    else
      b.loop(item_head_ * args_.group, (item_head_ + 1) * args_.group, b.i64(1), [&](Var head) {
        open_head(head);
        visit_rows();
      });
    w_.each(panels_, [&](Var panel) { finish(panel); });
    return b.finish();
  }

 private:
  void make_scratch() {
    packed_scores_ = w_.panel_scratch("packed_scores");
    packed_values_ = w_.panel_scratch("packed_values");
    score_sums_ = w_.panel_scratch("score_sums");
    if (!for_queries_) value_sums_ = w_.panel_scratch("value_sums");
    p_ = w_.score_scratch("p");
    ds_ = w_.score_scratch("ds");
  }

  void open_item() {
    lane_count_ = for_queries_ ? args_.queries : args_.keys;
    row_count_ = for_queries_ ? args_.keys : args_.queries;
    const Var blocks = ceil_div(lane_count_, args_.block);
    const Var heads = for_queries_ ? args_.heads : args_.heads / args_.group;
    const Var block = b.item() % blocks;
    item_head_ = b.item() / blocks % heads;
    batch_ = b.item() / blocks / heads;
    // Long and short rows in turns, so that any stretch of items is about the same work.
    first_ = args_.block *
             (spec_.causal ? b.select(eq(block % 2, 0), block / 2, blocks - 1 - block / 2) : block);
    panels_ = ceil_div(min(args_.block, lane_count_ - first_), t_.columns());
  }

  // The tensors as one head of the queries sees them.
  void open_head(Var head) {
    const Var key_head = head / args_.group;
    head_ = head;
    q_ = w_.view(args_.q, batch_, head, args_.queries);
    dout_ = w_.view(args_.dout, batch_, head, args_.queries);
    k_ = w_.view(args_.k, batch_, key_head, args_.keys);
    v_ = w_.view(args_.v, batch_, key_head, args_.keys);
    row_at_ = batch_ * args_.row_batch + head * args_.row_head;
    mask_base_ = w_.mask_base(batch_, head);
  }

  AttentionWriter::Lanes lanes(Var first, Var count) {
    return {for_queries_, first, min(first + count, lane_count_) - 1, b.i64(0)};
  }

  void visit_rows() {
    const auto rows = w_.visible_rows(lanes(first_, args_.block), row_count_);
    b.loop(rows.begin, rows.end, b.i64(kKeyBlock), [&](Var row) {
      w_.each(panels_, [&](Var panel) { visit(panel, row); });
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
    const Var count = end - row, at = panel * w_.panel_size();
    w_.score_block(for_queries_ ? k_ : q_, row, count, packed_scores_, at, p_);
    w_.score_block(for_queries_ ? v_ : dout_, row, count, packed_values_, at, ds_);
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
    w_.accumulate_block(for_queries_ ? k_ : q_, row, count, ds_, score_sums_, at, {});
    if (!for_queries_) w_.accumulate_block(dout_, row, count, p_, value_sums_, at, {});
  }

  // lse and dots of vector v of a panel of queries, or of one query for all lanes.
  struct Saved {
    Var lse, dots;
  };
  Saved saved(Var query, int v) {
    if (!for_queries_)
      return {b.splat(w_.finite_or_zero(b.load(args_.lse, row_at_ + query)), t_.lanes),
              b.splat(b.load(args_.dots, row_at_ + query), t_.lanes)};
    const Var within = w_.lanes_within(query, v, args_.queries), from = row_at_ + w_.at(query, v);
    return {w_.finite_or_zero(b.load(args_.lse, from, t_.lanes, within)),
            b.load(args_.dots, from, t_.lanes, within)};
  }

  // From the products q k and dout v to p and ds, in place.
  void score_gradients(Var lane, Var first, Var count, bool in_sight) {
    std::vector<Saved> of_lanes;
    for (int v = 0; v < t_.vectors && for_queries_; ++v) of_lanes.push_back(saved(lane, v));
    w_.each(count, [&](Var row) {
      for (int v = 0; v < t_.vectors; ++v) {
        const Var at = w_.at(row * t_.columns(), v);
        const Saved s =
            for_queries_ ? of_lanes[static_cast<std::size_t>(v)] : saved(first + row, v);
        const Var score = w_.finish_score(b.load(p_, at, t_.lanes),
                                          {.lanes_are_queries = for_queries_,
                                           .lane = lane,
                                           .row = first + row,
                                           .offset = b.i64(0),
                                           .mask_base = mask_base_,
                                           .in_sight = in_sight},
                                          v);
        const Var p = kir::math::exp(score - s.lse);
        if (!for_queries_) b.store(p_, at, p);
        b.store(ds_, at, p * (b.load(ds_, at, t_.lanes) - s.dots) * args_.scale);
      }
    });
  }

  void finish(Var panel) {
    const Var first = first_ + panel * t_.columns(), at = panel * w_.panel_size();
    if (for_queries_)
      return w_.unpack_panel(score_sums_, at,
                             w_.view(args_.dq, batch_, item_head_, args_.queries), first);
    w_.unpack_panel(score_sums_, at, w_.view(args_.dk, batch_, item_head_, args_.keys), first);
    w_.unpack_panel(value_sums_, at, w_.view(args_.dv, batch_, item_head_, args_.keys), first);
  }

  Builder b;
  const AttentionSpec spec_;
  const AttentionTiling t_;
  const bool for_queries_;
  AttentionWriter w_;
  const AttentionArguments& args_;
  // Of q or k and dout or v; sums of dq or dk and dv.
  kir::BufferId packed_scores_, packed_values_, score_sums_, value_sums_, p_, ds_;
  HeadView q_, k_, v_, dout_;
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

}  // namespace pantala::schedule
