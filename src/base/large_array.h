// Arrays that may become large and are read all over. Their memory comes in large pages where the
// system has them, which saves most of what first touching it and translating its addresses cost.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace pantala {

// Memory of so many bytes; throws std::bad_alloc.
void* take_large_memory(std::size_t bytes);
void give_large_memory(void* memory);

template <class T>
struct LargeAllocator {
  using value_type = T;
  static constexpr std::size_t kLarge = std::size_t{1} << 20;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kLarge ? ::operator new(bytes) : take_large_memory(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < kLarge)
      ::operator delete(memory);
    else
      give_large_memory(memory);
  }
  bool operator==(const LargeAllocator&) const { return true; }
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace pantala
