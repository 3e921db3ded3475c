// Elements in the memory of the host, in row-major order, seen through spans of their own type.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

namespace pantala {

// Elements that the caller owns; a std::vector or a std::array of one of these types converts to
// it.
using HostElements = std::variant<std::span<const float>, std::span<const double>,
                                  std::span<const std::int32_t>, std::span<const std::int64_t>,
                                  std::span<const std::uint8_t>, std::span<const bool>>;
using HostBuffer = std::variant<std::span<float>, std::span<double>, std::span<std::int32_t>,
                                std::span<std::int64_t>, std::span<std::uint8_t>, std::span<bool>>;

}  // namespace pantala
