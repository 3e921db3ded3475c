#include "kir/arithmetic.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "pantala/error.h"

namespace pantala::kir {

namespace {

template <class T>
const T* lanes_of(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T>
T* lanes_of(std::byte* p) {
  return reinterpret_cast<T*>(p);
}

// Calls f with a value of the C++ type of a register's lanes; bool is a byte of its own type, so
// that it takes no part in arithmetic.
struct Bool {
  std::uint8_t value = 0;
};
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::boolean:
      return f(Bool{});
    default:
      throw InternalError("a register of a dtype that occurs in memory only");
  }
}
template <class T>
constexpr bool kReal = std::is_floating_point_v<T>;
template <class T>
constexpr bool kInteger = std::is_integral_v<T>;
template <class T>
constexpr bool kBool = std::is_same_v<T, Bool>;
template <class T>
using Unsigned = std::make_unsigned_t<std::conditional_t<kInteger<T>, T, std::int32_t>>;

template <class T>
T wrapping(Unsigned<T> value) {
  return static_cast<T>(value);
}

template <class T>
T upper_half(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    const std::uint64_t product =
        std::uint64_t{static_cast<std::uint32_t>(a)} * static_cast<std::uint32_t>(b);
    return static_cast<T>(static_cast<std::uint32_t>(product >> 32));
  } else {
    const auto product = static_cast<unsigned __int128>(static_cast<std::uint64_t>(a)) *
                         static_cast<std::uint64_t>(b);
    return static_cast<T>(static_cast<std::uint64_t>(product >> 64));
  }
}

template <class T>
T shift(Op op, T a, T b) {
  constexpr unsigned width = sizeof(T) * 8;
  const unsigned amount = static_cast<unsigned>(static_cast<Unsigned<T>>(b) % width);
  return op == Op::shl ? wrapping<T>(static_cast<Unsigned<T>>(a) << amount)
                       : static_cast<T>(a >> amount);
}

template <class T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
Bool minimum(Bool a, Bool b) { return {static_cast<std::uint8_t>(a.value & b.value)}; }
Bool maximum(Bool a, Bool b) { return {static_cast<std::uint8_t>(a.value | b.value)}; }

template <class R, class A>
R convert(A a) {
  if constexpr (kBool<A>) {
    return convert<R>(std::int32_t{a.value});
  } else if constexpr (kBool<R>) {
    return {static_cast<std::uint8_t>(a != 0)};
  } else if constexpr (kInteger<R> && kReal<A>) {
    // The greatest integer rounds up to a power of two as a float: from there on the cast would be
    // undefined.
    constexpr A limit = static_cast<A>(std::uint64_t{1} << (sizeof(R) * 8 - 1));
    if (a != a) return 0;
    if (a >= limit) return std::numeric_limits<R>::max();
    return a <= -limit ? std::numeric_limits<R>::min() : static_cast<R>(a);
  } else {
    return static_cast<R>(a);
  }
}

struct Operands {
  std::span<const std::byte* const> args;
  std::byte* out;
  int lanes;

  template <class R, class T, class F>
  void map1(F f) const {
    const T* a = lanes_of<T>(args[0]);
    R* r = lanes_of<R>(out);
    for (int k = 0; k < lanes; ++k) r[k] = f(a[k]);
  }
  template <class R, class T, class F>
  void map2(F f) const {
    const T *a = lanes_of<T>(args[0]), *b = lanes_of<T>(args[1]);
    R* r = lanes_of<R>(out);
    for (int k = 0; k < lanes; ++k) r[k] = f(a[k], b[k]);
  }
};

template <class T>
bool real_op(Op op, const Operands& o) {
  switch (op) {
    case Op::add:
      return o.map2<T, T>([](T a, T b) { return a + b; }), true;
    case Op::sub:
      return o.map2<T, T>([](T a, T b) { return a - b; }), true;
    case Op::mul:
      return o.map2<T, T>([](T a, T b) { return a * b; }), true;
    case Op::div:
      return o.map2<T, T>([](T a, T b) { return a / b; }), true;
    case Op::neg:
      return o.map1<T, T>([](T a) { return -a; }), true;
    case Op::abs:
      return o.map1<T, T>([](T a) { return std::fabs(a); }), true;
    case Op::sqrt:
      return o.map1<T, T>([](T a) { return std::sqrt(a); }), true;
    case Op::floor:
      return o.map1<T, T>([](T a) { return std::floor(a); }), true;
    case Op::ceil:
      return o.map1<T, T>([](T a) { return std::ceil(a); }), true;
    case Op::round:
      return o.map1<T, T>([](T a) { return std::nearbyint(a); }), true;
    case Op::fma: {
      const T *a = lanes_of<T>(o.args[0]), *b = lanes_of<T>(o.args[1]), *c = lanes_of<T>(o.args[2]);
      for (int k = 0; k < o.lanes; ++k) lanes_of<T>(o.out)[k] = std::fma(a[k], b[k], c[k]);
      return true;
    }
    default:
      return false;
  }
}

template <class T>
bool integer_op(Op op, const Operands& o) {
  using U = Unsigned<T>;
  const auto u = [](T a) { return static_cast<U>(a); };
  switch (op) {
    case Op::add:
      return o.map2<T, T>([=](T a, T b) { return wrapping<T>(u(a) + u(b)); }), true;
    case Op::sub:
      return o.map2<T, T>([=](T a, T b) { return wrapping<T>(u(a) - u(b)); }), true;
    case Op::mul:
      return o.map2<T, T>([=](T a, T b) { return wrapping<T>(u(a) * u(b)); }), true;
    case Op::div:
      return o.map2<T, T>([](T a, T b) { return static_cast<T>(a / b); }), true;
    case Op::rem:
      return o.map2<T, T>([](T a, T b) { return static_cast<T>(a % b); }), true;
    case Op::neg:
      return o.map1<T, T>([=](T a) { return wrapping<T>(U{0} - u(a)); }), true;
    case Op::abs:
      return o.map1<T, T>([=](T a) { return a < 0 ? wrapping<T>(U{0} - u(a)) : a; }), true;
    case Op::bit_and:
      return o.map2<T, T>([](T a, T b) { return a & b; }), true;
    case Op::bit_or:
      return o.map2<T, T>([](T a, T b) { return a | b; }), true;
    case Op::bit_xor:
      return o.map2<T, T>([](T a, T b) { return a ^ b; }), true;
    case Op::shl:
    case Op::shr:
      return o.map2<T, T>([=](T a, T b) { return shift(op, a, b); }), true;
    case Op::mulhi:
      return o.map2<T, T>([](T a, T b) { return upper_half(a, b); }), true;
    default:
      return false;
  }
}

template <class T>
bool compare(Op op, const Operands& o) {
  const auto as_bool = [](bool b) { return Bool{static_cast<std::uint8_t>(b)}; };
  switch (op) {
    case Op::lt:
      return o.map2<Bool, T>([=](T a, T b) { return as_bool(a < b); }), true;
    case Op::le:
      return o.map2<Bool, T>([=](T a, T b) { return as_bool(a <= b); }), true;
    case Op::eq:
      return o.map2<Bool, T>([=](T a, T b) { return as_bool(a == b); }), true;
    case Op::ne:
      return o.map2<Bool, T>([=](T a, T b) { return as_bool(a != b); }), true;
    case Op::min:
      return o.map2<T, T>([](T a, T b) { return minimum(a, b); }), true;
    case Op::max:
      return o.map2<T, T>([](T a, T b) { return maximum(a, b); }), true;
    default:
      return false;
  }
}

bool bool_op(Op op, const Operands& o) {
  const auto map = [&](auto f) {
    o.map2<Bool, Bool>(
        [=](Bool a, Bool b) { return Bool{static_cast<std::uint8_t>(f(a.value, b.value))}; });
  };
  switch (op) {
    case Op::bit_and:
      return map([](int a, int b) { return a & b; }), true;
    case Op::bit_or:
      return map([](int a, int b) { return a | b; }), true;
    case Op::bit_xor:
    case Op::ne:
      return map([](int a, int b) { return a ^ b; }), true;
    case Op::eq:
      return map([](int a, int b) { return a == b; }), true;
    default:
      return false;
  }
}

template <class T>
void reduce(Op op, const std::byte* x, int lanes, std::byte* out) {
  std::array<T, kMaxThreads> v{};  // lanes, or threads of an item
  std::memcpy(v.data(), x, static_cast<std::size_t>(lanes) * sizeof(T));
  for (int half = lanes / 2; half >= 1; half /= 2) {
    for (int k = 0; k < half; ++k) {
      T& a = v[static_cast<std::size_t>(k)];
      const T b = v[static_cast<std::size_t>(k + half)];
      if (op == Op::reduce_max) {
        a = maximum(a, b);
      } else if (op == Op::reduce_min) {
        a = minimum(a, b);
      } else if constexpr (kReal<T>) {
        a = a + b;
      } else if constexpr (kInteger<T>) {
        a = wrapping<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
      }
    }
  }
  std::memcpy(out, v.data(), sizeof(T));
}

// The ops that only move lanes, by their size.
bool move(const Inst& inst, const VType& operand, const VType& result,
          std::span<const std::byte* const> args, std::span<std::byte* const> results) {
  const std::size_t size = register_bytes({operand.dtype, 1});
  const auto lanes = static_cast<std::size_t>(result.lanes);
  switch (inst.op) {
    case Op::splat:
      for (std::size_t k = 0; k < lanes; ++k) std::memcpy(results[0] + k * size, args[0], size);
      return true;
    case Op::extract:
      return std::memcpy(results[0], args[0] + static_cast<std::size_t>(inst.index) * size, size),
             true;
    case Op::bitcast:
      return std::memcpy(results[0], args[0], lanes * size), true;
    case Op::select:
      for (std::size_t k = 0; k < lanes; ++k)
        std::memcpy(results[0] + k * size,
                    args[lanes_of<Bool>(args[0])[k].value ? 1 : 2] + k * size, size);
      return true;
    case Op::transpose:
      for (std::size_t r = 0; r < lanes; ++r)
        for (std::size_t c = 0; c < lanes; ++c)
          std::memcpy(results[c] + r * size, args[r] + c * size, size);
      return true;
    default:
      return false;
  }
}

template <class T>
std::string_view divisor_error(const Operands& o) {
  const T *a = lanes_of<T>(o.args[0]), *b = lanes_of<T>(o.args[1]);
  for (int k = 0; k < o.lanes; ++k) {
    if (b[k] == 0) return "a division by zero";
    if (b[k] == -1 && a[k] == std::numeric_limits<T>::min())
      return "a division of the least number by -1";
  }
  return "";
}

template <class T>
std::string_view compute_on(const Inst& inst, const Operands& o, DType result) {
  if (inst.op == Op::cast) {
    with_type(result,
              [&](auto r) { o.map1<decltype(r), T>([](T a) { return convert<decltype(r)>(a); }); });
    return "";
  }
  bool done = false;
  if constexpr (kReal<T>) done = real_op<T>(inst.op, o);
  if constexpr (kInteger<T>) {
    if (inst.op == Op::div || inst.op == Op::rem) {
      if (const std::string_view wrong = divisor_error<T>(o); !wrong.empty()) return wrong;
    }
    done = integer_op<T>(inst.op, o);
  }
  if constexpr (kBool<T>) {
    done = bool_op(inst.op, o);
  } else {
    done = done || compare<T>(inst.op, o);
  }
  if (!done) throw InternalError("an instruction without a meaning");
  return "";
}

float decode_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7F800000U | static_cast<std::uint32_t>(mantissa) << 13);
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                   : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

std::uint16_t encode_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << 15;
  if (value != value) return static_cast<std::uint16_t>(sign | 0x7E00U | (bits >> 13 & 0x1FFU));
  const double size = std::fabs(round_to(DType::f16, static_cast<double>(value)));
  if (size > 65504.0) return static_cast<std::uint16_t>(sign | 0x7C00U);
  // A subnormal's encoding is its multiple of 2^-24, and so runs on into the smallest normals.
  if (size < 0x1p-13)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(size * 0x1p24));
  const int exponent = std::ilogb(size);
  return static_cast<std::uint16_t>(
      sign | static_cast<std::uint32_t>(std::ldexp(size, 10 - exponent) + (exponent + 14) * 1024));
}

std::uint16_t encode_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  // Overflow carries into infinity.
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

std::size_t register_bytes(const VType& type) {
  return static_cast<std::size_t>(dtype_bytes(type.dtype) * type.lanes);
}

std::string_view compute(const Inst& inst, const VType& operand, const VType& result,
                         std::span<const std::byte* const> args,
                         std::span<std::byte* const> results) {
  if (move(inst, operand, result, args, results)) return "";
  return with_type(operand.dtype, [&](auto t) -> std::string_view {
    using T = decltype(t);
    switch (inst.op) {
      case Op::iota:
        for (int k = 0; k < result.lanes; ++k) lanes_of<T>(results[0])[k] = convert<T>(k);
        return "";
      case Op::reduce_add:
      case Op::reduce_max:
      case Op::reduce_min:
        return reduce<T>(inst.op, args[0], operand.lanes, results[0]), "";
      default:
        return compute_on<T>(inst, {args, results[0], result.lanes}, result.dtype);
    }
  });
}

void write_constant(const Inst& inst, const VType& type, std::byte* out) {
  with_type(type.dtype, [&](auto t) {
    using T = decltype(t);
    for (int k = 0; k < type.lanes; ++k)
      lanes_of<T>(out)[k] = kReal<T> ? convert<T>(inst.imm) : convert<T>(inst.index);
  });
}

void load_element(DType memory, const std::byte* from, std::byte* lane) {
  switch (memory) {
    case DType::f16:
      return write(lane, decode_f16(read<std::uint16_t>(from)));
    case DType::bf16:
      return write(lane, std::uint32_t{read<std::uint16_t>(from)} << 16);
    case DType::u8:
      return write(lane, std::int32_t{read<std::uint8_t>(from)});
    case DType::boolean:
      return write(lane, static_cast<std::uint8_t>(read<std::uint8_t>(from) != 0));
    default:
      std::memcpy(lane, from, static_cast<std::size_t>(dtype_bytes(memory)));
  }
}

void store_element(DType memory, const std::byte* lane, std::byte* to) {
  switch (memory) {
    case DType::f16:
      return write(to, encode_f16(read<float>(lane)));
    case DType::bf16:
      return write(to, encode_bf16(read<float>(lane)));
    case DType::u8:
      return write(to, static_cast<std::uint8_t>(read<std::int32_t>(lane)));
    default:
      std::memcpy(to, lane, static_cast<std::size_t>(dtype_bytes(memory)));
  }
}

}  // namespace pantala::kir
