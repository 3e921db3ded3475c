#include "schedule/gpu/attention/parts.h"

#include <cmath>

#include "schedule/gpu/tile.h"

namespace pantala::schedule::gpu {

using kir::Op;
using kir::Var;

std::int64_t AttentionShape::bytes(AttentionPart part, DType dtype) const {
  const std::int64_t sums = own * room, scores = std::int64_t{own} * kBlock;
  const std::int64_t twice = part == AttentionPart::key_grad ? 2 : 1;
  return (twice * (sums + scores) + 3 * kMostOwn) * dtype_bytes(dtype) + 8 * kir::kScratchAlignment;
}

AttentionWriter::AttentionWriter(kir::Builder& builder, AttentionPart part,
                                 const AttentionSpec& spec, const AttentionShape& shape,
                                 bool own_queries)
    : b(builder),
      spec_(spec),
      shape_(shape),
      own_queries_(own_queries),
      args_(declare_attention(builder, part, spec)) {}

Var AttentionWriter::finite_or_zero(Var x) {
  return b.select(lt(b.unary(Op::abs, x), like(x, INFINITY)), x, like(x, 0.0));
}

AttentionWriter::Range AttentionWriter::visible(const Block& block) {
  Range range{b.i64(0), block.other_size};
  if (!spec_.causal) return range;
  const Var last = min(block.own + shape_.own, block.own_size) - 1;
  if (own_queries_) {
    range.end = max(min(range.end, last + block.offset + 1), 0);
    if (spec_.windowed) range.begin = max(block.own + block.offset - args_.window + 1, 0);
  } else {
    range.begin = max(block.own - block.offset, 0);
    if (spec_.windowed) range.end = min(range.end, last - block.offset + args_.window);
  }
  return range;
}

Var AttentionWriter::own_of(std::size_t pair) {
  return over(b.thread(), shape_.across()) * shape_.rows() +
         static_cast<std::int64_t>(pair) / shape_.columns();
}
Var AttentionWriter::other_of(std::size_t pair) {
  return modulo(b.thread(), shape_.across()) +
         static_cast<std::int64_t>(pair) % shape_.columns() * shape_.across();
}
Var AttentionWriter::place(std::size_t pair) { return own_of(pair) * kBlock + other_of(pair); }

std::vector<Var> AttentionWriter::products(const HeadView& own, Var own_first,
                                           const HeadView& other, Var other_first) {
  std::vector<Var> rows, columns;
  for (int i = 0; i < shape_.rows(); ++i)
    rows.push_back(
        own.base +
        min(own_first + own_of(static_cast<std::size_t>(i * shape_.columns())), own.size - 1) *
            own.ld);
  for (int j = 0; j < shape_.columns(); ++j)
    columns.push_back(other.base +
                      min(other_first + other_of(static_cast<std::size_t>(j)), other.size - 1) *
                          other.ld);
  const std::vector<Var> zeros(pairs(), number(0));
  return b.loop(b.i64(0), args_.head_dim, b.i64(1), zeros, [&](Var d, std::span<const Var> sums) {
    std::vector<Var> x, y, next;
    for (const Var& row : rows) x.push_back(b.load(own.buffer, row + d));
    for (const Var& column : columns) y.push_back(b.load(other.buffer, column + d));
    for (std::size_t k = 0; k < sums.size(); ++k)
      next.push_back(b.fma(x[k / columns.size()], y[k % columns.size()], sums[k]));
    return next;
  });
}

Var AttentionWriter::exists(const Block& block, Var first, std::size_t pair) {
  return b.binary(Op::bit_and, lt(block.own + own_of(pair), block.own_size),
                  lt(first + other_of(pair), block.other_size));
}

Var AttentionWriter::score(const Block& block, Var first, std::size_t pair, Var product) {
  const Var own = block.own + own_of(pair), other = first + other_of(pair);
  const Var query = own_queries_ ? own : other, key = own_queries_ ? other : own;
  Var seen = exists(block, first, pair);
  Var score = product * args_.scale;
  if (spec_.mask != AttentionMask::none) {
    const Var at = block.batch * args_.mask_batch + block.head * args_.mask_head +
                   query * args_.mask_query + key * args_.mask_key;
    const Var mask = b.load(args_.mask, at, 1, seen);
    if (spec_.mask == AttentionMask::additive)
      score = score + mask;
    else
      seen = b.binary(Op::bit_and, seen, mask);
  }
  if (spec_.causal) {
    const Var distance = query + block.offset - key;
    seen = b.binary(Op::bit_and, seen, le(b.i64(0), distance));
    if (spec_.windowed) seen = b.binary(Op::bit_and, seen, lt(distance, args_.window));
  }
  return b.select(seen, score, number(-INFINITY));
}

void AttentionWriter::each_dim(const std::function<void(Var)>& body) {
  b.loop(b.thread(), args_.head_dim, b.i64(kAttentionThreads), body);
}

void AttentionWriter::clear(kir::BufferId sums) {
  b.loop(b.thread(), b.i64(shape_.own * shape_.room), b.i64(kAttentionThreads),
         [&](Var at) { b.store(sums, at, number(0)); });
}

void AttentionWriter::accumulate(kir::BufferId sums, kir::BufferId weights, const HeadView& other,
                                 Var first, Var end, const kir::BufferId* factors) {
  each_dim([&](Var d) {
    std::vector<Var> now;
    for (int i = 0; i < shape_.own; ++i) {
      now.push_back(b.load(sums, d + i * shape_.room));
      if (factors != nullptr) now.back() = now.back() * b.load(*factors, b.i64(i));
    }
    const Var count = min(end - first, kBlock), base = other.base + first * other.ld + d;
    now = b.loop(b.i64(0), count, b.i64(1), now, [&](Var j, std::span<const Var> before) {
      const Var x = b.load(other.buffer, base + j * other.ld);
      std::vector<Var> next;
      for (std::size_t i = 0; i < before.size(); ++i)
        next.push_back(
            b.fma(b.load(weights, j + static_cast<std::int64_t>(i) * kBlock), x, before[i]));
      return next;
    });
    for (int i = 0; i < shape_.own; ++i)
      b.store(sums, d + i * shape_.room, now[static_cast<std::size_t>(i)]);
  });
}

void AttentionWriter::write(kir::BufferId sums, const HeadView& to, Var first,
                            const std::function<Var(Var, Var)>& finish) {
  const Var count = min(to.size - first, shape_.own);
  b.loop(b.i64(0), count, b.i64(1), [&](Var i) {
    each_dim([&](Var d) {
      b.store(to.buffer, to.base + (first + i) * to.ld + d,
              finish(i, b.load(sums, i * shape_.room + d)));
    });
  });
}

}  // namespace pantala::schedule::gpu
