// Compiled kernels in a folder that processes share. A plan in the plan cache serves one graph and
// its options; models, batch sizes and steps that differ are still made of many of the same
// kernels, and to compile those takes most of the time until a first step.
//
// A file per kernel; what it is the object of stands before it and is compared as a whole: the
// build, LLVM's version, the target, and the kernel as text. A checksum stands behind it. So
// nothing is taken from a file that compiling would not give. Like plans, the files are code: the
// folder belongs to the user alone if it is made here. Trouble with a file keeps nobody from
// working, and the folder may be removed at any time.
#pragma once

#include <filesystem>

#include "codegen/llvm/llvm.h"

namespace pantala::compiler {

class KernelFolder {
 public:
  // The folder is made if it is not there.
  explicit KernelFolder(std::filesystem::path folder);

  // The object of a kernel: another process's, or compiled here and left for others.
  codegen::CompiledUnit get(const kir::Kernel& kernel, const codegen::HostTarget& target) const;

 private:
  std::filesystem::path folder_;
};

// From now on the code that this process misses comes from there. To be called before anything is
// compiled.
void share_kernels(const std::filesystem::path& folder);

}  // namespace pantala::compiler
