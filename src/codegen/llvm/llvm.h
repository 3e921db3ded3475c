// CPU code generation: a kernel of the kernel IR becomes a native function, through LLVM. The face
// of the module is plain C++; LLVM's headers stay in the .cpp files beside it.
//
// A kernel is compiled alone to a relocatable object that depends on nothing in the process, so
// objects can be kept on disk and loaded by a later run. Code is emitted without any licence to
// change floating point: a kernel computes the bits that the kernel-IR interpreter computes (NaNs:
// any NaN for a NaN).
//
// Memory contract of a launch: a buffer that a kernel only reads does not overlap a buffer that it
// writes, and scratch overlaps neither; two buffers that are written may overlap. Elements are
// aligned to their size, nothing more. `stream` stores are ordered before the function returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/compiled.h"
#include "kir/kernel.h"

namespace pantala::codegen {

// The processor to generate code for, in LLVM's words, and what a schedule must know about it.
struct HostTarget {
  std::string triple;
  std::string cpu;
  std::string features;   // "+avx2,-avx512f,..."
  int vector_bytes = 16;  // the widest vector register
  int vector_registers = 16;
  bool fma = false;  // in hardware; without it `fma` is exact but slow
  friend bool operator==(const HostTarget&, const HostTarget&) = default;
};

// The processor that this process runs on.
HostTarget detect_host();
// A class of processors, to compile for another machine: x86-64 (any), x86-64-v3 (AVX2), x86-64-v4
// (AVX-512), aarch64. UnsupportedError for other names.
HostTarget known_target(std::string_view name);
// What objects are compiled for, as one text: plans keep it beside them.
std::string target_name(const HostTarget& target);
// The known class of processors of that text, where this processor runs its code; otherwise this
// processor.
HostTarget runnable_target(std::string_view text);

// A compiled kernel: `buffers` are the global buffers in order; `params` hold one 64-bit slot each
// (i64 as it is, i32 and f32 in the low half, f64 as its bits); items [begin, end) are run in
// order; `scratch` is Kernel::scratch_bytes() long, 64-byte aligned and belongs to the caller's
// thread (null if the kernel has none); `status` is written only by `report`.
using KernelFn = void (*)(void* const* buffers, const std::int64_t* params, std::int64_t begin,
                          std::int64_t end, void* scratch, std::int32_t* status);

// The object is relocatable ELF.
CompiledUnit compile(const kir::Kernel& kernel, const HostTarget& target);

// For inspection: the module after the pipeline, and the code that comes out of it.
std::string llvm_ir(const kir::Kernel& kernel, const HostTarget& target);
std::string assembly(const kir::Kernel& kernel, const HostTarget& target);

// What the process has already (see CodeLibrary) is not compiled again; the rest is, by up to
// `threads` threads.
CompiledKernels compile_all(std::span<const kir::Kernel> kernels, const HostTarget& target,
                            int threads, const BeforeEach& before_each = {});

// Code in this process, as far as it is shared: of a code and a target there is one, for as long as
// a library has it.
struct CodeSummary {
  std::size_t compiled = 0;  // kernels compiled since the process began
  std::size_t shared = 0;    // codes that libraries have now
};
CodeSummary code_summary();

// Kernels by name, and the machine code that stands behind them. Libraries of one process share
// code: what one has is neither compiled nor loaded again by another. Every function may be called
// from any thread. Addresses are valid as long as the library lives.
class CodeLibrary {
 public:
  explicit CodeLibrary(HostTarget target = detect_host());
  ~CodeLibrary();
  CodeLibrary(const CodeLibrary&) = delete;
  CodeLibrary& operator=(const CodeLibrary&) = delete;

  // Compiles with up to `threads` threads what the process does not have yet, and loads it. A name
  // stands for one code: InternalError otherwise.
  void add(std::span<const kir::Kernel> kernels, int threads = 1);
  // Loads an object made earlier by compile() for the same target. DeviceError if it is not one.
  // With the kernel that it was made from, the code is shared as compiled code is.
  void load(const CompiledUnit& unit, const kir::Kernel* kernel = nullptr);
  // Null if there is no kernel of this name.
  KernelFn find(std::string_view name) const;

  const HostTarget& target() const;
  // How many kernels this library's add() has compiled.
  std::size_t compiled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pantala::codegen
