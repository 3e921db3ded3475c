#include "support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// Counting takes a good part of the time of a small allocation: nothing is counted before somebody
// asks.
std::atomic<bool> counting{false};
std::atomic<std::int64_t> count{0}, live{0}, peak{0};
std::atomic<std::size_t> largest{0};

template <typename T>
void raise(std::atomic<T>& mark, T value) {
  T seen = mark.load(std::memory_order_relaxed);
  while (value > seen && !mark.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {}
}

// What the heap really gave: it is known again when the memory comes back.
std::int64_t bytes_of(void* memory) {
  return static_cast<std::int64_t>(malloc_usable_size(memory));
}

void note(std::size_t size, void* memory) {
  if (!counting.load(std::memory_order_relaxed)) return;
  count.fetch_add(1, std::memory_order_relaxed);
  raise(largest, size);
  const std::int64_t given = bytes_of(memory);
  raise(peak, live.fetch_add(given, std::memory_order_relaxed) + given);
}

void give_back(void* memory) {
  if (counting.load(std::memory_order_relaxed))
    live.fetch_sub(bytes_of(memory), std::memory_order_relaxed);
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

Allocations allocations() {
  counting = true;
  return {count.load(), largest.load(), live.load(), peak.load()};
}
void reset_largest_allocation() {
  counting = true;
  largest = 0;
}
void reset_peak_allocation() {
  counting = true;
  peak = live.load();
}

}  // namespace pantala::tests
