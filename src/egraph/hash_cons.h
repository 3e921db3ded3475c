// The table that finds a node by its content. Open addressing; a slot holds a node and half of its
// hash, so that a search seldom looks at nodes that are not the one. Entries are never removed: a
// node whose content changed is entered again, and the old entry, which compares unequal from then
// on, is left behind until the table grows.
#pragma once

#include <cstdint>
#include <span>

#include "base/large_array.h"

namespace pantala::egraph {

class HashCons {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  static std::uint64_t hash(std::uint32_t symbol, std::span<const std::uint32_t> children) {
    std::uint64_t value = (symbol + 1) * 0x9E3779B97F4A7C15;
    for (const std::uint32_t child : children)
      value = (value ^ child) * 0xD6E8FEB86659FD93, value ^= value >> 32;
    return value * 0x9E3779B97F4A7C15;
  }

  // The node for which `is_same(node)`, or kNone.
  template <class IsSame>
  std::uint32_t find(std::uint64_t hash, IsSame is_same) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = place(hash);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.node == kNone) return kNone;
      if (slot.tag == tag(hash) && is_same(slot.node)) return slot.node;
    }
  }
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place(hash)]);
  }
  // The node that find() would look at first, or kNone.
  std::uint32_t candidate(std::uint64_t hash) const {
    if (slots_.empty()) return kNone;
    const Slot& slot = slots_[place(hash)];
    return slot.tag == tag(hash) ? slot.node : kNone;
  }
  bool is_full() const { return 2 * (used_ + 1) > slots_.size(); }
  // Of a node that find() does not find; there must be room (is_full()).
  void insert(std::uint64_t hash, std::uint32_t node) {
    std::size_t at = place(hash);
    while (slots_[at].node != kNone) at = (at + 1) & mask_;
    slots_[at] = {tag(hash), node};
    ++used_;
  }
  // Empties the table and makes room for so many nodes and as many again.
  void clear_for(std::size_t nodes);

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t node = kNone;
  };
  // The upper bits choose the place, the lower ones tell nodes of one place apart.
  std::size_t place(std::uint64_t hash) const { return static_cast<std::size_t>(hash >> shift_); }
  static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

  LargeArray<Slot> slots_;
  std::size_t mask_ = 0, used_ = 0;
  int shift_ = 63;
};

}  // namespace pantala::egraph
