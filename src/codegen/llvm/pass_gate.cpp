#include "codegen/llvm/pass_gate.h"

#include <algorithm>

namespace pantala::codegen {

namespace {

// Whether a loop carries at least so many vectors.
bool carries(int vectors, const kir::Block& block, const kir::Kernel& kernel) {
  return std::ranges::any_of(block.body, [&](const kir::Inst& inst) {
    const auto is_vector = [&](kir::Value v) { return kernel.type(v).lanes > 1; };
    if (inst.op == kir::Op::loop && std::ranges::count_if(inst.results, is_vector) >= vectors)
      return true;
    return std::ranges::any_of(inst.blocks,
                               [&](const kir::Block& b) { return carries(vectors, b, kernel); });
  });
}

}  // namespace

PassGate::PassGate(const kir::Kernel& kernel, const HostTarget& target)
    : has_register_tile_(carries(target.vector_registers / 2, kernel.body, kernel)) {}

bool PassGate::shouldRunPass(llvm::StringRef pass, llvm::StringRef) {
  // Looks for masks that would better be in general registers, which the emitter knows already.
  if (pass == "X86 Domain Reassignment Pass") return false;
  // Addresses of a loop from few counters. An eighth of the time to compile: it speeds up kernels
  // that need all registers for sums and is of no use to others, which wait for memory.
  if (pass == "Loop Strength Reduction" || pass == "Canonicalize Freeze Instructions in Loops")
    return has_register_tile_;
  return true;
}

}  // namespace pantala::codegen
