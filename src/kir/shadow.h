// Shadow memory of the interpreter: who wrote and who read each element, so that races and reads of
// unwritten scratch are found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/interpret.h"

namespace pantala::kir {

// Who touches memory: an item, within it a thread (kAllThreads if a kernel has one alone), and the
// number of meetings before.
struct Agent {
  static constexpr std::int64_t kNone = -1, kSeveral = -2, kAllThreads = -3;
  std::int64_t item = kNone;
  std::int64_t thread = kAllThreads;
  std::int64_t phase = 0;
};

class Shadow {
 public:
  Shadow(const Kernel& kernel, const Arguments& arguments);
  // Notes an access in bounds. Returns what is wrong with it ("item 3 has written it"), or "".
  std::string read(std::size_t buffer, std::int64_t element, const Agent& agent);
  std::string write(std::size_t buffer, std::int64_t element, const Agent& agent);

 private:
  struct Cell {
    Agent writer, reader;
  };
  // The cells of a buffer's element k are cells[offset + k * per_element], ... of its region:
  // buffers that overlap share a region.
  struct View {
    std::size_t region = 0;
    std::int64_t offset = 0, per_element = 1;
    bool scratch = false;
  };
  void bind_globals(const Arguments& arguments);
  // Whether another agent's access may happen at the same time as this one.
  static bool concurrent(const Agent& other, const Agent& agent);

  std::vector<View> views_;
  std::vector<std::vector<Cell>> regions_;
};

}  // namespace pantala::kir
