// The code of this process: of a code (kir::same_code) and a target there is at most one, compiled
// and linked once and shared by all that hold it. When the last one lets go of it, it goes.
//
// Two threads that want the same code at once compile it once: the second waits for the first.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/llvm/llvm.h"

namespace pantala::codegen {

// The name of the function in every object.
inline constexpr const char* kObjectSymbol = "pantala_kernel";

// linker.cpp: objects to machine code. Any thread may use it.
class Linker {
 public:
  Linker();
  ~Linker();
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  struct Linked {
    KernelFn function = nullptr;
    void* symbols = nullptr;  // the linker's own
  };
  Linked link(const CompiledUnit& unit);  // DeviceError if the object is not one for this process
  void unlink(const Linked& linked) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class CodeCache;

// An object, and a function once somebody asks for it.
class Code {
 public:
  // Key and number: of its entry in the cache; number 0 if it has none.
  Code(std::shared_ptr<CodeCache> cache, CompiledUnit unit, std::uint64_t key,
       std::uint64_t number);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  const CompiledUnit& unit() const { return unit_; }
  KernelFn function() const;

 private:
  const std::shared_ptr<CodeCache> cache_;
  const CompiledUnit unit_;
  const std::uint64_t key_, number_;
  mutable std::mutex linking_;
  mutable Linker::Linked linked_;
};
using CodePtr = std::shared_ptr<const Code>;

class CodeCache : public std::enable_shared_from_this<CodeCache> {
 public:
  // The one of the process.
  static std::shared_ptr<CodeCache> process();

  // Who makes what is missing: compile(), unless this is called before anything else. What it gives
  // for a kernel and a target must be what compile() would.
  using Compiler = std::function<CompiledUnit(const kir::Kernel&, const HostTarget&)>;
  void set_compiler(Compiler compiler) { compiler_ = std::move(compiler); }

  struct Found {
    CodePtr code;
    bool compiled = false;  // by this call
  };
  // The code of each kernel; what is missing is compiled by up to `threads` threads, which call
  // `before_each` before each of them: a CancelledError that it throws ends the call.
  std::vector<Found> get(std::span<const kir::Kernel> kernels, const HostTarget& target,
                         int threads, const std::function<void()>& before_each = {});
  // An object that was made before. The kernel, if it is known, makes it the code of that kernel;
  // if the process has that already, the object is not needed. DeviceError if it cannot be linked.
  CodePtr adopt(const CompiledUnit& unit, const kir::Kernel* kernel, const HostTarget& target);

  CodeSummary summary() const;
  Linker& linker() { return linker_; }

 private:
  friend class Code;
  struct Entry {
    std::uint64_t number;  // changes when its code is made anew
    HostTarget target;
    kir::Kernel kernel;
    std::weak_ptr<const Code> code = {};
    std::shared_future<CodePtr> coming = {};  // while it is compiled
  };
  struct Job {
    const kir::Kernel* kernel;
    std::uint64_t key, number;
    std::promise<CodePtr> promise = {};
  };
  struct Compiled {
    CompiledUnit unit;
    std::exception_ptr error = {};
  };

  using Entries = std::unordered_multimap<std::uint64_t, Entry>;

  // With the lock held; null, end() if there is none.
  Entry* find(const kir::Kernel& kernel, const HostTarget& target, std::uint64_t key);
  Entries::iterator position(std::uint64_t key, std::uint64_t number);

  void finish(std::span<Job> jobs, std::vector<Compiled> results);
  // What was not finished can be tried again by others.
  void abandon(std::span<const Job> jobs) noexcept;
  std::vector<Found> get_once(std::span<const kir::Kernel> kernels, const HostTarget& target,
                              int threads, const std::function<void()>& before_each);
  std::vector<Compiled> compile_jobs(std::span<const Job> jobs, const HostTarget& target,
                                     int threads, const std::function<void()>& before_each) const;
  void forget(std::uint64_t key, std::uint64_t number) noexcept;

  Compiler compiler_ = compile;
  Linker linker_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::uint64_t last_number_ = 0;
  std::size_t compiled_ = 0;
};

}  // namespace pantala::codegen
