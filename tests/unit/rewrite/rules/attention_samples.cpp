// Attention that is written out.
#include <limits>
#include <optional>

#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::attention_parts {

// --- masks of scores

struct Masking {
  std::string how;  // what a rule's name ends with
  bool guarded = false;
  double hidden = std::numeric_limits<float>::lowest();  // of "-filled"
  bool blind = false;                                    // "-filled": the first query sees no key
};

// Which keys are seen, for each query or for all of them. A query that sees nothing is a NaN,
// unless it is guarded.
Tensor shown(Graph& g, const Tensor& scores, bool guarded) {
  const Tensor given = g.input("m", scores.shape(), boolean);
  return guarded ? given : logical_or(given, eq(iota_beside(scores, scores.shape(), -1), 0));
}
Tensor every_other(Graph& g, Random& r, const Tensor& scores, const Masking& n) {
  const std::int64_t queries = scores.dim(-2), keys = scores.dim(-1);
  const bool for_all = !n.blind && r.chance(0.5);
  Literal sees(Type{boolean, for_all ? Shape{keys} : Shape{1, queries, keys}});
  for (std::int64_t k = 0; k < sees.numel(); ++k)
    sees.i()[static_cast<std::size_t>(k)] = !(n.blind && k < keys) && k % keys % 2 == 0;
  return repeated(g.constant(sees), scores.shape());
}
Tensor masked(Graph& g, Random& r, const Tensor& scores, const Masking& n) {
  if (n.how == "-masked") return scores + beside(g, scores, "m");
  if (n.how == "-mask-first") return beside(g, scores, "m") + scores;
  if (n.how == "-chosen")
    return where(shown(g, scores, n.guarded), scores,
                 filled(g, n.hidden == -5 ? -5 : -INFINITY, scores));
  if (n.how == "-filled")
    return where(every_other(g, r, scores, n), scores, filled(g, n.hidden, scores));
  return scores;
}
Tensor weights_of(const Tensor& scores, std::int64_t axis, bool guarded) {
  const Tensor p = softmax(scores, axis);
  return guarded ? where(ne(p, p), 0, p) : p;
}

// --- the core

// Sizes and axes of softmax(q k^T) v, [batch, heads, sequence, size].
struct Sizes {
  std::int64_t batch, heads, queries, keys, size;
};
Sizes some_sizes(Random& r) {
  return {any_size(r), r.between(1, 3), some_size(r), r.between(2, 5), r.between(1, 4)};
}
struct Written {
  Shape q, k, v;
  ir::Ints batch = {0, 1}, inner = {3};  // of the scores
  ir::Ints value_batch = {0, 1};         // of weights and values
  std::int64_t softmax = 3, weights = 3, values = 2;
};
Written written(const Sizes& n) {
  return {{n.batch, n.heads, n.queries, n.size},
          {n.batch, n.heads, n.keys, n.size},
          {n.batch, n.heads, n.keys, n.size}};
}
Tensor core(Graph& g, Random& r, const Written& n, const Masking& masking) {
  const Tensor scores = contract(
      g.input("x", n.q), g.input("k", n.k),
      {.batch_a = n.batch, .batch_b = n.batch, .contract_a = n.inner, .contract_b = n.inner});
  const Tensor p = weights_of(masked(g, r, scores, masking), n.softmax, masking.guarded);
  return contract(p, g.input("v", n.v),
                  {.batch_a = n.value_batch,
                   .batch_b = n.value_batch,
                   .contract_a = {n.weights},
                   .contract_b = {n.values}});
}

// Each is written so that one condition alone refuses it.
std::vector<std::pair<std::string, Written>> refused_cores() {
  const Sizes n{2, 2, 3, 3, 2};
  Written matrices = written(n), batch = written(n), front = written(n), sums = written(n),
          softmax = written(n), empty = written({2, 2, 3, 3, 0}), wide = written(n),
          heads = written({2, 0, 3, 3, 2});
  matrices.q = matrices.k = {2, 2, 3, 2, 2};
  matrices.v = {2, 2, 3, 4};
  matrices.inner = {3, 4};
  batch.q = batch.k = batch.v = {2, 2, 2, 3, 2};
  batch.batch = batch.value_batch = {0, 1, 2};
  batch.inner = {4};
  batch.softmax = batch.weights = 4;
  batch.values = 3;
  front.value_batch = {1, 0};
  sums.weights = 2;
  softmax.softmax = 2;
  wide.v = wide.v.with(3, 3);
  return {{"products are of matrices", matrices}, {"one or two axes for the batch", batch},
          {"the batch stays in front", front},    {"weights are summed over keys", sums},
          {"softmax is over keys", softmax},      {"heads have elements", empty},
          {"values are as wide as keys", wide},   {"there are heads", heads}};
}

// Sequence first, and keys that are turned already.
Tensor sequence_first(Graph& g, Random& r, const Masking& masking) {
  const Sizes n = some_sizes(r);
  const Tensor q = g.input("x", {n.batch, n.queries, n.heads, n.size}),
               k = g.input("k", {n.batch, n.size, n.keys, n.heads}),
               v = g.input("v", {n.keys, n.batch, n.heads, n.size});
  const Tensor scores =
      contract(q, k, {.batch_a = {0, 2}, .batch_b = {0, 3}, .contract_a = {3}, .contract_b = {1}});
  return contract(weights_of(masked(g, r, scores, masking), 3, masking.guarded), v,
                  {.batch_a = {0, 1}, .batch_b = {1, 2}, .contract_a = {3}, .contract_b = {0}});
}
Tensor without_heads(Graph& g, Random& r, const Masking& masking) {
  const Sizes n = some_sizes(r);
  const Tensor scores = matmul(g.input("x", {n.batch, n.queries, n.size}),
                               g.input("k", {n.batch, n.keys, n.size}), {.transpose_b = true});
  return matmul(weights_of(masked(g, r, scores, masking), 2, masking.guarded),
                g.input("v", {n.batch, n.keys, n.size}));
}

Samples cores() {
  Samples all;
  for (const bool guarded : {false, true})
    for (const std::string how : {"", "-masked", "-mask-first", "-chosen", "-filled"}) {
      const Masking masking{how, guarded};
      const auto add = [&](const Body& body, const std::string& refused_by = "") {
        all.push_back(
            {(guarded ? "guarded-attention" : "attention") + how, of(body), refused_by, kRounding});
      };
      const auto add_core = [&](const Written& n, const Masking& mask, const std::string& by) {
        add([=](Graph& g, Random& r) { return core(g, r, n, mask); }, by);
      };
      add([=](Graph& g, Random& r) { return core(g, r, written(some_sizes(r)), masking); });
      add([=](Graph& g, Random& r) { return sequence_first(g, r, masking); });
      add([=](Graph& g, Random& r) { return without_heads(g, r, masking); });
      for (const auto& [condition, n] : refused_cores()) add_core(n, masking, condition);
      const Written plain = written({2, 2, 3, 4, 2});
      if (how == "-chosen") add_core(plain, {how, guarded, -5}, "c is minus infinity");
      if (how == "-filled") add_core(plain, {how, guarded, -5}, "c hides");
      if (how == "-filled")
        add_core(plain, {how, guarded, std::numeric_limits<float>::lowest(), true},
                 "every query sees a key");
    }
  return all;
}

}  // namespace pantala::rewrite::samples::attention_parts

namespace pantala::rewrite::samples {

Samples attention_samples() { return attention_parts::cores(); }

}  // namespace pantala::rewrite::samples
