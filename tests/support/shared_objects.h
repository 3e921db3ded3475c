// Objects that the processes of one run of the tests share: random graphs, samples and models are
// made of the same kernels again and again, and to compile those takes most of the time of a run.
//
// A file per object; what it is the object of stands before it and is compared as a whole: the
// build, LLVM's version, the target, and the kernel as text. So nothing is taken from a file that
// compiling would not give.
#pragma once

#include <filesystem>

#include "codegen/llvm/llvm.h"

namespace pantala::tests {

class SharedObjects {
 public:
  // The folder is made if it is not there.
  explicit SharedObjects(std::filesystem::path folder);

  // The object of a kernel: another process's, or compiled here and left for others.
  codegen::CompiledUnit get(const kir::Kernel& kernel, const codegen::HostTarget& target) const;

 private:
  std::filesystem::path folder_;
};

// From now on the code that this process misses comes from there.
void share_objects(const std::filesystem::path& folder);

}  // namespace pantala::tests
