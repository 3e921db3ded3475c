// Between the host's arrays and the memory of a device, whose elements lie row-major in their own
// dtype. Only exact conversions are done: a dtype pair is taken if every value of the one is a
// value of the other; integers of a wider type are taken if each of them fits. Nothing here
// allocates except what returns a Literal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "pantala/literal.h"
#include "pantala/session.h"

namespace pantala::runtime {

std::int64_t count_of(const HostElements& elements);
std::int64_t count_of(const HostBuffer& buffer);
DType dtype_of(const HostElements& elements);
DType dtype_of(const HostBuffer& buffer);

// What a message calls the thing that takes or gives elements: "input 'x'".
struct Receiver {
  std::string_view kind, name;
};

// Whether a `from` can become a `to`, element values aside.
bool convertible(DType from, DType to);
// TypeError naming both counts, or both dtypes; ValueError naming position and value for an integer
// that `to` cannot hold or that the bounds do not take.
struct IndexBounds {
  std::int64_t limit = 0;                   // values are in [0, limit); 0: any
  std::optional<std::int64_t> exempt = {};  // or this one
};
void check_elements(const Receiver& receiver, const HostElements& from, const Type& to,
                    const IndexBounds& bounds = {});
// After check_elements: `to` has room for them.
void encode(const HostElements& from, DType dtype, std::byte* to);

// The same for a literal: its type must be that of the receiver, or of the same shape and
// convertible. A float literal holds doubles; they are rounded to its dtype.
void check_literal(const Receiver& receiver, const Literal& from, const Type& to,
                   const IndexBounds& bounds = {});
void encode(const Literal& from, DType dtype, std::byte* to);

// Stored elements (files, other sessions) as those of another dtype. Floats become floats of any
// kind, rounded to nearest even where that is narrower; integers are taken as encode() takes them,
// after check_stored().
bool storable(DType from, DType to);
void check_stored(const Receiver& receiver, DType from, std::span<const std::byte> bytes,
                  const Type& to);
// `bytes` need not be aligned. Equal dtypes keep their bits; bools become 0 or 1.
void convert_stored(DType from, std::span<const std::byte> bytes, DType to, std::byte* out);

Literal decode(const Type& type, const std::byte* from);
// TypeError naming both counts, or both dtypes where the buffer's cannot hold every value.
void decode_into(const Receiver& source, const Type& type, const std::byte* from,
                 const HostBuffer& to);

}  // namespace pantala::runtime
