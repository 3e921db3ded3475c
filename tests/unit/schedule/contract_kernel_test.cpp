// The kernels of contractions against a plain loop that follows the documented order of the
// reduction: every bit, for every layout, tiling, odd size and split of the items, interpreted and
// as machine code. Memory ends at a page that must not be touched; gaps between rows of c keep
// their contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "schedule/cpu/contract/kernel.h"
#include "unit/schedule/kernel_runs.h"

namespace pantala::schedule::cpu::contract_kernel_test {
namespace {

using codegen::Array;
using kernel_runs::expect_bits;
using kernel_runs::target_of;
using kernel_runs::unique_name;
using kernel_runs::values;
using kir::Builder;
using kir::Var;

Target small_target() {
  return {.vector_bytes = 16, .vector_registers = 10, .l1_bytes = 4096, .l2_bytes = 32768};
}

// Sizes with gaps behind every row and matrix.
ContractStrides with_gaps(const ContractSpec& spec, const ContractSizes& s) {
  ContractStrides strides = ContractStrides::dense(spec, s);
  strides.a_ld += 3, strides.b_ld += 1, strides.c_ld += 2;
  strides.a_batch = (spec.a_k_inner ? s.m : s.k) * strides.a_ld + 5;
  strides.b_batch = (spec.b_k_inner ? s.n : s.k) * strides.b_ld;
  strides.c_batch = (spec.c_n_inner ? s.m : s.n) * strides.c_ld + 1;
  return strides;
}

std::int64_t extent(std::int64_t batch, std::int64_t batch_stride, std::int64_t outer,
                    std::int64_t ld, std::int64_t inner) {
  return batch == 0 || outer == 0 || inner == 0
             ? 0
             : (batch - 1) * batch_stride + (outer - 1) * ld + inner;
}

template <class T>
class Problem {
 public:
  static constexpr T kUntouched = static_cast<T>(-12345);

  Problem(const ContractSpec& layout, const ContractSizes& size, bool integers = false)
      : spec(layout), sizes(size), strides(with_gaps(layout, size)) {
    const ContractSizes& s = sizes;
    std::mt19937 random(static_cast<unsigned>(s.m * 1009 + s.n * 31 + s.k));
    std::normal_distribution<double> normal;
    const auto fill = [&](std::vector<T>& v, std::int64_t count) {
      v.resize(static_cast<std::size_t>(count));
      for (T& x : v)
        x = integers ? static_cast<T>(static_cast<int>(random() % 15) - 7)
                     : static_cast<T>(normal(random));
    };
    fill(a, extent(s.batch, strides.a_batch, spec.a_k_inner ? s.m : s.k, strides.a_ld,
                   spec.a_k_inner ? s.k : s.m));
    fill(b, extent(s.batch, strides.b_batch, spec.b_k_inner ? s.n : s.k, strides.b_ld,
                   spec.b_k_inner ? s.k : s.n));
    c.assign(static_cast<std::size_t>(extent(s.batch, strides.c_batch, spec.c_n_inner ? s.m : s.n,
                                             strides.c_ld, spec.c_n_inner ? s.n : s.m)),
             kUntouched);
  }

  T a_at(std::int64_t batch, std::int64_t i, std::int64_t k) const {
    return a[static_cast<std::size_t>(
        batch * strides.a_batch + (spec.a_k_inner ? i * strides.a_ld + k : k * strides.a_ld + i))];
  }
  T b_at(std::int64_t batch, std::int64_t j, std::int64_t k) const {
    return b[static_cast<std::size_t>(
        batch * strides.b_batch + (spec.b_k_inner ? j * strides.b_ld + k : k * strides.b_ld + j))];
  }
  std::size_t c_at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(batch * strides.c_batch +
                                    (spec.c_n_inner ? i * strides.c_ld + j : j * strides.c_ld + i));
  }

  // The documented order.
  T sum(const ContractOrder& order, std::int64_t batch, std::int64_t i, std::int64_t j) const {
    T total = 0;
    for (std::int64_t k0 = 0; k0 < sizes.k; k0 += order.k_block) {
      std::vector<T> partial(static_cast<std::size_t>(order.lanes), T{0});
      const std::int64_t depth = std::min(order.k_block, sizes.k - k0),
                         padded = (depth + order.lanes - 1) / order.lanes * order.lanes;
      for (std::int64_t k = 0; k < padded; ++k) {
        T& p = partial[static_cast<std::size_t>(k % order.lanes)];
        p = k < depth ? std::fma(a_at(batch, i, k0 + k), b_at(batch, j, k0 + k), p)
                      : std::fma(T{0}, T{0}, p);
      }
      for (std::size_t half = partial.size() / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) partial[l] += partial[l + half];
      total = k0 == 0 ? partial[0] : total + partial[0];
    }
    return total;
  }
  // c with `finish(sum, batch, i, j)` in its elements.
  template <class F>
  std::vector<T> expected(const ContractOrder& order, const F& finish) const {
    std::vector<T> out = c;
    for (std::int64_t batch = 0; batch < sizes.batch; ++batch)
      for (std::int64_t i = 0; i < sizes.m; ++i)
        for (std::int64_t j = 0; j < sizes.n; ++j)
          out[c_at(batch, i, j)] = finish(sum(order, batch, i, j), batch, i, j);
    return out;
  }
  std::vector<T> expected(const ContractOrder& order) const {
    return expected(order, [](T sum, auto...) { return sum; });
  }
  std::vector<Array> arrays() const {
    return {codegen::array_of(spec.dtype, a), codegen::array_of(spec.dtype, b),
            codegen::array_of(spec.dtype, c)};
  }

  ContractSpec spec;
  ContractSizes sizes;
  ContractStrides strides;
  std::vector<T> a, b, c;
};

std::string describe(const ContractSpec& s, const ContractSizes& z, const ContractOrder& o,
                     const ContractTiling& t) {
  std::ostringstream text;
  text << "a_k " << s.a_k_inner << " b_k " << s.b_k_inner << " c_n " << s.c_n_inner << ", "
       << z.batch << " x " << z.m << 'x' << z.n << 'x' << z.k << ", order " << o.k_block << '/'
       << o.lanes << ", lanes_along_m " << t.lanes_along_m << " rows_outer " << t.rows_outer
       << " pack " << t.pack_rows << t.pack_lanes << " single " << t.single_block << " direct "
       << t.direct << " whole " << t.whole_lanes << t.whole_rows << t.whole_steps << " tile "
       << t.rows << 'x' << 2 * t.lanes << " block " << t.row_block << 'x' << t.lane_block;
  return text.str();
}

std::vector<Array> run_compiled(const kir::Kernel& kernel, const codegen::HostTarget& target,
                                std::vector<Array> buffers, const std::vector<std::int64_t>& params,
                                const kernel_runs::Ranges& ranges) {
  kernel_runs::run_compiled(kernel, target, buffers, params, ranges);
  return buffers;
}
std::vector<Array> run_interpreted(const kir::Kernel& kernel, std::vector<Array> buffers,
                                   const std::vector<std::int64_t>& params, std::int64_t items) {
  kernel_runs::run_interpreted(kernel, buffers, params, items);
  return buffers;
}

// Every legal tiling of small tiles.
std::vector<ContractTiling> small_tilings(const ContractSpec& spec, const ContractOrder& order,
                                          const ContractSizes& sizes) {
  std::vector<ContractTiling> list;
  for (unsigned bits = 0; bits < 64; ++bits) {
    ContractTiling t{.lanes_along_m = (bits & 1) != 0,
                     .rows_outer = (bits & 2) != 0,
                     .pack_rows = (bits & 4) != 0,
                     .pack_lanes = (bits & 8) != 0,
                     .single_block = (bits & 16) != 0,
                     .direct = (bits & 32) != 0,
                     .rows = 3,
                     .lanes = 4,
                     .row_block = 6,
                     .lane_block = 16};
    if (!broken_rule(spec, sizes, order, t).empty()) continue;
    list.push_back(t);
    const ContractTiling whole = with_whole_parts(t, sizes, order);
    if (whole != t) list.push_back(whole);
  }
  return list;
}

std::vector<ContractSpec> all_layouts(DType dtype) {
  std::vector<ContractSpec> list;
  for (int bits = 0; bits < 8; ++bits)
    list.push_back({dtype, (bits & 1) == 0, (bits & 2) == 0, (bits & 4) == 0});
  return list;
}

// Around the tile of 3 x 8 and its blocks of 6 x 16, multiples of them, and none of anything.
const std::vector<ContractSizes> kSizes{
    {1, 1, 1, 1},    {1, 3, 8, 5},  {1, 2, 7, 9},  {1, 4, 9, 6},   {1, 13, 37, 7},
    {2, 7, 17, 11},  {3, 6, 16, 4}, {1, 19, 5, 8}, {1, 5, 31, 1},  {1, 12, 33, 0},
    {0, 3, 4, 5},    {1, 0, 4, 5},  {2, 4, 0, 5},  {1, 1, 23, 3},  {1, 29, 1, 2},
    {1, 16, 12, 11}, {1, 6, 8, 4},  {2, 8, 6, 8},  {1, 24, 24, 12}};

// With those that rely on whole parts of the sizes given.
template <class T>
void check_all_tilings(DType dtype, const ContractSizes& whole) {
  const codegen::HostTarget host = codegen::detect_host();
  for (const ContractSpec& spec : all_layouts(dtype)) {
    for (const ContractOrder order : {ContractOrder{.k_block = 12}, ContractOrder{.k_block = 4}}) {
      for (const ContractTiling& t : small_tilings(spec, order, whole)) {
        if (order.k_block == 12 && !t.single_block) continue;
        const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t);
        for (const ContractSizes& sizes : kSizes) {
          if (!broken_rule(spec, sizes, order, t).empty()) continue;
          const Problem<T> p(spec, sizes);
          const auto params = contract_params(sizes, p.strides, order, t);
          const std::int64_t items = contract_items(sizes, t);
          const std::string what = describe(spec, sizes, order, t);
          const std::vector<T> want = p.expected(order);
          ASSERT_NO_FATAL_FAILURE(expect_bits(
              values<T>(run_compiled(kernel, host, p.arrays(), params, {{0, items}})[2]), want,
              what));
          // In another order and cut.
          const std::int64_t cut = items / 3;
          ASSERT_NO_FATAL_FAILURE(
              expect_bits(values<T>(run_compiled(kernel, host, p.arrays(), params,
                                                 {{cut, items}, {0, cut}})[2]),
                          want, what + ", split"));
          if (sizes.m * sizes.n * sizes.k > 1500) continue;
          ASSERT_NO_FATAL_FAILURE(
              expect_bits(values<T>(run_interpreted(kernel, p.arrays(), params, items)[2]), want,
                          what + ", interpreted"));
        }
      }
    }
  }
}

TEST(ContractKernel, every_layout_and_tiling_has_the_bits_of_the_plain_loop) {
  check_all_tilings<float>(DType::f32, {1, 24, 24, 12});
}
TEST(ContractKernel, so_in_double_precision) {
  check_all_tilings<double>(DType::f64, {1, 1, 1, 11});
}

// The tilings that are really chosen.
template <class T>
void check_chosen_tilings(DType dtype, const codegen::HostTarget& host,
                          const std::vector<ContractSizes>& sizes) {
  const Target target = target_of(host);
  for (const ContractSpec& spec : all_layouts(dtype)) {
    for (const ContractSizes& s : sizes) {
      const Problem<T> p(spec, s);
      const ContractOrder order =
          reduction_order(s, spec.a_k_inner, spec.b_k_inner, spec.dtype, target);
      ContractTiling last;
      for (const int workers : {1, 3}) {
        const ContractTiling t =
            choose_tiling(spec, s, p.strides, order, target, {.workers = workers});
        if (t == last) continue;
        last = t;
        EXPECT_EQ(broken_rule(spec, s, order, t), "");
        const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t);
        const std::int64_t items = contract_items(s, t);
        const auto results =
            run_compiled(kernel, host, p.arrays(), contract_params(s, p.strides, order, t),
                         {{items / 2, items}, {0, items / 2}});
        ASSERT_NO_FATAL_FAILURE(expect_bits(values<T>(results[2]), p.expected(order),
                                            host.cpu + " " + describe(spec, s, order, t)));
      }
    }
  }
}

TEST(ContractKernel, chosen_tilings_have_the_bits_of_the_plain_loop_on_every_target) {
  for (const auto& [name, host] : codegen::runnable_targets())
    check_chosen_tilings<float>(
        DType::f32, host, {{1, 13, 31, 17}, {2, 14, 32, 64}, {1, 32, 128, 784}, {3, 67, 101, 33}});
  check_chosen_tilings<double>(DType::f64, codegen::detect_host(),
                               {{2, 43, 37, 33}, {1, 30, 50, 400}});
}

TEST(ContractKernel, reduction_over_lanes_follows_its_order) {
  const codegen::HostTarget host = codegen::detect_host();
  const Target target = small_target();
  for (const ContractSpec& spec : all_layouts(DType::f32)) {
    const ContractOrder order{.k_block = 24, .lanes = 4};
    for (const ContractSizes& s :
         {ContractSizes{1, 1, 19, 37}, {2, 3, 5, 24}, {1, 9, 2, 49}, {1, 4, 4, 3}, {1, 2, 3, 0}}) {
      const Problem<float> p(spec, s);
      const ContractTiling t = choose_tiling(spec, s, p.strides, order, target, {.workers = 2});
      const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t);
      const auto params = contract_params(s, p.strides, order, t);
      const std::int64_t items = contract_items(s, t);
      const std::string what = describe(spec, s, order, t);
      ASSERT_NO_FATAL_FAILURE(expect_bits(
          values<float>(run_compiled(kernel, host, p.arrays(), params, {{0, items}})[2]),
          p.expected(order), what));
      ASSERT_NO_FATAL_FAILURE(
          expect_bits(values<float>(run_interpreted(kernel, p.arrays(), params, items)[2]),
                      p.expected(order), what));
    }
  }
}

TEST(ContractKernel, the_order_is_one_of_shape_alone) {
  const Target target{.vector_bytes = 64, .vector_registers = 32};
  const auto order = [&](ContractSizes s, bool a, bool b) {
    return reduction_order(s, a, b, DType::f32, target);
  };
  EXPECT_EQ(order({1, 32, 128, 784}, true, true), order({7, 500, 300, 784}, false, true));
  EXPECT_EQ(order({1, 32, 128, 784}, true, true).lanes, 1);
  EXPECT_EQ(order({1, 1, 128, 784}, true, true).lanes, 16);
  EXPECT_EQ(order({1, 1, 128, 784}, true, false).lanes, 1);
  EXPECT_GE(order({1, 8, 8, 0}, true, true).k_block, 1);
}

TEST(ContractKernel, integers_are_exact_and_others_close_to_double_precision) {
  const codegen::HostTarget host = codegen::detect_host();
  const Target target = target_of(host);
  for (const ContractSpec& spec : all_layouts(DType::f32))
    for (const bool integers : {true, false}) {
      const ContractSizes s{1, 45, 77, 1000};
      const Problem<float> p(spec, s, integers);
      const ContractOrder order =
          reduction_order(s, spec.a_k_inner, spec.b_k_inner, spec.dtype, target);
      const ContractTiling t = choose_tiling(spec, s, p.strides, order, target);
      const auto results =
          run_compiled(build_contract(unique_name("contract"), spec, order, t), host, p.arrays(),
                       contract_params(s, p.strides, order, t), {{0, contract_items(s, t)}});
      const std::vector<float> got = values<float>(results[2]);
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = 0, size = 0;
          for (std::int64_t k = 0; k < s.k; ++k) {
            const double product = static_cast<double>(p.a_at(0, i, k)) * p.b_at(0, j, k);
            sum += product, size += std::abs(product);
          }
          ASSERT_NEAR(got[p.c_at(0, i, j)], sum, integers ? 0 : 1e-6 * size)
              << describe(spec, s, order, t);
        }
    }
}

// relu(sum + bias[n]) to c and the sum itself, scaled, to a second result.
struct BiasAndCopy {
  kir::BufferId bias, copy;
  Var scale;
  Epilogue epilogue() {
    return {.declare =
                [this](Builder& b) {
                  bias = b.buffer("bias", DType::f32, kir::Access::read);
                  copy = b.buffer("copy", DType::f32, kir::Access::write);
                  scale = b.param("scale", DType::f32);
                },
            .apply =
                [this](Builder& b, const ResultSite& s) {
                  b.store(copy, s.c_at, s.value * scale, s.mask);
                  const int lanes = s.value.lanes();
                  const Var shift =
                      s.lanes_along_n ? b.load(bias, s.n, lanes, s.mask) : b.load(bias, s.n);
                  return max(s.value + shift, 0.0);
                }};
  }
};

TEST(ContractKernel, an_epilogue_sees_the_same_sums_and_may_store_more_than_one_result) {
  const codegen::HostTarget host = codegen::detect_host();
  const auto check = [&](const ContractSpec& spec, const ContractOrder& order,
                         const ContractSizes& s, const ContractTiling& t) {
    const Problem<float> p(spec, s);
    BiasAndCopy hook;
    const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t,
                                              {.a = {}, .b = {}, .result = hook.epilogue()});
    std::vector<float> bias(static_cast<std::size_t>(s.n));
    for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<float>(j) * 0.25F - 1;
    std::vector<Array> arrays = p.arrays();
    arrays.push_back(codegen::array_of(DType::f32, bias));
    arrays.push_back(arrays[2]);
    std::vector<std::int64_t> params = contract_params(s, p.strides, order, t);
    params.push_back(codegen::param_slot(DType::f32, ir::Number(-2.0)));
    const auto results = run_compiled(kernel, host, arrays, params, {{0, contract_items(s, t)}});
    const std::string what = describe(spec, s, order, t);
    const auto relu = [&](float sum, std::int64_t, std::int64_t, std::int64_t j) {
      const float x = sum + bias[static_cast<std::size_t>(j)];
      return x > 0.0F ? x : 0.0F;
    };
    ASSERT_NO_FATAL_FAILURE(expect_bits(values<float>(results[2]), p.expected(order, relu), what));
    ASSERT_NO_FATAL_FAILURE(expect_bits(
        values<float>(results[4]),
        p.expected(order, [](float sum, auto...) { return sum * -2.0F; }), what + ", copy"));
  };
  for (const ContractSpec& spec : all_layouts(DType::f32))
    for (const ContractOrder order : {ContractOrder{.k_block = 12}, ContractOrder{.k_block = 4},
                                      ContractOrder{.k_block = 8, .lanes = 4}})
      for (const ContractSizes& s : {ContractSizes{2, 7, 19, 9}, {2, 24, 24, 12}})
        for (const ContractTiling& t : small_tilings(spec, order, s)) {
          if (t != with_whole_parts(t, s, order)) continue;
          ASSERT_NO_FATAL_FAILURE(check(spec, order, s, t));
        }
}

TEST(ContractKernel, an_epilogue_may_update_in_place) {
  const codegen::HostTarget host = codegen::detect_host();
  const ContractSizes s{1, 10, 21, 9};
  const Epilogue update{.declare = {},
                        .apply =
                            [](Builder& b, const ResultSite& site) {
                              const Var old =
                                  b.load(site.c, site.c_at, site.value.lanes(), site.mask);
                              return b.fma(site.value, like(site.value, -0.125), old);
                            },
                        .c_access = kir::Access::read_write};
  for (const ContractSpec& spec : all_layouts(DType::f32))
    for (const ContractOrder order : {ContractOrder{.k_block = 12}, ContractOrder{.k_block = 4}})
      for (const ContractTiling& t : small_tilings(spec, order, s)) {
        if (t != with_whole_parts(t, s, order)) continue;
        const Problem<float> p(spec, s);
        const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t,
                                                  {.a = {}, .b = {}, .result = update});
        const auto results =
            run_compiled(kernel, host, p.arrays(), contract_params(s, p.strides, order, t),
                         {{0, contract_items(s, t)}});
        const auto want = p.expected(order, [](float sum, auto...) {
          return std::fma(sum, -0.125F, Problem<float>::kUntouched);
        });
        ASSERT_NO_FATAL_FAILURE(
            expect_bits(values<float>(results[2]), want, describe(spec, s, order, t)));
      }
}

TEST(ContractKernel, prologues_change_the_operands_on_their_way) {
  const codegen::HostTarget host = codegen::detect_host();
  const ContractSizes s{2, 7, 19, 9};
  // a is doubled where it is positive, b multiplied by its position.
  const Prologue relu{.declare = {}, .apply = [](Builder&, const OperandSite& o) {
                        return max(o.value, 0.0) * 2.0;
                      }};
  const Prologue place{
      .declare = {}, .apply = [](Builder& b, const OperandSite& o) {
        const int lanes = o.value.lanes();
        const Var at = o.lanes_along_k ? b.splat(o.at, lanes) : o.at + b.iota({DType::i64, lanes});
        const Var k = o.lanes_along_k ? o.k + b.iota({DType::i64, lanes}) : b.splat(o.k, lanes);
        return o.value * b.cast(at * 3 - k, DType::f32);
      }};
  for (const ContractSpec& spec : all_layouts(DType::f32))
    for (const ContractOrder order :
         {ContractOrder{.k_block = 4}, ContractOrder{.k_block = 8, .lanes = 4}})
      for (const ContractTiling& t : small_tilings(spec, order, s)) {
        if (!t.pack_lanes || !t.pack_rows) continue;
        Problem<float> p(spec, s);
        const std::vector<Array> arrays = p.arrays();
        const kir::Kernel kernel = build_contract(unique_name("contract"), spec, order, t,
                                                  {.a = relu, .b = place, .result = {}});
        const auto results =
            run_compiled(kernel, host, arrays, contract_params(s, p.strides, order, t),
                         {{0, contract_items(s, t)}});
        for (float& x : p.a) x = x > 0 ? x * 2 : 0;
        for (std::int64_t batch = 0; batch < s.batch; ++batch)
          for (std::int64_t j = 0; j < s.n; ++j)
            for (std::int64_t k = 0; k < s.k; ++k)
              p.b[static_cast<std::size_t>(
                  batch * p.strides.b_batch +
                  (spec.b_k_inner ? j * p.strides.b_ld + k : k * p.strides.b_ld + j))] *=
                  static_cast<float>(j * 3 - k);
        ASSERT_NO_FATAL_FAILURE(
            expect_bits(values<float>(results[2]), p.expected(order), describe(spec, s, order, t)));
      }
}

}  // namespace
}  // namespace pantala::schedule::cpu::contract_kernel_test
