// Rules that recognise attention. The core is softmax(q k^T + mask) v with its axes in any order;
// factors, heads that are repeated for groups of queries and masks that are constants then join
// it, one at a time.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/leaves.h"
#include "ops/arithmetic.h"
#include "ops/contract.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "pantala/ops.h"
#include "rewrite/rules/rules.h"

namespace pantala::rewrite {

namespace {

const Pattern q = any("q"), k = any("k"), v = any("v"), m = any("m"), c = any("c");

// So low that a score added to it is lost: such a key is not seen.
constexpr double kHidden = -1e30;

// --- the core

// A factor of a product: its axes, in the order batch, the one that stays, the one that is summed.
struct Factor {
  ir::Ints batch, free, summed;
  Factor(int rank, ir::Ints of_batch, ir::Ints of_sum)
      : batch(std::move(of_batch)), summed(std::move(of_sum)) {
    for (std::int64_t axis = 0; axis < rank; ++axis)
      if (std::ranges::count(batch, axis) + std::ranges::count(summed, axis) == 0)
        free.push_back(axis);
  }
  bool is_matrix() const { return free.size() == 1 && summed.size() == 1; }
};

struct Core {
  Factor q, k, weights, v;
  explicit Core(Fit& f)
      : Core(f, f.attributes<op::Contract>("scores"), f.attributes<op::Contract>("values")) {}

 private:
  Core(Fit& f, const op::Contract::Attrs& scores, const op::Contract::Attrs& values)
      : q(f.type("q").shape.rank(), scores.batch_a, scores.contract_a),
        k(f.type("k").shape.rank(), scores.batch_b, scores.contract_b),
        weights(f.type("scores").shape.rank(), values.batch_a, values.contract_a),
        v(f.type("v").shape.rank(), values.batch_b, values.contract_b) {}
};

bool is_attention(Fit& f) {
  const Core core(f);
  for (const Factor* factor : {&core.q, &core.k, &core.weights, &core.v})
    if (!factor->is_matrix()) return false;
  // The scores are [batch, queries, keys], with one or two axes for the batch.
  const std::size_t axes = core.q.batch.size();
  ir::Ints in_front(axes);
  std::iota(in_front.begin(), in_front.end(), 0);
  const auto keys = static_cast<std::int64_t>(axes) + 1;
  const auto size = [&](std::string_view name, const ir::Ints& axis) {
    return f.type(name).shape[static_cast<int>(axis[0])];
  };
  return (axes == 1 || axes == 2) && core.weights.batch == in_front &&
         core.weights.summed == ir::Ints{keys} &&
         f.attributes<op::Softmax>("softmax").axis == keys && size("q", core.q.summed) > 0 &&
         size("q", core.q.summed) == size("v", core.v.free);
}

Tensor in_order(const Tensor& x, const ir::Ints& batch, const ir::Ints& row,
                const ir::Ints& column) {
  IntList axes(batch.begin(), batch.end());
  axes.insert(axes.end(), row.begin(), row.end());
  axes.insert(axes.end(), column.begin(), column.end());
  return std::ranges::is_sorted(axes) ? x : permute(x, axes);
}

// [batch, heads, sequence, size], with one head where there is no axis for it.
Tensor with_heads(const Tensor& x) { return x.rank() == 3 ? unsqueeze(x, 1) : x; }

Tensor attention_of(Fit& f, const std::optional<Tensor>& mask) {
  const Core n(f);
  const Tensor out =
      attention(with_heads(in_order(f["q"], n.q.batch, n.q.free, n.q.summed)),
                with_heads(in_order(f["k"], n.k.batch, n.k.free, n.k.summed)),
                with_heads(in_order(f["v"], n.v.batch, n.v.summed, n.v.free)), {.scale = 1}, mask);
  return out.shape() == f.type().shape ? out : reshape(out, f.type().shape.vec());
}

// How scores are masked.
struct Masking {
  std::string suffix;
  Pattern scores;  // with the mask
  std::function<bool(Fit&)> when;
  std::function<std::optional<Tensor>(Fit&)> mask;
};

// A mask of the scores as one of [batch, heads, queries, keys].
std::optional<Tensor> mask_of(Fit& f, const Tensor& mask) {
  return f.type("scores").shape.rank() == 3 ? with_heads(mask) : mask;
}

// Whether every query sees a key.
bool shows_a_key(const Literal& mask) {
  if (mask.shape().rank() == 0 || mask.numel() == 0) return false;
  const std::int64_t keys = mask.shape().back();
  for (std::int64_t row = 0; row < mask.numel(); row += keys) {
    bool sees = false;
    for (std::int64_t key = 0; key < keys; ++key) sees = sees || mask.at(row + key) != 0;
    if (!sees) return false;
  }
  return true;
}

bool has_number(Fit& f, double least, double most) {
  return f.is_number("c") && f.number("c") >= least && f.number("c") <= most;
}

std::vector<Masking> maskings() {
  const Pattern scores = named<op::Contract>("scores", q, k);
  const auto m_itself = [](Fit& f) { return mask_of(f, f["m"]); };
  return {
      {"", scores, {}, [](Fit&) { return std::optional<Tensor>(); }},
      {"-masked", node<op::Add>(scores, m), {}, m_itself},
      {"-mask-first", node<op::Add>(m, scores), {}, m_itself},
      {"-chosen", node<op::Where>(m, scores, c),
       [](Fit& f) { return has_number(f, -INFINITY, -INFINITY); }, m_itself},
      // With a finite number a query that sees no key sees all of them alike, and attention none:
      // there must be no such query.
      {"-filled", node<op::Where>(node<op::BroadcastTo>(named<op::Data>("mask")), scores, c),
       [](Fit& f) {
         return has_number(f, -std::numeric_limits<double>::max(), kHidden) &&
                shows_a_key(*f.attributes<op::Data>("mask").values);
       },
       [](Fit& f) { return mask_of(f, f["mask"]); }},
  };
}

// The weights as they are, or zeros where they are no numbers, as for a query that sees no key.
std::vector<Rule> cores() {
  std::vector<Rule> rules;
  for (const bool guarded : {false, true})
    for (const Masking& masking : maskings()) {
      const Pattern shares = named<op::Softmax>("softmax", masking.scores);
      const Pattern weights =
          guarded ? node<op::Where>(node<op::Ne>(shares, shares), number(0), shares) : shares;
      rules.push_back(
          {.name = (guarded ? "guarded-attention" : "attention") + masking.suffix,
           .promise = Promise::real,
           .keeps_derivatives = true,
           .left = named<op::Contract>("values", weights, v),
           .when = [when = masking.when](Fit& f) { return is_attention(f) && (!when || when(f)); },
           .right = [mask = masking.mask](Fit& f) { return attention_of(f, mask(f)); }});
    }
  return rules;
}

// --- what joins it

// An attention over these operands, with a mask or without; and another one in its place.
struct Joining {
  std::string name;
  Pattern q, k;
  Pattern v;
  std::function<bool(Fit&)> when;
  std::function<double(Fit&)> factor;
};

Tensor attention_like(Fit& f, double factor, const std::optional<Tensor>& mask) {
  const op::AttentionAttrs a = f.attributes<op::Attention>("attention");
  return attention(f["q"], f["k"], f["v"],
                   {.causal = a.causal, .window = a.window, .scale = a.scale * factor}, mask);
}

void add(std::vector<Rule>& rules, const Joining& joining) {
  for (const bool masked : {false, true})
    rules.push_back(
        {.name = joining.name + (masked ? "-masked" : ""),
         .promise = Promise::real,
         .keeps_derivatives = true,
         .left = result(
             0, masked ? named<op::Attention>("attention", joining.q, joining.k, joining.v, m)
                       : named<op::Attention>("attention", joining.q, joining.k, joining.v)),
         .when = joining.when,
         .right = [masked, factor = joining.factor](Fit& f) {
           return attention_like(f, factor(f), masked ? std::optional(f["m"]) : std::nullopt);
         }});
}

bool has_positive_factor(Fit& f) {
  return f.is_number("c") && f.number("c") > 0 && std::isfinite(f.number("c"));
}
double the_factor(Fit& f) { return f.number("c"); }
double no_factor(Fit&) { return 1; }

// [batch, heads, sequence, size] repeated behind each head: by a new axis that is merged again.
Pattern repeated(const std::string& x) {
  return node<op::Reshape>(
      named<op::BroadcastTo>("repeated " + x, named<op::Reshape>("parted " + x, any(x))));
}
bool is_repeated(Fit& f, const std::string& x) {
  const Shape &from = f.type(x).shape, &parted = f.type("parted " + x).shape,
              &all = f.type("repeated " + x).shape, &to = f.type("q").shape;
  if (from.rank() != 4 || all.rank() != 5) return false;
  const Shape apart{from[0], from[1], 1, from[2], from[3]};
  return parted == apart && all == apart.with(2, all[2]) && to[1] == from[1] * all[2];
}
bool has_repeated_heads(Fit& f) { return is_repeated(f, "k") && is_repeated(f, "v"); }

bool has_one_head(Fit& f) {
  const Shape &one = f.type("k").shape, &all = f.type("q").shape;
  return one.rank() == 4 && one == f.type("v").shape && one[0] == all[0] && one[1] == 1;
}

std::vector<Rule> joined() {
  std::vector<Rule> rules;
  add(rules,
      {"attention-of-scaled-queries", node<op::Mul>(q, c), k, v, has_positive_factor, the_factor});
  add(rules,
      {"attention-of-scaled-keys", q, node<op::Mul>(k, c), v, has_positive_factor, the_factor});
  add(rules, {"attention-of-repeated-heads", q, repeated("k"), repeated("v"), has_repeated_heads,
              no_factor});
  add(rules, {"attention-of-one-head", q, node<op::BroadcastTo>(k), node<op::BroadcastTo>(v),
              has_one_head, no_factor});
  return rules;
}

// --- masks

// Whether query i sees exactly the keys up to i.
bool is_triangle(const Literal& mask) {
  const Shape& shape = mask.shape();
  if (shape.rank() < 2) return false;
  const std::int64_t queries = shape[shape.rank() - 2], keys = shape.back();
  const auto is_seen = [&](std::int64_t at) {
    return mask.is_float() ? mask.at(at) == 0 : mask.at(at) != 0;
  };
  const auto is_hidden = [&](std::int64_t at) {
    return mask.is_float() ? mask.at(at) <= kHidden : mask.at(at) == 0;
  };
  for (std::int64_t at = 0; at < mask.numel(); ++at) {
    const std::int64_t query = at / keys % queries, key = at % keys;
    if (key <= query ? !is_seen(at) : !is_hidden(at)) return false;
  }
  return queries > 1 && queries == keys;
}

Rule masked(std::string name, const Pattern& mask, std::function<bool(Fit&)> when,
            std::function<Tensor(Fit&)> right) {
  return canonical_rule(std::move(name), Promise::real,
                        result(0, named<op::Attention>("attention", q, k, v, mask)),
                        std::move(when), std::move(right));
}

bool shows_everything(Fit& f) {
  return f.is_number("m") && f.number("m") == (f.type("m").dtype == boolean ? 1 : 0);
}

Tensor causal(Fit& f) {
  const op::AttentionAttrs a = f.attributes<op::Attention>("attention");
  return attention(f["q"], f["k"], f["v"], {.causal = true, .window = a.window, .scale = a.scale});
}

std::vector<Rule> masks() {
  return {
      masked("mask-of-broadcast", node<op::BroadcastTo>(m), {},
             [](Fit& f) { return attention_like(f, 1, f["m"]); }),
      masked("mask-of-nothing", m, shows_everything,
             [](Fit& f) { return attention_like(f, 1, {}); }),
      masked(
          "mask-of-the-future", named<op::Data>("m"),
          [](Fit& f) { return is_triangle(*f.attributes<op::Data>("m").values); }, causal),
  };
}

}  // namespace

std::vector<Rule> attention_rules() {
  std::vector<Rule> all = cores();
  for (std::vector<Rule> part : {joined(), masks()})
    for (Rule& rule : part) all.push_back(std::move(rule));
  return all;
}

}  // namespace pantala::rewrite
