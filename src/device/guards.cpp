#include "device/guards.h"

#include <fmt/format.h>
#if defined(PANTALA_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>

#include "pantala/error.h"

namespace pantala::device {

namespace {

constexpr std::byte pattern(std::size_t k) {
  return k % 2 == 0 ? std::byte{0xF7} : std::byte{0x7F};
}

void poison([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) {
#if defined(PANTALA_ADDRESS_SANITIZER)
  __asan_poison_memory_region(begin, static_cast<std::size_t>(bytes));
#endif
}

void unpoison([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) {
#if defined(PANTALA_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(begin, static_cast<std::size_t>(bytes));
#endif
}

}  // namespace

void write_sentinels(std::span<std::byte> bytes) {
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = pattern(k);
}

std::optional<std::int64_t> damaged_sentinel(std::span<const std::byte> bytes) {
  for (std::size_t k = 0; k < bytes.size(); ++k)
    if (bytes[k] != pattern(k)) return static_cast<std::int64_t>(k);
  return std::nullopt;
}

ArenaGaps::ArenaGaps(const plan::Plan& plan) {
  std::vector<Gap> covered;
  for (const plan::Buffer& b : plan.buffers)
    if (b.storage == plan::Storage::arena && b.bytes() > 0)
      covered.push_back({b.offset, b.bytes()});
  covered.push_back({plan.arena_bytes, 0});
  std::ranges::sort(covered, {}, &Gap::offset);
  std::int64_t end = 0;
  for (const Gap& c : covered) {
    if (c.offset > end) gaps_.push_back({end, c.offset - end});
    end = std::max(end, c.offset + c.bytes);
  }
}

void ArenaGaps::write_sentinels(std::byte* arena) const {
  for (const Gap& gap : gaps_)
    device::write_sentinels({arena + gap.offset, static_cast<std::size_t>(gap.bytes)});
}

void ArenaGaps::check_sentinels(const std::byte* arena, const plan::Plan& plan) const {
  for (const Gap& gap : gaps_) {
    const auto at = damaged_sentinel({arena + gap.offset, static_cast<std::size_t>(gap.bytes)});
    if (!at) continue;
    std::string neighbours;
    for (const plan::Buffer& b : plan.buffers)
      if (b.storage == plan::Storage::arena && b.bytes() > 0 && b.offset + b.bytes() == gap.offset)
        neighbours += fmt::format(", {} past the end of '{}'", *at, b.name);
    throw InternalError(fmt::format("plan '{}': a kernel wrote to byte {} of the arena, a gap{}",
                                    plan.name, gap.offset + *at, neighbours));
  }
}

ArenaPoison::ArenaPoison(const ArenaGaps& gaps, std::byte* arena, const plan::Plan& plan)
    : arena_(arena), plan_(plan) {
  if constexpr (kPoisons)
    for (const ArenaGaps::Gap& gap : gaps.gaps()) poison(arena + gap.offset, gap.bytes);
}

ArenaPoison::~ArenaPoison() {
  if constexpr (kPoisons) unpoison(arena_, plan_.arena_bytes);
}

void ArenaPoison::only(const plan::Launch& launch) {
  if constexpr (kPoisons) {
    poison(arena_, plan_.arena_bytes);
    for (const plan::ArgumentSet& set : launch.sets)
      for (const std::uint32_t b : set.buffers)
        if (const plan::Buffer& buffer = plan_.buffers[b]; buffer.storage == plan::Storage::arena)
          unpoison(arena_ + buffer.offset, buffer.bytes());
  }
}

}  // namespace pantala::device
