// Which of LLVM's own passes a kernel is spared. The code generator's pipeline is made once for a
// target; LLVM asks a context's gate before a pass that can be left out.
#pragma once

#include <llvm/IR/OptBisect.h>

#include "codegen/llvm/llvm.h"
#include "kir/kernel.h"

namespace pantala::codegen {

class PassGate : public llvm::OptPassGate {
 public:
  PassGate(const kir::Kernel& kernel, const HostTarget& target);

  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef unit) override;

 private:
  bool has_register_tile_;
};

}  // namespace pantala::codegen
