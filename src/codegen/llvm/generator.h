// LLVM on its way from a module to a file, for one target: a short pipeline (the emitter writes
// unrolled vector code in SSA form, so there is nothing to vectorise, unroll or promote) and the
// code generator, with floating-point fusion off.
//
// To make one takes as long as to compile a small kernel, so they are made once and take module
// after module (Generators). Nothing of a module stays behind: objects of the same code are equal,
// whatever a generator has compiled before.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace pantala::codegen {

enum class FileKind { object, assembly };

class Generator {
 public:
  // UnsupportedError if this LLVM has no code generator for the target.
  Generator(const HostTarget& target, FileKind kind);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  const HostTarget& target() const;
  const llvm::TargetMachine& machine() const;
  // Redundant addresses and constants go, invariants leave their loops.
  void optimise(llvm::Module& module);
  // The file of an optimised module. After an exception the generator is of no use.
  std::string generate(llvm::Module& module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Generators of objects that nobody uses at the moment. Any thread may take one.
class Generators {
 public:
  static Generators& process();

  std::unique_ptr<Generator> take(const HostTarget& target);
  void give_back(std::unique_ptr<Generator> generator);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Generator>> idle_;  // the latest one last
};

}  // namespace pantala::codegen
