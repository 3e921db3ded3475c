#include "support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> count{0};
std::atomic<std::size_t> largest{0}, live{0}, peak{0};

void raise(std::atomic<std::size_t>& mark, std::size_t value) {
  std::size_t seen = mark.load(std::memory_order_relaxed);
  while (value > seen && !mark.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {}
}

void note(std::size_t size, void* memory) {
  count.fetch_add(1, std::memory_order_relaxed);
  raise(largest, size);
  // What the heap really gave: it is known again when the memory comes back.
  const std::size_t given = malloc_usable_size(memory);
  raise(peak, live.fetch_add(given, std::memory_order_relaxed) + given);
}

void give_back(void* memory) {
  live.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

void* take(std::size_t size, std::size_t alignment) {
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size == 0 ? 1 : size)
                     : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!memory) throw std::bad_alloc();
  note(size, memory);
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
    void* memory = std::malloc(size == 0 ? 1 : size);                                      \
    if (memory) note(size, memory);                                                        \
    return memory;                                                                         \
  }                                                                                        \
  void DELETE(void* memory) noexcept { give_back(memory); }                                \
  void DELETE(void* memory, std::size_t) noexcept { give_back(memory); }                   \
  void DELETE(void* memory, std::align_val_t) noexcept { give_back(memory); }              \
  void DELETE(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); } \
  void DELETE(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
PANTALA_COUNTED(operator new, operator delete)
PANTALA_COUNTED(operator new[], operator delete[])
#undef PANTALA_COUNTED

namespace pantala::tests {

Allocations allocations() { return {count.load(), largest.load(), live.load(), peak.load()}; }
void reset_largest_allocation() { largest = 0; }
void reset_peak_allocation() { peak = live.load(); }

}  // namespace pantala::tests
