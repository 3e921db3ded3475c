// How tests notice that a kernel touches memory that is not its own. Sentinels: bytes around blocks
// and in the arena's gaps that must not change. Poison: in builds with AddressSanitizer, arena
// bytes that must not be touched while a plan runs (seen by the interpreter of kernels and by the C
// library's functions; machine code of kernels is not instrumented).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"

#if defined(__SANITIZE_ADDRESS__)
#define PANTALA_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PANTALA_ADDRESS_SANITIZER 1
#endif
#endif

namespace pantala::device {

#if defined(PANTALA_ADDRESS_SANITIZER)
constexpr bool kPoisons = true;
#else
constexpr bool kPoisons = false;
#endif

// The pattern reads as NaN in every float dtype, so that a number from outside shows.
void write_sentinels(std::span<std::byte> bytes);
// The first byte that is no longer the pattern's.
std::optional<std::int64_t> damaged_sentinel(std::span<const std::byte> bytes);

// The bytes of a plan's arena that no buffer covers.
class ArenaGaps {
 public:
  explicit ArenaGaps(const plan::Plan& plan);
  void write_sentinels(std::byte* arena) const;
  // InternalError that names the plan and the buffer before the damage.
  void check_sentinels(const std::byte* arena, const plan::Plan& plan) const;

  struct Gap {
    std::int64_t offset = 0, bytes = 0;
    friend bool operator==(const Gap&, const Gap&) = default;
  };
  std::span<const Gap> gaps() const { return gaps_; }

 private:
  std::vector<Gap> gaps_;
};

// While it stands, the gaps are poisoned; without AddressSanitizer nothing is done.
class ArenaPoison {
 public:
  ArenaPoison(const ArenaGaps& gaps, std::byte* arena, const plan::Plan& plan);
  ~ArenaPoison();
  ArenaPoison(const ArenaPoison&) = delete;
  ArenaPoison& operator=(const ArenaPoison&) = delete;
  // Everything but the buffers of this launch is poisoned: other temporaries are dead to it.
  void only(const plan::Launch& launch);

 private:
  std::byte* const arena_;
  const plan::Plan& plan_;
};

}  // namespace pantala::device
