// The random numbers of data sets: pure functions of a seed, an epoch and a place, the same on
// every platform and in every thread.
#pragma once

#include <cstdint>
#include <vector>

namespace pantala::data {

// What draws: each has numbers of its own. Transforms use their place in the list.
enum class Stream : std::uint32_t { split = 0xFFFFFFFE, order = 0xFFFFFFFF };

// The numbers 0 to count - 1 in an order that depends on (seed, epoch, stream): Fisher-Yates.
std::vector<std::int64_t> random_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch,
                                       Stream stream);
// 0 to count - 1.
std::vector<std::int64_t> plain_order(std::int64_t count);

}  // namespace pantala::data
