// What joins an attention: factors, heads that are shared, masks.
#include <limits>
#include <optional>

#include "ops/face.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::mask_parts {

struct Made {
  Tensor q, k, v;
};

// --- factors

struct Factor {
  double number = 0.25;  // NaN: an input
  double scale = 0.5;
};
Tensor times(Graph& g, const Tensor& x, const Factor& n) {
  return x * (std::isnan(n.number) ? beside(g, x, "c") : filled(g, n.number, x));
}
Made some_operands(Graph& g, Random& r) {
  const std::int64_t heads = r.between(1, 2), size = r.between(1, 3);
  const Shape keys{any_size(r), heads, any_size(r), size};
  return {g.input("x", {keys[0], heads * r.between(1, 2), any_size(r), size}), g.input("k", keys),
          g.input("v", keys)};
}
Made with_factor(Graph& g, Random& r, const Factor& n, bool of_keys) {
  Made made = some_operands(g, r);
  Tensor& scaled = of_keys ? made.k : made.q;
  scaled = times(g, scaled, n);
  return made;
}

// --- heads

Tensor reshaped(const Tensor& x, const Shape& shape) {
  return ops::apply("reshape", {x}, {{"shape", shape.vec()}})[0];
}
// How a tensor is repeated: by a new axis that is merged again.
struct Steps {
  Shape x, parted, repeated, merged;
};
Tensor by_steps(Graph& g, const char* name, const Steps& n) {
  return reshaped(repeated(reshaped(g.input(name, n.x), n.parted), n.repeated), n.merged);
}
Made repeated_heads(Graph& g, const Steps& k, const Steps& v) {
  return {g.input("x", k.merged.with(2, 3)), by_steps(g, "k", k), by_steps(g, "v", v)};
}
Steps behind_heads(const Shape& x, std::int64_t times) {
  return {x, x.insert(2, 1), x.insert(2, times), x.with(1, x[1] * times)};
}

// Each is written so that one condition alone refuses it.
std::vector<std::pair<std::string, std::pair<Steps, Steps>>> refused_heads() {
  const Steps usual = behind_heads({2, 2, 4, 3}, 2), one = behind_heads({2, 4, 4, 3}, 1);
  // The sequence is taken for the heads: [batch, sequence * 2, heads, size] comes out.
  const Steps turned{usual.x, {2, 4, 1, 2, 3}, {2, 4, 2, 2, 3}, {2, 8, 2, 3}};
  Steps beside_turned = usual, turned_beside = turned;
  beside_turned.merged = turned.merged;
  turned_beside.merged = usual.merged;
  // All of the batch is one.
  const Shape single{1, 2, 4, 3};
  const Steps batch{single, {1, 2, 1, 4, 3}, {2, 2, 2, 4, 3}, {2, 4, 4, 3}},
      beside_batch{single, {1, 2, 1, 4, 3}, {1, 2, 4, 4, 3}, {2, 4, 4, 3}};
  // A head has one element, which is repeated.
  const Steps narrow = behind_heads({2, 2, 4, 1}, 2),
              inside{narrow.x, narrow.parted, {2, 2, 1, 4, 2}, narrow.merged};
  Steps cut = usual;
  cut.merged = {2, 8, 2, 3};
  return {{"keys and values have one shape", {usual, one}},
          {"a new axis stands behind the heads", {turned, beside_turned}},
          {"the same for values", {usual, turned_beside}},
          {"along it they are repeated", {batch, beside_batch}},
          {"so are values", {narrow, inside}},
          {"it is merged with the heads", {cut, cut}}};
}

// For all heads of k and v, or as they are.
Made one_head(Graph& g, Random& r, const Shape& k, const Shape& v, const Shape& all) {
  return {g.input("x", {all[0], 2 * all[1], any_size(r), all[3]}), repeated(g.input("k", k), all),
          repeated(g.input("v", v), all)};
}

// --- both with a mask and without

Samples joined() {
  Samples all;
  for (const bool with_mask : {false, true}) {
    const auto add = [&](const std::string& rule, const std::string& refused_by,
                         const std::function<Made(Graph&, Random&)>& make, double scale = 0.5) {
      all.push_back({rule + (with_mask ? "-masked" : ""), of([=](Graph& g, Random& r) {
                       const Made n = make(g, r);
                       std::optional<Tensor> mask;
                       if (with_mask) mask = g.input("m", {n.q.dim(2), n.k.dim(2)});
                       return attention(n.q, n.k, n.v, {.scale = scale}, mask);
                     }),
                     refused_by, kRounding});
    };
    for (const bool of_keys : {false, true}) {
      const std::string rule = of_keys ? "attention-of-scaled-keys" : "attention-of-scaled-queries";
      const auto add_factor = [&](const Factor& n, const char* refused_by) {
        add(
            rule, refused_by, [=](Graph& g, Random& r) { return with_factor(g, r, n, of_keys); },
            n.scale);
      };
      const char* scale = "the scale stays a positive number";
      add_factor({}, "");
      add_factor({3, 0}, "");
      add_factor({NAN}, "c is a number");
      add_factor({-1}, scale);
      add_factor({0}, scale);
      add_factor({1e-200, 1e-200}, scale);
      add_factor({1e200, 1e200}, scale);
    }
    const char *heads = "attention-of-repeated-heads", *one = "attention-of-one-head";
    add(heads, "", [](Graph& g, Random& r) {
      const Steps n = behind_heads({any_size(r), r.between(1, 3), any_size(r), r.between(1, 3)},
                                   r.between(1, 3));
      return repeated_heads(g, n, n);
    });
    for (const auto& [condition, steps] : refused_heads())
      add(heads, condition, [steps = steps](Graph& g, Random&) {
        return repeated_heads(g, steps.first, steps.second);
      });
    add(one, "", [](Graph& g, Random& r) {
      const Shape k{any_size(r), 1, any_size(r), r.between(1, 3)};
      return one_head(g, r, k, k, k.with(1, r.between(1, 3)));
    });
    const auto refuse_head = [&](const Shape& k, const Shape& v, const char* refused_by) {
      add(one, refused_by, [=](Graph& g, Random& r) { return one_head(g, r, k, v, {2, 3, 4, 2}); });
    };
    refuse_head({2, 1, 4, 2}, {2, 3, 4, 2}, "keys and values have one shape");
    for (const Shape& k : std::vector<Shape>{{1, 1, 4, 2}, {2, 1, 4, 1}, {1, 4, 2}, {2, 3, 4, 1}})
      refuse_head(k, k, "only heads are repeated");
  }
  return all;
}

// --- masks

// Of two queries' heads for each of keys.
Make with_mask(const Shape& scores, const std::function<Tensor(Graph&, Random&)>& mask) {
  return of([=](Graph& g, Random& r) {
    const Shape keys{scores[0], 1, scores[3], 2};
    return attention(g.input("x", {scores[0], scores[1], scores[2], 2}), g.input("k", keys),
                     g.input("v", keys), {.scale = 0.5}, mask(g, r));
  });
}
Make with_triangle(std::int64_t queries, std::int64_t keys, double hidden, bool one_more = false) {
  return with_mask({2, 2, queries, keys}, [=](Graph& g, Random&) {
    Literal mask(Type{f32, {1, 1, queries, keys}});
    for (std::int64_t k = 0; k < mask.numel(); ++k)
      if (k % keys > k / keys + (one_more ? 1 : 0)) mask.f()[static_cast<std::size_t>(k)] = hidden;
    return g.constant(mask);
  });
}
Make with_number(double value, DType dtype) {
  return with_mask({2, 2, 3, 3},
                   [=](Graph& g, Random&) { return g.constant(value, {3, 3}, dtype); });
}

Samples masks() {
  const char *nothing = "mask-of-nothing", *future = "mask-of-the-future",
             *hides = "m hides nothing", *seen = "queries see keys up to themselves";
  const double low = std::numeric_limits<float>::lowest();
  const Shape scores{2, 2, 3, 4};
  return {
      {"mask-of-broadcast",
       with_mask(scores,
                 [=](Graph& g, Random& r) {
                   const Shape from =
                       r.pick(std::vector<Shape>{{}, {4}, {3, 1}, {1, 4}, {2, 1, 1}, {2, 1, 1, 4}});
                   return broadcast_to(g.input("m", from, r.chance(0.5) ? f32 : boolean), scores);
                 })},
      {nothing, with_number(0, f32)},
      {nothing, with_number(1, boolean)},
      {nothing, with_number(0, boolean), hides},
      {nothing, with_mask({2, 2, 3, 3}, [](Graph& g, Random&) { return g.input("m", {3, 3}); }),
       hides},
      {future, with_triangle(3, 3, -INFINITY)},
      {future, with_triangle(3, 3, low)},
      {future, with_triangle(1, 1, low)},
      {future, with_triangle(2, 4, low)},
      {future, with_triangle(4, 2, low)},
      {future, with_mask({2, 2, 3, 3},
                         [](Graph& g, Random&) {
                           return g.constant(
                               Literal::ints({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}, boolean));
                         })},
      {future,
       with_mask(
           {2, 2, 3, 3},
           [=](Graph& g, Random&) { return g.constant(Literal::floats({1, 3}, {0, low, low})); }),
       "every query and key has a number"},
      {future, with_triangle(3, 3, -5), seen},
      {future, with_triangle(3, 3, low, true), seen},
  };
}

}  // namespace pantala::rewrite::samples::mask_parts

namespace pantala::rewrite::samples {

Samples mask_samples() {
  Samples all = mask_parts::joined();
  for (Sample& sample : mask_parts::masks()) {
    sample.tolerance = kRounding;
    all.push_back(std::move(sample));
  }
  return all;
}

}  // namespace pantala::rewrite::samples
