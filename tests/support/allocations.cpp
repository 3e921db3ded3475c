#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> count{0};
std::atomic<std::size_t> largest{0};

void note(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  std::size_t seen = largest.load(std::memory_order_relaxed);
  while (size > seen && !largest.compare_exchange_weak(seen, size, std::memory_order_relaxed)) {}
}

void* take(std::size_t size, std::size_t alignment) {
  note(size);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size == 0 ? 1 : size)
                     : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Every form: a sanitizer brings its own for those that are left out, and then finds new and delete
// of different makes.
#define PANTALA_COUNTED(NEW, DELETE)                                                       \
  void* NEW(std::size_t size) { return take(size, 1); }                                    \
  void* NEW(std::size_t size, std::align_val_t alignment) {                                \
    return take(size, static_cast<std::size_t>(alignment));                                \
  }                                                                                        \
  void* NEW(std::size_t size, const std::nothrow_t&) noexcept {                            \
    return note(size), std::malloc(size == 0 ? 1 : size);                                  \
  }                                                                                        \
  void DELETE(void* memory) noexcept { std::free(memory); }                                \
  void DELETE(void* memory, std::size_t) noexcept { std::free(memory); }                   \
  void DELETE(void* memory, std::align_val_t) noexcept { std::free(memory); }              \
  void DELETE(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); } \
  void DELETE(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
PANTALA_COUNTED(operator new, operator delete)
PANTALA_COUNTED(operator new[], operator delete[])
#undef PANTALA_COUNTED

namespace pantala::testing_support {

Allocations allocations() { return {count.load(), largest.load()}; }
void reset_largest_allocation() { largest = 0; }

}  // namespace pantala::testing_support
