// The forward kernel: a workgroup makes its own queries of one head. Per query it keeps the largest
// score, the sum of weights and the output of the keys so far.
#include <cmath>

#include "kir/math.h"
#include "schedule/gpu/attention/parts.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

class ForwardKernel {
 public:
  ForwardKernel(const AttentionSpec& spec, const AttentionShape& shape)
      : b("attention", kAttentionThreads),
        spec_(spec),
        own_(shape.own),
        w_(b, AttentionPart::forward, spec, shape, true),
        args_(w_.args()) {
    sums_ = w_.scratch("sums", shape.own * shape.room);
    weights_ = w_.scratch("weights", shape.own * kBlock);
    largest_ = w_.scratch("largest", shape.own);
    totals_ = w_.scratch("totals", shape.own);
    factors_ = w_.scratch("factors", shape.own);
  }

  kir::Kernel build() {
    open_item();
    w_.clear(sums_);
    each_query([&](Var i) {
      b.store(largest_, i, w_.number(-INFINITY));
      b.store(totals_, i, w_.number(0));
    });
    b.barrier();
    const AttentionWriter::Range keys = w_.visible(block_);
    b.loop(keys.begin, keys.end, b.i64(kBlock), [&](Var key) { visit(key, keys.end); });
    finish();
    return b.finish();
  }

 private:
  void open_item() {
    const Var blocks = (args_.queries + (own_ - 1)) / own_;
    const Var rest = b.item() / blocks;
    block_.own = (b.item() - rest * blocks) * own_;
    block_.batch = rest / args_.heads;
    block_.head = rest - block_.batch * args_.heads;
    block_.own_size = args_.queries;
    block_.other_size = args_.keys;
    block_.offset = b.i64(0);
    if (spec_.length != AttentionLength::keys) {
      const Var length = spec_.length == AttentionLength::param ? args_.length_param
                                                                : b.load(args_.length, b.i64(0));
      block_.other_size = max(min(length, args_.keys), 0);
      block_.offset = length - args_.queries;
    }
    const Var key_head = block_.head / args_.group;
    q_ = w_.view(args_.q, block_.batch, block_.head, args_.queries);
    k_ = w_.view(args_.k, block_.batch, key_head, block_.other_size);
    v_ = w_.view(args_.v, block_.batch, key_head, block_.other_size);
    out_ = w_.view(args_.out, block_.batch, block_.head, args_.queries);
  }
  // A thread for each of the queries.
  void each_query(const std::function<void(Var)>& body) {
    b.branch(lt(b.thread(), own_), [&] { body(b.thread()); });
  }

  void visit(Var key, Var end) {
    const std::vector<Var> products = w_.products(q_, block_.own, k_, key);
    for (std::size_t pair = 0; pair < products.size(); ++pair)
      b.store(weights_, w_.place(pair), w_.score(block_, key, pair, products[pair]));
    b.barrier();
    each_query([&](Var i) { shift(i); });
    b.barrier();
    for (std::size_t pair = 0; pair < products.size(); ++pair) {
      const Var at = w_.place(pair), largest = b.load(largest_, w_.own_of(pair));
      b.store(weights_, at, kir::math::exp(b.load(weights_, at) - w_.finite_or_zero(largest)));
    }
    b.barrier();
    each_query([&](Var i) { add_up(i); });
    w_.accumulate(sums_, weights_, v_, key, end, &factors_);
    b.barrier();
  }

  // The largest score so far, and by what everything before shrinks. A NaN does not count: it
  // reaches the sum as it is.
  void shift(Var i) {
    const Var before = b.load(largest_, i);
    const Var largest =
        b.loop(b.i64(0), b.i64(kBlock), b.i64(1), {before}, [&](Var j, std::span<const Var> now) {
          const Var score = b.load(weights_, i * kBlock + j);
          return std::vector{b.select(lt(now[0], score), score, now[0])};
        })[0];
    b.store(largest_, i, largest);
    b.store(factors_, i, kir::math::exp(before - w_.finite_or_zero(largest)));
  }
  void add_up(Var i) {
    const Var start = b.load(totals_, i) * b.load(factors_, i);
    const Var sum =
        b.loop(b.i64(0), b.i64(kBlock), b.i64(1), {start}, [&](Var j, std::span<const Var> now) {
          return std::vector{now[0] + b.load(weights_, i * kBlock + j)};
        })[0];
    b.store(totals_, i, sum);
  }

  void finish() {
    // A query that sees no key gets zeros.
    const auto divisor = [&](Var total) { return b.select(ne(total, 0.0), total, w_.number(1)); };
    if (spec_.save_lse)
      b.branch(lt(b.thread(), min(args_.queries - block_.own, own_)), [&] {
        const Var i = b.thread(), total = b.load(totals_, i);
        const Var lse = kir::math::log(divisor(total)) + w_.finite_or_zero(b.load(largest_, i));
        b.store(args_.lse,
                block_.batch * args_.row_batch + block_.head * args_.row_head + block_.own + i,
                b.select(ne(total, 0.0), lse, w_.number(-INFINITY)));
      });
    w_.write(sums_, out_, block_.own,
             [&](Var i, Var sum) { return sum / divisor(b.load(totals_, i)); });
  }

  kir::Builder b;
  const AttentionSpec spec_;
  const int own_;
  AttentionWriter w_;
  const AttentionArguments& args_;
  kir::BufferId sums_, weights_, largest_, totals_, factors_;
  AttentionWriter::Block block_;
  HeadView q_, k_, v_, out_;
};

}  // namespace

kir::Kernel build_attention_forward(const AttentionSpec& spec, const AttentionShape& shape) {
  return ForwardKernel(spec, shape).build();
}

}  // namespace pantala::schedule::gpu
