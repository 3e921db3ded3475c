// The `pantala` command. Environment variables are read in tools/ only.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "tools/command.h"
#include "tools/out_of_memory.h"
#include "tools/process.h"

namespace {

// Without so much there is no going on, and no way back either.
constexpr std::size_t kLittle = std::size_t{1} << 20;

}  // namespace

// The standard's own, but that the size that could not be had is noted for the message.
void* operator new(std::size_t bytes) {
  if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  pantala::tools::note_refused_memory(bytes);
  if (bytes <= kLittle) pantala::tools::end_without_memory();
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  pantala::tools::open_standard_descriptors();
  std::set_new_handler(pantala::tools::end_without_memory);  // LLVM's own ways to memory ask for it
  return pantala::tools::run_command(argc, argv);
}
