// Random kernels for tests of passes and backends: every instruction but barriers, nested loops
// with carried values, branches, masks, all dtypes of memory. They are right by construction: in
// bounds, without races, without divisions by zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/interpret.h"
#include "kir/kernel.h"

namespace pantala::tests {

struct RandomKernelOptions {
  int statements = 24;
  int depth = 2;  // of nested loops and branches
};
kir::Kernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options = {});

// Arguments for a random kernel, filled with interesting numbers; the memory belongs to this
// object.
class RandomArguments {
 public:
  RandomArguments(const kir::Kernel& kernel, std::uint64_t seed);
  kir::Arguments bind();
  // All buffers; every NaN is the same one, since kernels do not fix their bits.
  std::vector<std::vector<std::byte>> contents() const;

 private:
  std::vector<DType> dtypes_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<ir::Number> params_;
};

constexpr std::int64_t kRandomKernelItems = 3;

}  // namespace pantala::tests
