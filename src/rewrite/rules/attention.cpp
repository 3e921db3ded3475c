// Rules that recognise attention. The core is softmax(q k^T + mask) v with its axes in any order;
// factors, heads that are repeated for groups of queries and masks that are constants then join
// it, one at a time.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

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

// The axis of the keys in scores that are [batch, queries, keys].
std::int64_t key_axis(const Core& core) { return std::ssize(core.q.batch) + 1; }

bool is_of_matrices(Fit& f) {
  const Core core(f);
  return core.q.is_matrix() && core.k.is_matrix() && core.weights.is_matrix() && core.v.is_matrix();
}
bool has_batch(Fit& f) {
  const Core core(f);
  return core.q.batch.size() == 1 || core.q.batch.size() == 2;
}
bool keeps_batch(Fit& f) {
  const Core core(f);
  ir::Ints in_front(core.q.batch.size());
  std::iota(in_front.begin(), in_front.end(), 0);
  return core.weights.batch == in_front;
}
bool sums_over_keys(Fit& f) {
  const Core core(f);
  return core.weights.summed == ir::Ints{key_axis(core)};
}
bool shares_among_keys(Fit& f) {
  return f.attributes<op::Softmax>("softmax").axis == key_axis(Core(f));
}
std::int64_t elements_of(Fit& f, std::string_view name, const ir::Ints& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= f.type(name).shape[static_cast<int>(axis)];
  return count;
}
bool heads_have_elements(Fit& f) { return elements_of(f, "q", Core(f).q.summed) > 0; }
bool values_are_as_wide(Fit& f) {
  const Core core(f);
  return elements_of(f, "q", core.q.summed) == elements_of(f, "v", core.v.free);
}
bool has_heads(Fit& f) {
  const ir::Ints batch = Core(f).q.batch;
  return batch.size() < 2 || f.type("q").shape[static_cast<int>(batch[1])] > 0;
}
const std::vector<Condition>& is_attention() {
  static const std::vector<Condition> all = {{"products are of matrices", is_of_matrices},
                                             {"one or two axes for the batch", has_batch},
                                             {"the batch stays in front", keeps_batch},
                                             {"weights are summed over keys", sums_over_keys},
                                             {"softmax is over keys", shares_among_keys},
                                             {"heads have elements", heads_have_elements},
                                             {"values are as wide as keys", values_are_as_wide},
                                             {"there are heads", has_heads}};
  return all;
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
  std::vector<Condition> when;
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

bool hides_with_infinity(Fit& f) { return f.is_number("c") && f.number("c") == -INFINITY; }
bool hides_with_low_number(Fit& f) { return f.is_number("c") && f.number("c") <= kHidden; }
bool shows_keys(Fit& f) { return shows_a_key(*f.attributes<op::Data>("mask").values); }

std::vector<Masking> maskings() {
  const Pattern scores = named<op::Contract>("scores", q, k);
  const auto m_itself = [](Fit& f) { return mask_of(f, f["m"]); };
  return {
      {"", scores, {}, [](Fit&) { return std::optional<Tensor>(); }},
      {"-masked", node<op::Add>(scores, m), {}, m_itself},
      {"-mask-first", node<op::Add>(m, scores), {}, m_itself},
      {"-chosen",
       node<op::Where>(m, scores, c),
       {{"c is minus infinity", hides_with_infinity}},
       m_itself},
      // With a finite number a query that sees no key sees all of them alike, and attention none:
      // there must be no such query.
      {"-filled",
       node<op::Where>(node<op::BroadcastTo>(named<op::Data>("mask")), scores, c),
       {{"c hides", hides_with_low_number}, {"every query sees a key", shows_keys}},
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
      std::vector<Condition> when = is_attention();
      when.insert(when.end(), masking.when.begin(), masking.when.end());
      rules.push_back(
          canonical_rule((guarded ? "guarded-attention" : "attention") + masking.suffix,
                         Promise::real, named<op::Contract>("values", weights, v), std::move(when),
                         [mask = masking.mask](Fit& f) { return attention_of(f, mask(f)); }));
    }
  return rules;
}

// --- what joins it

// An attention over these operands, with a mask or without; and another one in its place.
struct Joining {
  std::string name;
  Pattern q, k;
  Pattern v;
  std::vector<Condition> when;
  std::function<double(Fit&)> factor;
};

Tensor attention_like(Fit& f, double factor, const std::optional<Tensor>& mask) {
  const op::AttentionAttrs a = f.attributes<op::Attention>("attention");
  return attention(f["q"], f["k"], f["v"],
                   {.causal = a.causal, .window = a.window, .scale = a.scale * factor}, mask);
}

void add(std::vector<Rule>& rules, const Joining& joining) {
  for (const bool masked : {false, true})
    rules.push_back(canonical_rule(
        joining.name + (masked ? "-masked" : ""), Promise::real,
        result(0, masked ? named<op::Attention>("attention", joining.q, joining.k, joining.v, m)
                         : named<op::Attention>("attention", joining.q, joining.k, joining.v)),
        joining.when, [masked, factor = joining.factor](Fit& f) {
          return attention_like(f, factor(f), masked ? std::optional(f["m"]) : std::nullopt);
        }));
}

// A scale of 0 would stand for the usual one.
bool keeps_a_scale(Fit& f) {
  const double scale = f.attributes<op::Attention>("attention").scale;
  return !f.is_number("c") || (f.number("c") > 0 && std::isnormal(scale * f.number("c")));
}
std::vector<Condition> has_factor() {
  return {is_number("c"), {"the scale stays a positive number", keeps_a_scale}};
}
double the_factor(Fit& f) { return f.number("c"); }
double no_factor(Fit&) { return 1; }

// [batch, heads, sequence, size] repeated behind each head: by a new axis that is merged again.
Pattern repeated(const std::string& x) {
  return named<op::Reshape>(
      "all " + x,
      named<op::BroadcastTo>("repeated " + x, named<op::Reshape>("parted " + x, any(x))));
}
bool is_parted(Fit& f, const std::string& x) {
  const Shape& from = f.type(x).shape;
  return from.rank() == 4 && f.type("parted " + x).shape == from.insert(2, 1);
}
bool is_repeated_there(Fit& f, const std::string& x) {
  const Shape &parted = f.type("parted " + x).shape, &repeated = f.type("repeated " + x).shape;
  return parted.rank() < 3 || repeated.rank() < 3 || repeated == parted.with(2, repeated[2]);
}
bool is_merged_again(Fit& f) {
  const Shape &repeated = f.type("repeated k").shape, &all = f.type("all k").shape;
  return repeated.rank() < 3 || all == repeated.with(1, repeated[1] * repeated[2]).without(2);
}
const Condition has_equal_keys_and_values = {"keys and values have one shape", [](Fit& f) {
                                               return f.type("k").shape == f.type("v").shape;
                                             }};
// Attention has it that what comes of both has one shape, too.
std::vector<Condition> has_repeated_heads() {
  return {has_equal_keys_and_values,
          {"a new axis stands behind the heads", [](Fit& f) { return is_parted(f, "k"); }},
          {"the same for values", [](Fit& f) { return is_parted(f, "v"); }},
          {"along it they are repeated", [](Fit& f) { return is_repeated_there(f, "k"); }},
          {"so are values", [](Fit& f) { return is_repeated_there(f, "v"); }},
          {"it is merged with the heads", is_merged_again}};
}

// [batch, 1, sequence, size] repeated for all heads of keys.
bool has_one_head(Fit& f) {
  const Shape& one = f.type("k").shape;
  return one.rank() == 4 && one == f.type("all k").shape.with(1, 1);
}

std::vector<Rule> joined() {
  std::vector<Rule> rules;
  add(rules, {"attention-of-scaled-queries", node<op::Mul>(q, c), k, v, has_factor(), the_factor});
  add(rules, {"attention-of-scaled-keys", q, node<op::Mul>(k, c), v, has_factor(), the_factor});
  add(rules, {"attention-of-repeated-heads", q, repeated("k"), repeated("v"), has_repeated_heads(),
              no_factor});
  add(rules, {"attention-of-one-head",
              q,
              named<op::BroadcastTo>("all k", k),
              node<op::BroadcastTo>(v),
              {has_equal_keys_and_values, {"only heads are repeated", has_one_head}},
              no_factor});
  return rules;
}

// --- masks

// Whether the mask has every query and key by itself.
bool is_spelled_out(Fit& f) {
  const Shape &mask = f.type("m").shape, &scores = f.type("q").shape;
  const int rank = mask.rank();
  return rank >= 2 && mask[rank - 2] == scores[2] && mask[rank - 1] == f.type("k").shape[2];
}

// Whether query i sees exactly the keys up to i.
bool is_triangle(const Literal& mask) {
  const Shape& shape = mask.shape();
  const std::int64_t queries = shape.rank() < 2 ? 1 : shape[shape.rank() - 2],
                     keys = shape.rank() == 0 ? 1 : shape.back();
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
  return true;
}
bool shows_up_to_itself(Fit& f) { return is_triangle(*f.attributes<op::Data>("m").values); }

Rule masked(std::string name, const Pattern& mask, std::vector<Condition> when,
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
      masked("mask-of-nothing", m, {{"m hides nothing", shows_everything}},
             [](Fit& f) { return attention_like(f, 1, {}); }),
      masked("mask-of-the-future", named<op::Data>("m"),
             {{"every query and key has a number", is_spelled_out},
              {"queries see keys up to themselves", shows_up_to_itself}},
             causal),
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
