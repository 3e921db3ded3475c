#include "base/large_array.h"

#include <sys/mman.h>

#include <cstdlib>

namespace pantala {

namespace {
constexpr std::size_t kPage = std::size_t{2} << 20;
}

void* take_large_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* memory = whole < bytes ? nullptr : std::aligned_alloc(kPage, whole);
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // A wish: without large pages everything works, more slowly.
  madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

void give_large_memory(void* memory) { std::free(memory); }

}  // namespace pantala
