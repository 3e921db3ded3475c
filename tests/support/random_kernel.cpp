#include "support/random_kernel.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/philox.h"
#include "kir/arithmetic.h"
#include "kir/builder.h"

namespace pantala::tests {

namespace {

using namespace pantala::kir;

constexpr std::int64_t kElements = 96;  // of every input; outputs have as many for each item
constexpr DType kRegisterTypes[] = {f32, f64, i32, i64, boolean};
constexpr DType kMemoryTypes[] = {f32, f64, f16, bf16, i32, i64, u8, boolean};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(seed_, 0, 0, count_++) %
                                     static_cast<std::uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(std::ssize(list)))];
  }
  template <class T, std::size_t N>
  T pick(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::uint64_t seed_, count_ = 0;
};

double interesting_real(Dice& dice) {
  constexpr double values[] = {0,    -0.0, 1,        -1,        0.5, 3,     -2.25, 1e-40,
                               1e30, 7.75, INFINITY, -INFINITY, NAN, 65504, 0.1};
  return values[dice.below(15)];
}
std::int64_t interesting_integer(Dice& dice, DType dtype) {
  if (dtype == boolean) return dice.below(2);
  constexpr std::int64_t values[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     7,
                                     -5,
                                     8,
                                     1 << 20,
                                     std::numeric_limits<std::int32_t>::max(),
                                     std::numeric_limits<std::int32_t>::min(),
                                     31};
  return wrap_to(dtype, values[dice.below(12)]);
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomKernelOptions& options)
      : dice_(seed), options_(options), b_("random" + std::to_string(seed)) {}

  Kernel run() {
    for (const DType t : kMemoryTypes)
      inputs_.push_back(b_.buffer("in_" + std::string(dtype_name(t)), t, Access::read));
    for (const DType t : kMemoryTypes)
      outputs_.push_back(b_.buffer("out_" + std::string(dtype_name(t)), t, Access::read_write));
    scratch_ = b_.scratch("scratch", f32, kElements);
    pool_ = {b_.item(),
             b_.param("n"),
             b_.param("size", i32),
             b_.param("rate", f32),
             b_.param("scale", f64),
             b_.param("flag", boolean)};
    b_.loop(b_.i64(0), b_.i64(kElements), b_.i64(1),
            [&](Var i) { b_.store(scratch_, i, b_.load(inputs_[0], i)); });
    body(options_.statements, options_.depth);
    // What is in the pool at the end is seen.
    for (std::size_t k = 0; k < pool_.size() && k < 40; ++k) store(pool_[pool_.size() - 1 - k]);
    return b_.finish();
  }

 private:
  void body(int statements, int depth) {
    for (int k = 0; k < statements; ++k) {
      const std::int64_t kind = dice_.below(100);
      if (kind < 8 && depth > 0) {
        loop(depth);
      } else if (kind < 14 && depth > 0) {
        branch(depth);
      } else if (kind < 22) {
        store(dice_.pick(pool_));
      } else if (kind < 34) {
        pool_.push_back(load());
      } else {
        pool_.push_back(expression());
      }
    }
  }

  Var constant(VType type) {
    return is_float(type.dtype) ? b_.constant(type, interesting_real(dice_))
                                : b_.constant(type, interesting_integer(dice_, type.dtype));
  }
  // A value of a type: one that exists, or a constant.
  Var any(VType type) {
    std::vector<Var> fitting;
    for (const Var& v : pool_)
      if (v.type() == type) fitting.push_back(v);
    if (fitting.empty() || dice_.chance(15)) return constant(type);
    return dice_.pick(fitting);
  }
  VType random_type() { return {dice_.pick(kRegisterTypes), 1 << dice_.below(4)}; }
  VType number_type() {
    VType t = random_type();
    if (t.dtype == boolean) t.dtype = f32;
    return t;
  }
  // A position where n lanes at a stride of up to 2 stay inside.
  Var position(int lanes) {
    const Var spread = b_.binary(Op::bit_and, any({i64, 1}), b_.i64(15));
    return lanes == 1 ? spread : spread + dice_.below(kElements - 2 * lanes - 16);
  }

  Var load() {
    const std::size_t which = static_cast<std::size_t>(dice_.below(std::ssize(inputs_)));
    const int lanes = 1 << dice_.below(4);
    const Var mask = dice_.chance(40) ? any({boolean, lanes}) : Var{};
    switch (dice_.below(4)) {
      case 0:
        return b_.load(inputs_[which], position(lanes), lanes, mask);
      case 1:
        return b_.load_strided(inputs_[which], position(lanes), b_.i64(2), lanes, mask);
      case 2:
        return b_.load(scratch_, position(lanes), lanes, mask);
      default: {
        const DType index = dice_.chance(50) ? i32 : i64;
        const Var indices = any({index, lanes});
        return b_.gather(inputs_[which], b_.binary(Op::bit_and, indices, like(indices, 63)), mask);
      }
    }
  }

  // Stores go to the item's own part of an output, or to scratch.
  void store(Var value) {
    const int lanes = value.lanes();
    const Var mask = dice_.chance(30) ? any({boolean, lanes}) : Var{};
    if (value.dtype() == f32 && dice_.chance(20))
      return b_.store(scratch_, position(lanes), value, mask);
    std::vector<BufferId> fitting;
    for (const BufferId& o : outputs_)
      if (b_.loaded_dtype(o) == value.dtype()) fitting.push_back(o);
    const Var at = b_.item() * kElements + position(lanes);
    if (dice_.chance(50)) return b_.store(dice_.pick(fitting), at, value, mask, dice_.chance(20));
    b_.store_strided(dice_.pick(fitting), at, b_.i64(2), value, mask);
  }

  Var expression() {
    constexpr Op binary[] = {Op::add, Op::sub,     Op::mul,    Op::min,     Op::max,
                             Op::div, Op::bit_and, Op::bit_or, Op::bit_xor, Op::shl,
                             Op::shr, Op::mulhi,   Op::rem};
    constexpr Op unary[] = {Op::neg, Op::abs, Op::sqrt, Op::floor, Op::ceil, Op::round};
    constexpr Op compare[] = {Op::lt, Op::le, Op::eq, Op::ne};
    VType type = number_type();
    switch (dice_.below(10)) {
      case 0:
      case 1:
      case 2: {
        const bool real = is_float(type.dtype);
        const Op op = binary[dice_.below(real ? 6 : 13)];
        if (!real && (op == Op::div || op == Op::rem))
          return b_.binary(op, any(type), b_.constant(type, 1 + dice_.below(4)));
        // Chains of constants, as address arithmetic has them.
        if (dice_.chance(20))
          return b_.binary(op, b_.binary(op, any(type), constant(type)), constant(type));
        return b_.binary(op, any(type), any(type));
      }
      case 3:
        return b_.unary(unary[dice_.below(is_float(type.dtype) ? 6 : 2)], any(type));
      case 4:
        return b_.binary(compare[dice_.below(4)], any(type), any(type));
      case 5:
        return type = random_type(), b_.select(any(type.with_dtype(boolean)), any(type), any(type));
      case 6:
        return b_.cast(any(type), dice_.pick(kRegisterTypes));
      case 7:
        return b_.fma(any({f32, type.lanes}), any({f32, type.lanes}), any({f32, type.lanes}));
      case 8:
        return bool_or_bits(type);
      default:
        return lanes(type);
    }
  }

  Var bool_or_bits(VType type) {
    constexpr Op ops[] = {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq, Op::ne};
    const VType flags = type.with_dtype(boolean);
    if (dice_.chance(50)) return b_.binary(ops[dice_.below(5)], any(flags), any(flags));
    // Of floats that arithmetic did not make, so that no bits of a NaN show: halves of integers.
    return b_.bitcast(b_.cast(any(type.with_dtype(i32)), f32) * 0.5, i32);
  }

  Var lanes(VType type) {
    const int n = 2 << dice_.below(3);
    switch (dice_.below(5)) {
      case 0:
        return b_.splat(any(type.with_lanes(1)), n);
      case 1:
        return b_.iota(type);
      case 2:
        return b_.extract(any(type.with_lanes(n)), static_cast<int>(dice_.below(n)));
      case 3:
        return b_.reduce(dice_.chance(30)   ? Op::reduce_add
                         : dice_.chance(50) ? Op::reduce_max
                                            : Op::reduce_min,
                         any(type.with_lanes(n)));
      default: {
        std::vector<Var> rows;
        for (int k = 0; k < n; ++k) rows.push_back(any(type.with_lanes(n)));
        const std::vector<Var> columns = b_.transpose(rows);
        pool_.insert(pool_.end(), columns.begin(), columns.end());
        return columns.back();
      }
    }
  }

  // A block: what it makes is visible inside only.
  template <class F>
  void scoped(F&& f) {
    const std::vector<Var> outer = pool_;
    f();
    pool_ = outer;
  }

  void loop(int depth) {
    std::vector<Var> carried;
    for (std::int64_t k = dice_.below(4); k > 0; --k) carried.push_back(any(random_type()));
    const Var end = dice_.chance(50) ? b_.i64(dice_.below(4))
                                     : b_.binary(Op::bit_and, any({i64, 1}), b_.i64(3));
    const std::vector<Var> results =
        b_.loop(b_.i64(0), end, b_.i64(1 + dice_.below(2)), carried,
                [&](Var index, std::span<const Var> values) {
                  std::vector<Var> next;
                  scoped([&] {
                    pool_.push_back(index);
                    pool_.insert(pool_.end(), values.begin(), values.end());
                    body(4 + static_cast<int>(dice_.below(6)), depth - 1);
                    for (const Var& v : values)
                      next.push_back(dice_.chance(20) ? v : any(v.type()));
                  });
                  return next;
                });
    pool_.insert(pool_.end(), results.begin(), results.end());
  }

  void branch(int depth) {
    std::vector<VType> types;
    for (std::int64_t k = dice_.below(3); k > 0; --k) types.push_back(random_type());
    const auto side = [&] {
      std::vector<Var> yields;
      scoped([&] {
        body(static_cast<int>(dice_.below(6)), depth - 1);
        for (const VType& t : types) yields.push_back(any(t));
      });
      return yields;
    };
    const std::vector<Var> results = b_.branch(any({boolean, 1}), side, side);
    pool_.insert(pool_.end(), results.begin(), results.end());
  }

  Dice dice_;
  RandomKernelOptions options_;
  Builder b_;
  std::vector<BufferId> inputs_, outputs_;
  BufferId scratch_;
  std::vector<Var> pool_;
};

bool is_nan(DType dtype, const std::byte* element) {
  if (!is_float(dtype)) return false;
  double wide = 0;
  float narrow = 0;
  load_element(
      dtype, element,
      dtype == f64 ? reinterpret_cast<std::byte*>(&wide) : reinterpret_cast<std::byte*>(&narrow));
  return dtype == f64 ? wide != wide : narrow != narrow;
}

}  // namespace

Kernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options) {
  return Generator(seed, options).run();
}

RandomArguments::RandomArguments(const Kernel& kernel, std::uint64_t seed) {
  Dice dice(seed + 1'000'000);
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space != Space::global) continue;
    const auto size = static_cast<std::size_t>(dtype_bytes(buffer.dtype));
    const auto elements = static_cast<std::size_t>(kElements * kRandomKernelItems);
    dtypes_.push_back(buffer.dtype);
    std::vector<std::byte>& bytes = memory_.emplace_back(elements * size);
    for (std::size_t k = 0; k < elements; ++k) {
      const DType held = register_dtype(buffer.dtype);
      const Inst number{.imm = dice.chance(30) ? interesting_real(dice)
                                               : static_cast<double>(dice.below(2000) - 1000) / 64,
                        .index = is_float(held) ? 0 : interesting_integer(dice, held)};
      alignas(8) std::byte lane[8];
      write_constant(number, {held, 1}, lane);
      store_element(buffer.dtype, lane, bytes.data() + k * size);
    }
  }
  for (const Param& p : kernel.params)
    params_.push_back(is_float(p.dtype) ? ir::Number(interesting_real(dice))
                                        : ir::Number::of(interesting_integer(dice, p.dtype)));
  // A parameter is a number of its dtype.
  for (std::size_t k = 0; k < params_.size(); ++k)
    if (!params_[k].integral) params_[k].f = round_to(kernel.params[k].dtype, params_[k].f);
}

Arguments RandomArguments::bind() {
  Arguments arguments{{}, params_};
  for (std::size_t k = 0; k < memory_.size(); ++k)
    arguments.buffers.push_back({dtypes_[k], memory_[k].data(), kElements * kRandomKernelItems});
  return arguments;
}

std::vector<std::vector<std::byte>> RandomArguments::contents() const {
  std::vector<std::vector<std::byte>> out = memory_;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto size = static_cast<std::size_t>(dtype_bytes(dtypes_[k]));
    for (std::size_t at = 0; at < out[k].size(); at += size)
      if (is_nan(dtypes_[k], out[k].data() + at)) std::memset(out[k].data() + at, 0xFF, size);
  }
  return out;
}

}  // namespace pantala::tests
