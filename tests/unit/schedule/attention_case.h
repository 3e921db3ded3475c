// One attention for the tests of its kernels: numbers, a plain reference in double, memory with
// gaps, and a run of any part, interpreted and as machine code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "schedule/cpu/attention/kernel.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::schedule::cpu {

struct AttentionCase {
  AttentionSizes sizes;
  bool causal = false;
  std::int64_t window = 0;  // 0: none
  AttentionMask mask = AttentionMask::none;
  // The mask's batch, heads, queries and keys: whether they are those of the scores or 1.
  std::array<bool, 4> mask_axes = {true, true, true, true};
  bool mask_keys_outside = false;  // stored as [.., keys, queries]
  std::int64_t length = -1;        // of a cache; -1: none
  bool length_in_buffer = false;
  double scale = 0.6;
  bool positions_outside = false;  // stored as [batch, positions, heads, head_dim]
  double spread = 1;               // of q and k

  std::string str() const {
    std::ostringstream text;
    text << sizes.batch << "x" << sizes.heads << "/" << sizes.key_heads << "x" << sizes.queries
         << "x" << sizes.keys << "x" << sizes.head_dim << " causal " << causal << " window "
         << window << " mask " << static_cast<int>(mask) << " length " << length;
    return text.str();
  }
  AttentionSpec spec(DType dtype) const {
    AttentionSpec s{.dtype = dtype, .causal = causal, .windowed = window > 0, .mask = mask};
    const auto axis = [](bool full, bool inner) {
      return !full ? MaskAxis::broadcast : inner ? MaskAxis::contiguous : MaskAxis::strided;
    };
    s.mask_queries = axis(mask_axes[2], mask_keys_outside);
    s.mask_keys = axis(mask_axes[3], !mask_keys_outside);
    if (length >= 0) {
      s.length = length_in_buffer ? AttentionLength::buffer : AttentionLength::param;
      s.save_lse = false;
    }
    return s;
  }
  std::int64_t queries_in_all() const { return sizes.batch * sizes.heads * sizes.queries; }
  std::int64_t keys_in_all() const { return sizes.batch * sizes.key_heads * sizes.keys; }
};

// Dense numbers of all tensors, in double (of the dtype's precision where they are inputs).
struct AttentionNumbers {
  std::vector<double> q, k, v, dout, mask;  // mask: of its own, smaller shape
  std::vector<double> out, lse, dots, dq, dk, dv;
};

inline std::array<std::int64_t, 4> mask_shape(const AttentionCase& c) {
  const std::int64_t full[] = {c.sizes.batch, c.sizes.heads, c.sizes.queries, c.sizes.keys};
  std::array<std::int64_t, 4> shape{};
  for (std::size_t i = 0; i < 4; ++i) shape[i] = c.mask_axes[i] ? full[i] : 1;
  return shape;
}

inline std::size_t mask_at(const AttentionCase& c, const std::array<std::int64_t, 4>& position) {
  const auto shape = mask_shape(c);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < 4; ++i) at = at * shape[i] + (c.mask_axes[i] ? position[i] : 0);
  return static_cast<std::size_t>(at);
}

// The mask in the order of its memory.
inline std::vector<double> stored_mask(const AttentionCase& c, const std::vector<double>& mask) {
  if (!c.mask_keys_outside) return mask;
  const auto shape = mask_shape(c);
  std::vector<double> turned;
  for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane)
    for (std::int64_t key = 0; key < shape[3]; ++key)
      for (std::int64_t query = 0; query < shape[2]; ++query)
        turned.push_back(
            mask[static_cast<std::size_t>((plane * shape[2] + query) * shape[3] + key)]);
  return turned;
}

inline AttentionNumbers draw_inputs(const AttentionCase& c, bool single) {
  std::mt19937 random(static_cast<unsigned>(c.sizes.queries * 131 + c.sizes.keys * 7 +
                                            c.sizes.head_dim + c.sizes.heads));
  std::normal_distribution<double> normal;
  const auto fill = [&](std::int64_t count, double spread) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& x : values) {
      x = spread * normal(random);
      if (single) x = static_cast<float>(x);
    }
    return values;
  };
  AttentionNumbers n;
  const std::int64_t d = c.sizes.head_dim;
  n.q = fill(c.queries_in_all() * d, c.spread), n.k = fill(c.keys_in_all() * d, c.spread);
  n.v = fill(c.keys_in_all() * d, 1), n.dout = fill(c.queries_in_all() * d, 1);
  const auto shape = mask_shape(c);
  n.mask = fill(shape[0] * shape[1] * shape[2] * shape[3], 1);
  for (double& m : n.mask)
    if (c.mask == AttentionMask::boolean)
      m = m > -0.4;
    else if (m < -1)
      m = -INFINITY;
  return n;
}

// The scores of one query: -inf where a key is not seen.
inline std::vector<double> plain_scores(const AttentionCase& c, const AttentionNumbers& n,
                                        std::int64_t batch, std::int64_t head, std::int64_t query) {
  const AttentionSizes& s = c.sizes;
  const std::int64_t key_head = head / (s.heads / s.key_heads),
                     valid = c.length < 0 ? s.keys : std::min(c.length, s.keys),
                     offset = c.length < 0 ? 0 : c.length - s.queries;
  std::vector<double> scores(static_cast<std::size_t>(s.keys), -INFINITY);
  for (std::int64_t key = 0; key < valid; ++key) {
    const std::int64_t distance = query + offset - key;
    if (c.causal && (distance < 0 || (c.window > 0 && distance >= c.window))) continue;
    const double* q =
        &n.q[static_cast<std::size_t>(((batch * s.heads + head) * s.queries + query) * s.head_dim)];
    const double* k = &n.k[static_cast<std::size_t>(
        ((batch * s.key_heads + key_head) * s.keys + key) * s.head_dim)];
    double score = c.scale * std::inner_product(q, q + s.head_dim, k, 0.0);
    if (c.mask != AttentionMask::none) {
      const double m = n.mask[mask_at(c, {batch, head, query, key})];
      score = c.mask == AttentionMask::additive ? score + m : m != 0 ? score : -INFINITY;
    }
    scores[static_cast<std::size_t>(key)] = score;
  }
  return scores;
}

// One query of the reference: its output, and what it gives to the gradients.
inline void plain_query(const AttentionCase& c, AttentionNumbers& n, std::int64_t batch,
                        std::int64_t head, std::int64_t query) {
  const AttentionSizes& s = c.sizes;
  const auto d = static_cast<std::size_t>(s.head_dim);
  const std::vector<double> scores = plain_scores(c, n, batch, head, query);
  const auto row = static_cast<std::size_t>((batch * s.heads + head) * s.queries + query);
  const auto key0 =
      static_cast<std::size_t>((batch * s.key_heads + head / (s.heads / s.key_heads)) * s.keys);
  const double largest = scores.empty() ? -INFINITY : *std::ranges::max_element(scores);
  if (largest == -INFINITY) return;
  double sum = 0;
  for (const double x : scores) sum += std::exp(x - largest);
  n.lse[row] = std::log(sum) + largest;
  std::vector<double> p;
  for (const double x : scores) p.push_back(std::exp(x - n.lse[row]));
  for (std::size_t key = 0; key < p.size(); ++key)
    for (std::size_t i = 0; i < d; ++i) n.out[row * d + i] += p[key] * n.v[(key0 + key) * d + i];
  for (std::size_t i = 0; i < d; ++i) n.dots[row] += n.dout[row * d + i] * n.out[row * d + i];
  for (std::size_t key = 0; key < p.size(); ++key) {
    double dp = 0;
    for (std::size_t i = 0; i < d; ++i) dp += n.dout[row * d + i] * n.v[(key0 + key) * d + i];
    const double ds = p[key] * (dp - n.dots[row]) * c.scale;
    for (std::size_t i = 0; i < d; ++i) {
      n.dq[row * d + i] += ds * n.k[(key0 + key) * d + i];
      n.dk[(key0 + key) * d + i] += ds * n.q[row * d + i];
      n.dv[(key0 + key) * d + i] += p[key] * n.dout[row * d + i];
    }
  }
}

inline AttentionNumbers plain_attention(const AttentionCase& c, bool single) {
  AttentionNumbers n = draw_inputs(c, single);
  n.out.assign(n.q.size(), 0), n.dq = n.out;
  n.dk.assign(n.k.size(), 0), n.dv = n.dk;
  n.lse.assign(static_cast<std::size_t>(c.queries_in_all()), -INFINITY);
  n.dots.assign(n.lse.size(), 0);
  for (std::int64_t batch = 0; batch < c.sizes.batch; ++batch)
    for (std::int64_t head = 0; head < c.sizes.heads; ++head)
      for (std::int64_t query = 0; query < c.sizes.queries; ++query)
        plain_query(c, n, batch, head, query);
  return n;
}

// --- memory

// A tensor of heads in memory with gaps.
struct Layout {
  std::int64_t batch = 0, heads = 0, positions = 0, head_dim = 0;
  HeadStrides strides;
  Layout(const AttentionCase& c, bool keys, std::int64_t gap)
      : batch(c.sizes.batch),
        heads(keys ? c.sizes.key_heads : c.sizes.heads),
        positions(keys ? c.sizes.keys : c.sizes.queries),
        head_dim(c.sizes.head_dim) {
    const std::int64_t row = head_dim + gap;
    strides = c.positions_outside
                  ? HeadStrides{positions * heads * row + 5, row, heads * row}
                  : HeadStrides{heads * (positions * row + 3), positions * row + 3, row};
  }
  std::int64_t elements() const {
    if (batch * heads * positions == 0) return 0;
    return (batch - 1) * strides.batch + (heads - 1) * strides.head +
           (positions - 1) * strides.position + head_dim;
  }
  // at(b, h, p, d) for every element, in the dense order.
  template <class F>
  void each(const F& f) const {
    std::size_t dense = 0;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t p = 0; p < positions; ++p)
          for (std::int64_t d = 0; d < head_dim; ++d)
            f(dense++, static_cast<std::size_t>(b * strides.batch + h * strides.head +
                                                p * strides.position + d));
  }
};

constexpr double kUntouched = -12345;

template <class T>
codegen::Array stored(DType dtype, const Layout& layout, const std::vector<double>& dense) {
  std::vector<T> memory(static_cast<std::size_t>(layout.elements()), static_cast<T>(kUntouched));
  if (!dense.empty())
    layout.each([&](std::size_t i, std::size_t at) { memory[at] = static_cast<T>(dense[i]); });
  return codegen::array_of(dtype, memory);
}

template <class T>
std::vector<T> contents(const codegen::Array& array) {
  std::vector<T> memory(array.bytes.size() / sizeof(T));
  if (!memory.empty()) std::memcpy(memory.data(), array.bytes.data(), array.bytes.size());
  return memory;
}

// The dense numbers of a tensor; its gaps must be as they were.
template <class T>
std::vector<double> dense(const codegen::Array& array, const Layout& layout) {
  std::vector<T> memory = contents<T>(array);
  std::vector<double> numbers(
      static_cast<std::size_t>(layout.batch * layout.heads * layout.positions * layout.head_dim));
  layout.each([&](std::size_t i, std::size_t at) {
    numbers[i] = memory[at];
    memory[at] = static_cast<T>(kUntouched);
  });
  for (const T x : memory) EXPECT_EQ(x, static_cast<T>(kUntouched)) << "a gap was written";
  return numbers;
}
template <class T>
std::vector<double> dense(const codegen::Array& array) {
  const std::vector<T> memory = contents<T>(array);
  return {memory.begin(), memory.end()};
}

}  // namespace pantala::schedule::cpu
