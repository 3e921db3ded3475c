// The kernels of attention's gradients. With p = exp(score - lse) and ds = p * (dp - dots) * scale,
// where dp are the products of dout and v: dq is made by workgroups that have queries of their own,
// from ds and the keys; dk and dv by those that have keys, from ds and the queries, p and dout.
#include "kir/math.h"
#include "schedule/gpu/attention/parts.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

class GradKernel {
 public:
  GradKernel(AttentionPart part, const AttentionSpec& spec, const AttentionShape& shape)
      : b("attention_grad", kAttentionThreads),
        own_queries_(part == AttentionPart::query_grad),
        own_(shape.own),
        w_(b, part, spec, shape, own_queries_),
        args_(w_.args()) {
    slopes_ = w_.scratch("slopes", shape.own * kBlock);
    sums_ = w_.scratch("sums", shape.own * shape.room);
    if (own_queries_) return;
    weights_ = w_.scratch("weights", shape.own * kBlock);
    values_ = w_.scratch("values", shape.own * shape.room);
  }

  kir::Kernel build() {
    open_item();
    w_.clear(sums_);
    if (!own_queries_) w_.clear(values_);
    b.barrier();
    if (own_queries_) {
      visit_head(first_head_);
    } else {
      b.loop(first_head_, first_head_ + args_.group, b.i64(1), [&](Var head) { visit_head(head); });
    }
    const auto as_it_is = [](Var, Var sum) { return sum; };
    const auto to = [&](const HeadTensor& tensor) {
      return w_.view(tensor, block_.batch, own_head_, block_.own_size);
    };
    w_.write(sums_, to(own_queries_ ? args_.dq : args_.dk), block_.own, as_it_is);
    if (!own_queries_) w_.write(values_, to(args_.dv), block_.own, as_it_is);
    return b.finish();
  }

 private:
  void open_item() {
    block_.own_size = own_queries_ ? args_.queries : args_.keys;
    block_.other_size = own_queries_ ? args_.keys : args_.queries;
    block_.offset = b.i64(0);
    const Var blocks = (block_.own_size + (own_ - 1)) / own_;
    const Var rest = b.item() / blocks;
    block_.own = (b.item() - rest * blocks) * own_;
    const Var heads = own_queries_ ? args_.heads : args_.heads / args_.group;
    block_.batch = rest / heads;
    own_head_ = rest - block_.batch * heads;
    first_head_ = own_queries_ ? own_head_ : own_head_ * args_.group;
  }

  // All that one head of the queries gives.
  void visit_head(Var head) {
    block_.head = head;
    const Var key_head = own_queries_ ? head / args_.group : own_head_;
    const auto of_queries = [&](const HeadTensor& t) {
      return w_.view(t, block_.batch, head, args_.queries);
    };
    const auto of_keys = [&](const HeadTensor& t) {
      return w_.view(t, block_.batch, key_head, args_.keys);
    };
    const HeadView q = of_queries(args_.q), dout = of_queries(args_.dout), k = of_keys(args_.k),
                   v = of_keys(args_.v);
    const Var rows = block_.batch * args_.row_batch + head * args_.row_head;
    const AttentionWriter::Range range = w_.visible(block_);
    b.loop(range.begin, range.end, b.i64(kBlock), [&](Var first) {
      const std::vector<Var> scores = own_queries_ ? w_.products(q, block_.own, k, first)
                                                   : w_.products(k, block_.own, q, first);
      const std::vector<Var> dp = own_queries_ ? w_.products(dout, block_.own, v, first)
                                               : w_.products(v, block_.own, dout, first);
      for (std::size_t pair = 0; pair < scores.size(); ++pair)
        weigh(first, rows, pair, scores[pair], dp[pair]);
      b.barrier();
      w_.accumulate(sums_, slopes_, own_queries_ ? k : q, first, range.end, nullptr);
      if (!own_queries_) w_.accumulate(values_, weights_, dout, first, range.end, nullptr);
      b.barrier();
    });
  }

  void weigh(Var first, Var rows, std::size_t pair, Var product, Var dp) {
    const Var exists = w_.exists(block_, first, pair);
    const Var query = own_queries_ ? block_.own + w_.own_of(pair) : first + w_.other_of(pair);
    const Var lse = b.load(args_.lse, rows + query, 1, exists),
              dot = b.load(args_.dots, rows + query, 1, exists);
    const Var score = w_.score(block_, first, pair, product);
    const Var p = kir::math::exp(score - w_.finite_or_zero(lse));
    b.store(slopes_, w_.place(pair), p * (dp - dot) * args_.scale);
    if (!own_queries_) b.store(weights_, w_.place(pair), p);
  }

  kir::Builder b;
  const bool own_queries_;
  const int own_;
  AttentionWriter w_;
  const AttentionArguments& args_;
  kir::BufferId slopes_, sums_, weights_, values_;
  AttentionWriter::Block block_;
  Var own_head_, first_head_;
};

}  // namespace

kir::Kernel build_attention_grad(AttentionPart part, const AttentionSpec& spec,
                                 const AttentionShape& shape) {
  return GradKernel(part, spec, shape).build();
}

// A thread per query.
kir::Kernel build_attention_dots(const AttentionSpec& spec) {
  kir::Builder b("attention_dots", kAttentionThreads);
  const AttentionArguments args = declare_attention(b, AttentionPart::row_dots, spec);
  const Var blocks = (args.queries + (kAttentionThreads - 1)) / kAttentionThreads;
  const Var rest = b.item() / blocks,
            query = (b.item() - rest * blocks) * kAttentionThreads + b.thread();
  const Var batch = rest / args.heads, head = rest - batch * args.heads;
  b.branch(lt(query, args.queries), [&] {
    const auto start = [&](const HeadTensor& t) {
      return t.offset + batch * t.batch + head * t.head + query * t.position;
    };
    const Var dout = start(args.dout), out = start(args.out);
    const Var zero = b.constant({spec.dtype, 1}, 0.0);
    const Var sum =
        b.loop(b.i64(0), args.head_dim, b.i64(1), {zero}, [&](Var d, std::span<const Var> now) {
          return std::vector{
              b.fma(b.load(args.dout.buffer, dout + d), b.load(args.out.buffer, out + d), now[0])};
        })[0];
    b.store(args.dots, batch * args.row_batch + head * args.row_head + query, sum);
  });
  return b.finish();
}

}  // namespace pantala::schedule::gpu
