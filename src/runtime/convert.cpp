#include "runtime/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/bytes.h"
#include "kir/arithmetic.h"
#include "pantala/error.h"

namespace pantala::runtime {

namespace {

template <class T>
constexpr DType host_dtype() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
  return DType::boolean;
}

// Bits of a float's significand, with the leading one.
int significand_bits(DType t) {
  switch (t) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    default:
      return 8;
  }
}

// Bits that the magnitude of an integer may need.
int magnitude_bits(DType t) {
  switch (t) {
    case DType::i64:
      return 63;
    case DType::i32:
      return 31;
    case DType::u8:
      return 8;
    default:
      return 1;
  }
}

std::pair<std::int64_t, std::int64_t> range_of(DType t) {
  switch (t) {
    case DType::i32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case DType::u8:
      return {0, 255};
    case DType::boolean:
      return {0, 1};
    default:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

// `action` on a value of the type that holds one element of `dtype` in memory; f16 and bf16 travel
// as float, bools are bytes of 0 or 1.
template <class Action>
void with_memory_type(DType dtype, Action&& action) {
  switch (dtype) {
    case DType::f64:
      return action(double{});
    case DType::i64:
      return action(std::int64_t{});
    case DType::i32:
      return action(std::int32_t{});
    case DType::u8:
    case DType::boolean:
      return action(std::uint8_t{});
    default:
      return action(float{});
  }
}

bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

template <class From>
void encode_span(std::span<const From> from, DType dtype, std::byte* to) {
  with_memory_type(dtype, [&](auto example) {
    using To = decltype(example);
    if (is_half(dtype)) {
      for (std::size_t k = 0; k < from.size(); ++k) {
        // Through the dtype's own rounding: a double that is first rounded to float would be
        // rounded twice.
        const auto lane = static_cast<float>(round_to(dtype, static_cast<double>(from[k])));
        kir::store_element(dtype, reinterpret_cast<const std::byte*>(&lane), to + 2 * k);
      }
    } else if constexpr (std::is_same_v<From, To>) {
      if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
    } else {
      auto* out = reinterpret_cast<To*>(to);
      for (std::size_t k = 0; k < from.size(); ++k) out[k] = static_cast<To>(from[k]);
    }
  });
}

template <class To>
void decode_span(DType dtype, const std::byte* from, std::span<To> to) {
  with_memory_type(dtype, [&](auto example) {
    using From = decltype(example);
    if (is_half(dtype)) {
      for (std::size_t k = 0; k < to.size(); ++k) {
        float lane = 0;
        kir::load_element(dtype, from + 2 * k, reinterpret_cast<std::byte*>(&lane));
        to[k] = static_cast<To>(lane);
      }
    } else if constexpr (std::is_same_v<From, To>) {
      if (!to.empty()) std::memcpy(to.data(), from, to.size_bytes());
    } else {
      const auto* in = reinterpret_cast<const From*>(from);
      for (std::size_t k = 0; k < to.size(); ++k) to[k] = static_cast<To>(in[k]);
    }
  });
}

// Rounding is for whoever gives the numbers: here it would go unnoticed.
std::string remedy(DType from, DType to) {
  if (is_float(from) && to == DType::f32)
    return "round them first: std::vector<float>, NumPy's astype('float32'), or data::Scale{1} "
           "among the transforms of a loader";
  return fmt::format("convert them to {} first", dtype_name(to));
}

[[noreturn]] void refuse_dtype(const Receiver& receiver, DType from, const Type& to) {
  throw TypeError(fmt::format(
      "{} '{}' is {}: {} numbers were given, which are not all exact as {}; {}", receiver.kind,
      receiver.name, to.str(), dtype_name(from), dtype_name(to.dtype), remedy(from, to.dtype)));
}

template <class T>
void check_integers(const Receiver& receiver, std::span<const T> values, const Type& to,
                    const IndexBounds& bounds) {
  if constexpr (std::is_integral_v<T>) {
    if (is_float(to.dtype)) return;
    auto [low, high] = range_of(to.dtype);
    if (bounds.limit > 0) low = 0, high = std::min(high, bounds.limit - 1);
    const auto fits = [&](T value) {
      const auto wide = static_cast<std::int64_t>(value);
      return (wide >= low && wide <= high) || wide == bounds.exempt;
    };
    const auto bad = std::find_if_not(values.begin(), values.end(), fits);
    if (bad == values.end()) return;
    throw ValueError(fmt::format(
        "{} '{}': {} at position {} is not in [{}, {}]{}", receiver.kind, receiver.name,
        static_cast<std::int64_t>(*bad), bad - values.begin(), low, high,
        bounds.limit == 0 ? ""
        : !bounds.exempt  ? ", which its readers need"
                          : fmt::format(" and not {}, which its readers need", *bounds.exempt)));
  }
}

}  // namespace

std::int64_t count_of(const HostElements& elements) {
  return std::visit([](const auto& span) { return static_cast<std::int64_t>(span.size()); },
                    elements);
}
std::int64_t count_of(const HostBuffer& buffer) {
  return std::visit([](const auto& span) { return static_cast<std::int64_t>(span.size()); },
                    buffer);
}
DType dtype_of(const HostElements& elements) {
  return std::visit(
      [](const auto& span) {
        return host_dtype<typename std::decay_t<decltype(span)>::value_type>();
      },
      elements);
}
DType dtype_of(const HostBuffer& buffer) {
  return std::visit(
      [](const auto& span) {
        return host_dtype<typename std::decay_t<decltype(span)>::value_type>();
      },
      buffer);
}

bool convertible(DType from, DType to) {
  if (from == to) return true;
  if (is_float(from)) {
    if (!is_float(to)) return false;
    // bf16 has the exponents of f32; f16 has fewer.
    return significand_bits(from) < significand_bits(to) && to != DType::f16;
  }
  if (is_float(to)) return magnitude_bits(from) <= significand_bits(to);
  return to != DType::boolean;
}

void check_elements(const Receiver& receiver, const HostElements& from, const Type& to,
                    const IndexBounds& bounds) {
  const std::int64_t count = count_of(from);
  if (count != to.shape.numel())
    throw TypeError(fmt::format("{} '{}' is {}: it has {} elements, {} were given", receiver.kind,
                                receiver.name, to.str(), to.shape.numel(), count));
  if (!convertible(dtype_of(from), to.dtype)) refuse_dtype(receiver, dtype_of(from), to);
  std::visit([&](const auto& values) { check_integers(receiver, values, to, bounds); }, from);
}

void encode(const HostElements& from, DType dtype, std::byte* to) {
  std::visit([&](const auto& values) { encode_span(values, dtype, to); }, from);
}

void check_literal(const Receiver& receiver, const Literal& from, const Type& to,
                   const IndexBounds& bounds) {
  if (from.shape() != to.shape)
    throw TypeError(fmt::format("{} '{}' is {}, but {} was given", receiver.kind, receiver.name,
                                to.str(), from.type().str()));
  if (!convertible(from.dtype(), to.dtype)) refuse_dtype(receiver, from.dtype(), to);
  if (!from.is_float()) check_integers(receiver, from.i(), to, bounds);
}

void encode(const Literal& from, DType dtype, std::byte* to) {
  if (!from.is_float()) return encode_span(from.i(), dtype, to);
  if (dtype == from.dtype()) return encode_span(from.f(), dtype, to);
  std::vector<double> rounded(from.f().begin(), from.f().end());
  for (double& value : rounded) value = round_to(from.dtype(), value);
  encode_span(std::span<const double>(rounded), dtype, to);
}

bool storable(DType from, DType to) {
  return (is_float(from) && is_float(to)) || convertible(from, to);
}

namespace {

// `action` on the elements in parts, as literals: what is converted takes little memory.
template <class Action>
void in_parts(DType dtype, std::span<const std::byte> bytes, Action&& action) {
  constexpr std::size_t kPart = 1 << 14;
  const auto size = static_cast<std::size_t>(dtype_bytes(dtype));
  for (std::size_t done = 0; done < bytes.size() / size; done += kPart) {
    const std::size_t count = std::min(kPart, bytes.size() / size - done);
    action(done, ir::from_bytes({dtype, {static_cast<std::int64_t>(count)}},
                                bytes.subspan(done * size, count * size)));
  }
}

}  // namespace

void check_stored(const Receiver& receiver, DType from, std::span<const std::byte> bytes,
                  const Type& to) {
  if (is_float(from) || is_float(to.dtype) || magnitude_bits(from) < magnitude_bits(to.dtype) ||
      from == to.dtype)
    return;
  in_parts(from, bytes,
           [&](std::size_t, const Literal& part) { check_integers(receiver, part.i(), to, {}); });
}

void convert_stored(DType from, std::span<const std::byte> bytes, DType to, std::byte* out) {
  if (from == to && from != boolean) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  if (is_half(from) && to == DType::f32) {  // the usual case of a large model
    for (std::size_t k = 0; k < bytes.size() / 2; ++k)
      kir::load_element(from, bytes.data() + 2 * k, out + 4 * k);
    return;
  }
  const auto size = static_cast<std::size_t>(dtype_bytes(to));
  in_parts(from, bytes,
           [&](std::size_t begin, const Literal& part) { encode(part, to, out + begin * size); });
}

Literal decode(const Type& type, const std::byte* from) {
  Literal literal(type);
  if (literal.is_float())
    decode_span(type.dtype, from, literal.f());
  else
    decode_span(type.dtype, from, literal.i());
  return literal;
}

void decode_into(const Receiver& source, const Type& type, const std::byte* from,
                 const HostBuffer& to) {
  if (count_of(to) != type.shape.numel())
    throw TypeError(fmt::format("{} '{}' is {}: it has {} elements, there is room for {}",
                                source.kind, source.name, type.str(), type.shape.numel(),
                                count_of(to)));
  // A narrower integer would need a check of every value and could leave half of them written.
  const DType wanted = dtype_of(to);
  if (!convertible(type.dtype, wanted) ||
      (!is_float(wanted) && magnitude_bits(type.dtype) > magnitude_bits(wanted)))
    throw TypeError(fmt::format("{} '{}' is {}: {} cannot hold every {}", source.kind, source.name,
                                type.str(), dtype_name(wanted), dtype_name(type.dtype)));
  std::visit([&](const auto& out) { decode_span(type.dtype, from, out); }, to);
}

}  // namespace pantala::runtime
