#include "data/order.h"

#include <numeric>
#include <utility>

#include "base/philox.h"

namespace pantala::data {

namespace {

// Numbers of 64 bits, one after the other; a block of Philox has two of them.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t epoch, Stream stream)
      : key_{low(seed), high(seed)}, epoch_(epoch), stream_(static_cast<std::uint32_t>(stream)) {}

  // In [0, limit). The high half of the product: biased by less than limit / 2^64.
  std::uint64_t below(std::uint64_t limit) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(next()) * limit >> 64);
  }

 private:
  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

  std::uint64_t next() {
    if (drawn_ % 2 == 0) {
      const std::uint64_t number = drawn_ / 2;
      block_ = philox4x32({low(number), stream_, low(epoch_), high(epoch_) ^ high(number)}, key_);
    }
    const std::size_t at = drawn_++ % 2 * 2;
    return block_[at] | std::uint64_t{block_[at + 1]} << 32;
  }

  std::array<std::uint32_t, 2> key_;
  std::uint64_t epoch_;
  std::uint32_t stream_;
  PhiloxBlock block_{};
  std::uint64_t drawn_ = 0;
};

}  // namespace

std::vector<std::int64_t> plain_order(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

std::vector<std::int64_t> random_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch,
                                       Stream stream) {
  std::vector<std::int64_t> order = plain_order(count);
  Draws draws(seed, epoch, stream);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[draws.below(left)]);
  return order;
}

}  // namespace pantala::data
