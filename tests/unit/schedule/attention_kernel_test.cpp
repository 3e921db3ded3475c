// The kernels of attention against a plain loop in double and against the op's own meaning: every
// option, odd sizes, grouped heads, memory with gaps; interpreted (bounds, races) and as machine
// code with equal bits; the same bits for every tiling and split of the items.
#include <memory>

#include "kir/simplify.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/numbers.h"
#include "unit/schedule/attention_case.h"

namespace pantala::schedule::cpu::attention_kernel_test {
namespace {

using codegen::Array;

// In an order in which they can run; the gradients come last from the kernel that makes them all.
constexpr AttentionPart kParts[] = {AttentionPart::forward, AttentionPart::row_dots,
                                    AttentionPart::query_grad, AttentionPart::key_grad,
                                    AttentionPart::all_grads};

Target target_of(const codegen::HostTarget& host) {
  return {.vector_bytes = host.vector_bytes, .vector_registers = host.vector_registers};
}

// Kernels that are the same code are compiled once.
kir::Kernel named_by_code(kir::Kernel kernel) {
  kernel.name = "attention" + std::to_string(kir::hash_code(kernel));
  return kernel;
}

// The memory of a case and what its kernels have made so far.
template <class T>
class Memory {
 public:
  static constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;
  explicit Memory(const AttentionCase& c)
      : c_(c), want(plain_attention(c, sizeof(T) == 4)), queries(c, false, 2), keys(c, true, 1) {
    q = stored<T>(kType, queries, want.q), dout = stored<T>(kType, queries, want.dout);
    k = stored<T>(kType, keys, want.k), v = stored<T>(kType, keys, want.v);
    out = stored<T>(kType, queries, {}), dq = out;
    dk = stored<T>(kType, keys, {}), dv = dk;
    lse = codegen::zeros(kType, c.queries_in_all()), dots = lse;
    length = codegen::array_of(DType::i64, std::vector<std::int64_t>{c.length});
    const std::vector<double> numbers = stored_mask(c, want.mask);
    if (c.mask == AttentionMask::boolean)
      mask = codegen::array_of(DType::boolean, std::vector<char>(numbers.begin(), numbers.end()));
    else
      mask = codegen::array_of(kType, std::vector<T>(numbers.begin(), numbers.end()));
  }

  std::vector<Array*> buffers(AttentionPart part) {
    const auto with_mask = [&](std::vector<Array*> list) {
      if (c_.mask != AttentionMask::none) list.push_back(&mask);
      return list;
    };
    if (part == AttentionPart::row_dots) return {&dout, &out, &dots};
    if (part == AttentionPart::forward) {
      std::vector<Array*> list = with_mask({&q, &k, &v});
      if (c_.length >= 0 && c_.length_in_buffer) list.push_back(&length);
      list.push_back(&out);
      if (c_.length < 0) list.push_back(&lse);
      return list;
    }
    std::vector<Array*> list = with_mask({&dout, &q, &k, &v, &lse, &dots});
    if (part != AttentionPart::key_grad) list.push_back(&dq);
    if (part == AttentionPart::query_grad) return list;
    list.push_back(&dk);
    list.push_back(&dv);
    return list;
  }

  std::vector<ir::Number> params(AttentionPart part, const AttentionTiling& t) const {
    AttentionStrides strides = AttentionStrides::dense(c_.sizes);
    strides.q = strides.out = strides.dout = strides.dq = queries.strides;
    strides.k = strides.v = strides.dk = strides.dv = keys.strides;
    const auto shape = mask_shape(c_);
    strides.mask_key = !c_.mask_axes[3] ? 0 : c_.mask_keys_outside ? shape[2] : 1;
    strides.mask_query = !c_.mask_axes[2] ? 0 : c_.mask_keys_outside ? 1 : shape[3];
    strides.mask_head = c_.mask_axes[1] ? shape[2] * shape[3] : 0;
    strides.mask_batch = c_.mask_axes[0] ? shape[1] * shape[2] * shape[3] : 0;
    std::vector<ir::Number> list;
    for (const std::int64_t p :
         attention_params(part, c_.spec(kType), c_.sizes, strides, c_.window, t))
      list.push_back(ir::Number::of(p));
    if (part != AttentionPart::row_dots) list.emplace_back(c_.scale);
    if (part == AttentionPart::forward && c_.length >= 0 && !c_.length_in_buffer)
      list.push_back(ir::Number::of(c_.length));
    return list;
  }

  // The memory of a kernel before it runs.
  std::vector<Array> fresh(AttentionPart part, const kir::Kernel& kernel) {
    std::vector<Array> arrays;
    for (const Array* a : buffers(part)) {
      const kir::Buffer& buffer = kernel.buffers[arrays.size()];
      if (buffer.access == kir::Access::read)
        arrays.push_back(*a);
      else if (buffer.name == "lse" || buffer.name == "dots")
        arrays.push_back(codegen::zeros(kType, a->elements()));
      else
        arrays.push_back(
            stored<T>(kType, buffer.name == "dk" || buffer.name == "dv" ? keys : queries, {}));
    }
    return arrays;
  }

  // Interpreted and as machine code, with equal bits; keeps the results.
  void run(AttentionPart part, const AttentionTiling& t, const codegen::HostTarget& host) {
    const AttentionSpec spec = c_.spec(kType);
    ASSERT_EQ(broken_rule(part, spec, c_.sizes, t), "");
    const kir::Kernel kernel = named_by_code(build_attention("", part, spec, t));
    const std::vector<Array> arrays = fresh(part, kernel);
    const std::vector<Array> results = codegen::expect_same(
        kernel, arrays, params(part, t), attention_items(part, c_.sizes, t), host);
    for (std::size_t i = 0; i < results.size(); ++i) *buffers(part)[i] = results[i];
  }

  // Machine code with the items in two stretches, the later one first: the bits must be those of
  // the results kept.
  void expect_same_bits(AttentionPart part, const AttentionTiling& t,
                        const codegen::HostTarget& host) {
    const AttentionSpec spec = c_.spec(kType);
    ASSERT_EQ(broken_rule(part, spec, c_.sizes, t), "");
    const kir::Kernel kernel = named_by_code(kir::simplify(build_attention("", part, spec, t)));
    codegen::CodeLibrary& library = codegen::shared_library(host);
    library.add({&kernel, 1});
    std::vector<Array> arrays = fresh(part, kernel);
    std::vector<void*> pointers;
    for (Array& a : arrays) pointers.push_back(a.bytes.data());
    std::vector<std::int64_t> slots;
    const std::vector<ir::Number> numbers = params(part, t);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      slots.push_back(codegen::param_slot(kernel.params[i].dtype, numbers[i]));
    codegen::GuardedMemory scratch(static_cast<std::size_t>(kernel.scratch_bytes()));
    std::memset(scratch.data(), 0xFF, static_cast<std::size_t>(kernel.scratch_bytes()));  // NaN
    const std::int64_t items = attention_items(part, c_.sizes, t), cut = items / 3;
    const codegen::KernelFn compiled = library.find(kernel.name);
    compiled(pointers.data(), slots.data(), cut, items, scratch.data(), nullptr);
    compiled(pointers.data(), slots.data(), 0, cut, scratch.data(), nullptr);
    for (std::size_t i = 0; i < arrays.size(); ++i)
      EXPECT_EQ(arrays[i].bytes == buffers(part)[i]->bytes, true)
          << c_.str() << ": " << kernel.buffers[i].name << " has other bits with " << t.lanes
          << " x " << t.vectors << " lanes, rows " << t.rows << ", dims " << t.dims << ", block "
          << t.block;
  }

  void expect_near_reference(double tolerance) {
    const auto near = [&](const std::vector<double>& got, const std::vector<double>& expected,
                          const char* what) {
      ASSERT_EQ(got.size(), expected.size());
      double size = 1;
      for (const double x : expected)
        if (std::isfinite(x)) size = std::max(size, std::fabs(x));
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i] == expected[i]) continue;
        ASSERT_NEAR(got[i], expected[i], tolerance * size)
            << c_.str() << ": " << what << "[" << i << "]";
      }
    };
    near(dense<T>(out, queries), want.out, "out");
    if (c_.length >= 0) return;
    near(dense<T>(lse), want.lse, "lse");
    near(dense<T>(dots), want.dots, "dots");
    near(dense<T>(dq, queries), want.dq, "dq");
    near(dense<T>(dk, keys), want.dk, "dk");
    near(dense<T>(dv, keys), want.dv, "dv");
  }

 private:
  AttentionCase c_;

 public:
  AttentionNumbers want;
  Layout queries, keys;
  Array q, k, v, out, dout, dq, dk, dv, lse, dots, mask, length;
};

AttentionTiling small_tiling(const AttentionCase& c, int lanes, int vectors, int rows, int dims,
                             int panels) {
  return {.lanes = lanes,
          .vectors = vectors,
          .rows = rows,
          .dims = dims,
          .whole_dims = dims == 1,
          .head_dim = std::max<std::int64_t>(c.sizes.head_dim, 8),
          .copy_rows = panels > 1,
          .block = panels * lanes * vectors};
}

template <class T>
void check(const AttentionCase& c, double tolerance) {
  SCOPED_TRACE(c.str());
  const codegen::HostTarget host = codegen::detect_host();
  Memory<T> memory(c);
  for (const AttentionPart part : kParts) {
    if (c.length >= 0 && part != AttentionPart::forward) continue;
    // What the other two have made before it is what all_grads must make.
    if (part == AttentionPart::all_grads) {
      ASSERT_NO_FATAL_FAILURE(memory.expect_same_bits(part, small_tiling(c, 4, 1, 4, 2, 2), host));
    }
    ASSERT_NO_FATAL_FAILURE(memory.run(part, small_tiling(c, 4, 2, 3, 2, 2), host));
    if (part == AttentionPart::row_dots) continue;
    const AttentionTiling other =
        sizeof(T) == 8 ? small_tiling(c, 2, 1, 5, 3, 1)
                       : choose_tiling(part, c.spec(DType::f32), c.sizes, target_of(host), 3);
    ASSERT_NO_FATAL_FAILURE(memory.expect_same_bits(part, other, host));
  }
  memory.expect_near_reference(tolerance);
}

std::vector<AttentionCase> cases() {
  return {
      {.sizes = {1, 1, 1, 1, 1, 1}},
      {.sizes = {1, 2, 2, 7, 5, 3}},
      {.sizes = {2, 4, 2, 19, 23, 5}, .positions_outside = true},
      {.sizes = {1, 2, 1, 11, 195, 4}},
      {.sizes = {1, 1, 1, 100, 9, 8}},
      {.sizes = {1, 3, 1, 33, 33, 7}, .causal = true},
      {.sizes = {1, 1, 1, 50, 130, 3}, .causal = true},
      {.sizes = {1, 1, 1, 110, 60, 3}, .causal = true, .positions_outside = true},
      {.sizes = {2, 2, 1, 50, 50, 6}, .causal = true, .window = 5},
      {.sizes = {1, 1, 1, 140, 140, 2}, .causal = true, .window = 20},
      {.sizes = {1, 2, 2, 40, 11, 2}, .causal = true, .window = 3},  // queries that see no key
      {.sizes = {2, 2, 1, 9, 13, 5}, .mask = AttentionMask::additive},
      {.sizes = {2, 2, 2, 9, 13, 5},
       .mask = AttentionMask::additive,
       .mask_axes = {false, false, false, true}},
      {.sizes = {2, 4, 2, 10, 9, 3},
       .causal = true,
       .mask = AttentionMask::additive,
       .mask_axes = {true, true, true, false}},
      {.sizes = {1, 2, 1, 17, 101, 3}, .mask = AttentionMask::boolean},
      {.sizes = {2, 2, 2, 14, 12, 3},
       .causal = true,
       .window = 4,
       .mask = AttentionMask::boolean,
       .mask_axes = {true, false, true, true}},
      {.sizes = {2, 2, 1, 14, 12, 3},
       .mask = AttentionMask::boolean,
       .mask_axes = {true, false, false, true}},
      {.sizes = {2, 2, 1, 14, 11, 3}, .mask = AttentionMask::additive, .mask_keys_outside = true},
      {.sizes = {1, 2, 1, 11, 14, 3}, .mask = AttentionMask::boolean, .mask_keys_outside = true},
      {.sizes = {1, 2, 1, 0, 5, 3}},
      {.sizes = {1, 2, 1, 5, 0, 3}},
      {.sizes = {0, 2, 1, 5, 4, 3}},
      {.sizes = {1, 1, 1, 5, 6, 4}, .scale = 1, .spread = 30},  // scores in the hundreds
  };
}

TEST(AttentionKernel, is_the_plain_loop_with_any_option) {
  for (const AttentionCase& c : cases()) check<float>(c, 2e-5);
}
TEST(AttentionKernel, so_in_double_precision) {
  for (const AttentionCase& c : cases()) check<double>(c, 1e-12);
}

TEST(AttentionKernel, takes_any_head_size) {
  for (const std::int64_t head_dim : {2, 16, 17, 31, 64, 80, 96, 128, 131})
    check<float>({.sizes = {1, 2, 1, 6, 7, head_dim}, .scale = 0.1}, 2e-5);
}

TEST(AttentionKernel, counts_the_keys_of_a_cache_at_run_time) {
  for (const bool in_buffer : {false, true})
    for (const std::int64_t length : {0, 1, 3, 99, 150, 160})
      for (const bool causal : {false, true}) {
        AttentionCase c{.sizes = {2, 4, 2, 3, 150, 5},
                        .causal = causal,
                        .window = causal && in_buffer ? 20 : 0,
                        .length = length,
                        .length_in_buffer = in_buffer};
        check<double>(c, 1e-12);
        c.sizes.queries = 1;
        check<float>(c, 2e-5);
      }
}

// What lies behind the length is never read: NaN there changes nothing.
TEST(AttentionKernel, never_reads_behind_the_length_of_a_cache) {
  const AttentionCase c{.sizes = {1, 2, 1, 2, 40, 5}, .length = 17};
  const codegen::HostTarget host = codegen::detect_host();
  Memory<double> memory(c);
  for (Array* cache : {&memory.k, &memory.v}) {
    std::vector<double> numbers = contents<double>(*cache);
    for (std::size_t i = static_cast<std::size_t>(17 * memory.keys.strides.position);
         i < numbers.size(); ++i)
      numbers[i] = NAN;
    *cache = codegen::array_of(DType::f64, numbers);
  }
  memory.run(AttentionPart::forward, small_tiling(c, 4, 2, 3, 2, 1), host);
  memory.expect_near_reference(1e-12);
}

TEST(AttentionKernel, has_the_same_bits_on_every_target) {
  const AttentionCase c{.sizes = {1, 2, 1, 20, 103, 5}, .causal = true};
  Memory<float> first(c);
  const codegen::HostTarget host = codegen::detect_host();
  for (const AttentionPart part : kParts) first.run(part, small_tiling(c, 4, 2, 3, 2, 2), host);
  for (const auto& [name, target] : codegen::runnable_targets())
    for (const AttentionPart part : kParts) {
      if (part == AttentionPart::row_dots) continue;
      first.expect_same_bits(
          part, choose_tiling(part, c.spec(DType::f32), c.sizes, target_of(target), 2), target);
    }
}

// --- against the ops

struct OpCase {
  Graph graph;
  ref::Bindings at;
  std::vector<Tensor> parameters;
  Tensor out, loss;
};

OpCase op_case(const AttentionCase& c, const AttentionNumbers& n) {
  OpCase o;
  const AttentionSizes& s = c.sizes;
  const Shape q{s.batch, s.heads, s.queries, s.head_dim},
      k{s.batch, s.key_heads, s.keys, s.head_dim};
  const auto parameter = [&](const char* name, const Shape& shape,
                             const std::vector<double>& values) {
    o.at[name] = Literal::floats(shape, values, f64);
    o.parameters.push_back(o.graph.parameter(name, shape, init::zeros(), f64));
    return o.parameters.back();
  };
  const Tensor tq = parameter("q", q, n.q), tk = parameter("k", k, n.k),
               tv = parameter("v", k, n.v);
  std::optional<Tensor> mask;
  const auto shape4 = mask_shape(c);
  const Shape shape{shape4[0], shape4[1], shape4[2], shape4[3]};
  if (c.mask == AttentionMask::additive)
    mask = o.graph.constant(Literal::floats(shape, n.mask, f64));
  if (c.mask == AttentionMask::boolean)
    mask = o.graph.constant(
        Literal::ints(shape, std::vector<std::int64_t>(n.mask.begin(), n.mask.end()), boolean));
  const AttentionOptions options{c.causal, c.window, c.scale};
  o.out = c.length < 0
              ? attention(tq, tk, tv, options, mask)
              : attention_cached(tq, tk, tv, o.graph.constant(Literal::ints({}, {c.length}, i64)),
                                 options);
  o.loss = sum(o.out * o.graph.constant(Literal::floats(q, n.dout, f64)));
  return o;
}

TEST(AttentionKernel, is_what_the_op_and_its_gradient_mean) {
  std::vector<AttentionCase> list = cases();
  list.push_back({.sizes = {2, 4, 2, 3, 110, 5}, .causal = true, .window = 7, .length = 100});
  list.push_back({.sizes = {1, 2, 2, 2, 9, 3}, .length = 4});
  const codegen::HostTarget host = codegen::detect_host();
  for (const AttentionCase& c : list) {
    if (c.sizes.batch * c.sizes.queries * c.sizes.keys == 0 ||
        c.sizes.queries * c.sizes.keys > 15000)
      continue;
    SCOPED_TRACE(c.str());
    Memory<double> memory(c);
    for (const AttentionPart part : kParts) {
      if (c.length >= 0 && part != AttentionPart::forward) continue;
      ASSERT_NO_FATAL_FAILURE(memory.run(part, small_tiling(c, 4, 2, 4, 2, 1), host));
    }
    const OpCase o = op_case(c, memory.want);
    tests::expect_close(dense<double>(memory.out, memory.queries),
                        tests::value_of(o.graph, o.out, o.at), 1e-12);
    if (c.length >= 0) continue;
    const auto gradients = tests::gradients_of(o.graph, o.loss, o.parameters, o.at);
    tests::expect_close(dense<double>(memory.dq, memory.queries), gradients[0], 1e-11);
    tests::expect_close(dense<double>(memory.dk, memory.keys), gradients[1], 1e-11);
    tests::expect_close(dense<double>(memory.dv, memory.keys), gradients[2], 1e-11);
  }
}

// --- rules

TEST(AttentionKernel, refuses_what_it_cannot_do) {
  const AttentionSizes sizes{1, 2, 1, 8, 8, 4};
  const Target target;
  const AttentionTiling good = choose_tiling(AttentionPart::forward, {}, sizes, target, 1);
  const auto rule = [&](const AttentionSpec& spec, const AttentionSizes& s,
                        const AttentionTiling& t) {
    return broken_rule(AttentionPart::forward, spec, s, t);
  };
  EXPECT_EQ(rule({}, sizes, good), "");
  EXPECT_NE(rule({.dtype = DType::bf16}, sizes, good), "");
  EXPECT_NE(rule({.windowed = true}, sizes, good), "");
  EXPECT_NE(rule({}, {1, 3, 2, 8, 8, 4}, good), "");
  EXPECT_NE(rule({}, {1, 2, 1, 8, 8, 4096}, good), "");
  EXPECT_NE(broken_rule(AttentionPart::key_grad, {.length = AttentionLength::param}, sizes, good),
            "");
  AttentionTiling uneven = good;
  uneven.block += 1;
  EXPECT_NE(rule({}, sizes, uneven), "");
  EXPECT_THROW(build_attention("uneven", AttentionPart::forward, {}, uneven), InternalError);
  EXPECT_THROW(attention_params(AttentionPart::forward, {.causal = true, .windowed = true}, sizes,
                                AttentionStrides::dense(sizes), 0, good),
               InternalError);
}

}  // namespace
}  // namespace pantala::schedule::cpu::attention_kernel_test
