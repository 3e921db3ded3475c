// What a code generator gives, whatever it is for: the code of kernels, as bytes that only its
// device understands.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace pantala::codegen {

struct CompiledUnit {
  std::string name;               // of the kernel
  std::vector<std::byte> object;  // depends on code and target alone, not on names
  double milliseconds = 0;        // that compiling took; 0 if the process had the code already
};

// Kernels that are the same code share a unit: units[unit_of[i]] is the code of kernel i, under the
// name of the first kernel that has it.
struct CompiledKernels {
  std::vector<CompiledUnit> units;
  std::vector<std::size_t> unit_of;
};

// Called by threads that compile before each kernel: a CancelledError that it throws ends the call.
using BeforeEach = std::function<void()>;

}  // namespace pantala::codegen
