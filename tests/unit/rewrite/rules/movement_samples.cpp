#include <fmt/format.h>

#include "ops/face.h"
#include "pantala/ops.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::samples::movement_parts {

// The ops themselves: the library leaves out those that change nothing.
Tensor reshaped(const Tensor& x, const Shape& shape) {
  return ops::apply("reshape", {x}, {{"shape", shape.vec()}})[0];
}
Tensor permuted(const Tensor& x, const ir::Ints& axes) {
  return ops::apply("permute", {x}, {{"axes", axes}})[0];
}

constexpr const char* kHasType = "x has the type already";

// Some sizes of an axis each; of a few kinds of values.
Make over_sizes(int axes, const std::function<Tensor(const Tensor&)>& body) {
  return of([=](Graph& g, Random& r) {
    ir::Ints sizes;
    for (int k = 0; k < axes; ++k) sizes.push_back(any_size(r));
    return body(g.input("x", Shape(sizes), r.pick(std::vector<DType>{f32, f32, i64, boolean})));
  });
}

// The same with sizes of axes that are merged, which are larger than 1, and then others.
Make over_merged(int merged, int others, const std::function<Tensor(const Tensor&)>& body) {
  return of([=](Graph& g, Random& r) {
    ir::Ints sizes;
    for (int k = 0; k < merged; ++k) sizes.push_back(r.between(2, 5));
    for (int k = 0; k < others; ++k) sizes.push_back(any_size(r));
    return body(g.input("x", Shape(sizes)));
  });
}

Samples moves() {
  return {
      {"reshape-to-same",
       over_some([](Graph&, const Tensor& x) { return reshaped(x, x.shape()); })},
      {"reshape-to-same", over({6}, [](Graph&, const Tensor& x) { return reshape(x, {2, 3}); }),
       kHasType},
      {"reshape-of-reshape", over_sizes(3,
                                        [](const Tensor& x) {
                                          return reshape(reshaped(x, {x.numel()}),
                                                         {x.dim(2), x.dim(0), 1, x.dim(1)});
                                        })},
      {"permute-to-same", over_sizes(2, [](const Tensor& x) { return permuted(x, {0, 1}); })},
      {"permute-to-same", over({3, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); }),
       "axes keep their places"},
      {"permute-of-permute",
       over_sizes(3, [](const Tensor& x) { return permute(permute(x, {1, 2, 0}), {0, 2, 1}); })},
      {"permute-of-permute",
       over_sizes(4,
                  [](const Tensor& x) { return permute(permute(x, {3, 1, 0, 2}), {2, 0, 3, 1}); })},
      {"permute-of-ones",
       over({1, 5, 1, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 2, 0, 3}); })},
      {"permute-of-ones", over({1, 0}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); })},
      {"permute-of-ones", over({3, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); }),
       "axes longer than 1 keep their order"},
      {"permute-of-ones", over({2, 3}, [](Graph&, const Tensor& x) { return permute(x, {1, 0}); }),
       "axes longer than 1 keep their order"},
      {"broadcast-to-same",
       over_some([](Graph&, const Tensor& x) { return repeated(x, x.shape()); })},
      {"broadcast-to-same",
       over({3}, [](Graph&, const Tensor& x) { return broadcast_to(x, {2, 3}); }), kHasType},
      {"broadcast-of-broadcast", of([](Graph& g, Random& r) {
         const Tensor x = g.input("x", {some_size(r), 1});
         const std::int64_t columns = any_size(r);
         return repeated(repeated(x, {x.dim(0), columns}), {any_size(r), x.dim(0), columns});
       })},
  };
}

// --- permutations of axes that are merged or parted

Samples partings() {
  const char *merged = "permute-of-merged-axes", *parted = "reshape-of-permuted";
  return {
      {merged,
       over_merged(2, 2,
                   [](const Tensor& x) {
                     const std::int64_t a = x.dim(0), b = x.dim(1), c = x.dim(2), d = x.dim(3);
                     return reshape(permute(reshaped(x, {a * b, c, d}), {0, 2, 1}), {a, b, d, c});
                   })},
      {merged, over_merged(3, 0,
                           [](const Tensor& x) {
                             const std::int64_t a = x.dim(0), b = x.dim(1), c = x.dim(2);
                             return reshape(permute(reshaped(x, {a, b * c}), {1, 0}), {b, c, a});
                           })},
      {merged, over({3, 1, 4, 2},
                    [](Graph&, const Tensor& x) {
                      return reshape(permute(reshape(x, {3, 8}), {1, 0}), {1, 4, 2, 3});
                    })},
      {merged,
       over({4, 3},
            [](Graph&, const Tensor& x) {
              return reshape(permute(reshape(x, {2, 2, 3}), {1, 0, 2}), {4, 3});
            }),
       "axes are merged as a whole"},
      {merged,
       over({2, 3, 4},
            [](Graph&, const Tensor& x) {
              return reshape(permute(reshape(x, {6, 4}), {1, 0}), {4, 3, 2});
            }),
       "the result has them apart"},
      {parted, over_merged(4, 0,
                           [](const Tensor& x) {
                             const Shape s = x.shape();
                             const Tensor whole = reshaped(x, {s[0] * s[1], s[2] * s[3]});
                             return reshape(permute(whole, {1, 0}), {s[2], s[3], s[0], s[1]});
                           })},
      {parted, over({4, 3, 10},
                    [](Graph&, const Tensor& x) {
                      return reshape(permute(x, {1, 0, 2}), {1, 3, 2, 2, 1, 5, 2, 1});
                    })},
      {parted,
       over({2, 3, 4},
            [](Graph&, const Tensor& x) { return reshape(permute(x, {2, 0, 1}), {4, 2, 3, 1}); })},
      {parted,
       over({4, 3, 6},
            [](Graph&, const Tensor& x) { return reshape(permute(x, {1, 0, 2}), {12, 6}); }),
       "axes are parted"},
  };
}

// --- slices

// Of a concatenation of x, of four columns more and of two columns so many times.
Make slice_of_joined(std::int64_t start, std::int64_t end, int more) {
  return over({2, 3}, [=](Graph& g, const Tensor& x) {
    std::vector<Tensor> parts = {x, g.input("k", {2, 4})};
    for (int k = 0; k < more; ++k) parts.push_back(g.input(fmt::format("l{}", k), {2, 2}));
    return slice(concat(parts, 1), {0, start}, {2, end}, {1, 2});
  });
}

Tensor slice_twice(Graph& g, Random& r) {
  ir::Ints sizes, starts, ends, steps, inner;
  for (int k = 0; k < 2; ++k) {
    sizes.push_back(r.between(0, 12));
    starts.push_back(r.between(0, sizes.back()));
    ends.push_back(r.between(starts.back(), sizes.back()));
    steps.push_back(r.between(1, 3));
  }
  const Tensor once = ops::apply("slice", {g.input("x", Shape(sizes))},
                                 {{"starts", starts}, {"ends", ends}, {"steps", steps}})[0];
  ir::Ints second_starts, second_ends;
  for (const std::int64_t size : once.shape()) {
    second_starts.push_back(r.between(0, size));
    second_ends.push_back(r.between(second_starts.back(), size));
  }
  return ops::apply("slice", {once},
                    {{"starts", second_starts},
                     {"ends", second_ends},
                     {"steps", ir::Ints{r.between(1, 3), r.between(1, 3)}}})[0];
}

Samples slices() {
  const char *joined = "slice-of-concatenated", *one_part = "it lies in one part";
  return {
      {"slice-of-everything", over_sizes(2,
                                         [](const Tensor& x) {
                                           return ops::apply(
                                               "slice", {x},
                                               {{"starts", ir::Ints{0, 0}},
                                                {"ends", ir::Ints{x.dim(0), x.dim(1)}}})[0];
                                         })},
      {"slice-of-everything",
       over({3, 4}, [](Graph&, const Tensor& x) { return slice(x, {0, 0}, {3, 3}); }), kHasType},
      {"slice-of-slice", of(slice_twice)},
      {joined, slice_of_joined(0, 3, 0)},
      {joined, slice_of_joined(4, 7, 0)},
      {joined, slice_of_joined(4, 4, 0)},
      {joined, slice_of_joined(3, 6, 1)},
      {joined, slice_of_joined(7, 9, 4)},
      {joined, slice_of_joined(13, 15, 4)},
      {joined, slice_of_joined(2, 5, 0), one_part},
      {joined, slice_of_joined(5, 9, 1), one_part},
      {joined, slice_of_joined(12, 14, 4), one_part},
      {"concatenation-of-one", over_sizes(2,
                                          [](const Tensor& x) {
                                            return ops::apply("concat", {x},
                                                              {{"axis", std::int64_t{1}}})[0];
                                          })},
  };
}

Make taken(const std::function<Tensor(Graph&)>& index) {
  return over({3, 5}, [=](Graph& g, const Tensor& x) { return take(x, index(g), 1); });
}

Samples takes() {
  const char* rule = "take-of-number";
  const auto number = [](double value, const Shape& shape) {
    return [=](Graph& g) { return g.constant(value, shape, i64); };
  };
  return {{rule, taken(number(2, {}))},
          {rule, taken(number(0, {}))},
          {rule, taken([](Graph& g) { return g.input("i", {}, i64); }), "i is a number"},
          {rule, taken(number(2, {3})), "i is one index"},
          {rule, taken(number(5, {})), "i is in range"},
          {rule, taken(number(-1, {})), "i is in range"}};
}

Samples casts() {
  const auto there_and_back = [](DType by, DType to, DType from = f32) {
    return of([=](Graph& g, Random& r) {
      const Tensor x = g.input("x", some_shape(r), from);
      return ops::apply("cast", {cast(x, by)}, {{"dtype", to}})[0];
    });
  };
  const char *rule = "cast-there-and-back", *held = "the type between holds every number";
  return {
      {"cast-to-same", over_some([](Graph&, const Tensor& x) {
         return ops::apply("cast", {x}, {{"dtype", x.dtype()}})[0];
       })},
      {"cast-to-same", over_some([](Graph&, const Tensor& x) { return cast(x, i64); }), kHasType},
      {rule, there_and_back(f64, f32)},
      {rule, there_and_back(f32, f16, f16)},
      {rule, there_and_back(f32, bf16, bf16)},
      {rule, there_and_back(f64, i32, i32)},
      {rule, there_and_back(i64, u8, u8)},
      {rule, there_and_back(f16, boolean, boolean)},
      {rule, there_and_back(f64, i64), kHasType},
      {rule, there_and_back(boolean, f32), held},
      {rule, there_and_back(f16, f32), held},
      {rule, there_and_back(f16, bf16, bf16), held},
      {rule, there_and_back(f32, i32, i32), held},
      {rule, there_and_back(f64, i64, i64), held},
      {rule, there_and_back(u8, i32, i32), held}};
}

}  // namespace pantala::rewrite::samples::movement_parts

namespace pantala::rewrite::samples {

Samples movement_samples() {
  Samples all;
  for (const auto part : {movement_parts::moves, movement_parts::partings, movement_parts::slices,
                          movement_parts::takes, movement_parts::casts})
    for (Sample& sample : part()) all.push_back(std::move(sample));
  return all;
}

}  // namespace pantala::rewrite::samples
