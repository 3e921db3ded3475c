// Machine code in this process: objects are linked by ORC's JITLink layer into one table of
// symbols. Objects may call only the functions of the C library named here (what LLVM falls back to
// on processors that lack an instruction).
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "codegen/llvm/llvm.h"
#include "pantala/error.h"

namespace pantala::codegen {

namespace {

template <class T>
T expect(llvm::Expected<T> value, const std::string& what) {
  if (!value) throw DeviceError(what + ": " + llvm::toString(value.takeError()));
  return std::move(*value);
}

void expect(llvm::Error error, const std::string& what) {
  if (error) throw DeviceError(what + ": " + llvm::toString(std::move(error)));
}

template <class Function>
llvm::orc::ExecutorSymbolDef symbol(Function* function) {
  return {llvm::orc::ExecutorAddr::fromPtr(function),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
}

using Real = double(double);
using Real32 = float(float);

llvm::orc::SymbolMap fallbacks(llvm::orc::ExecutionSession& session) {
  const std::pair<const char*, llvm::orc::ExecutorSymbolDef> list[] = {
      {"fma", symbol(static_cast<double (*)(double, double, double)>(::fma))},
      {"fmaf", symbol(static_cast<float (*)(float, float, float)>(::fmaf))},
      {"floor", symbol(static_cast<Real*>(::floor))},
      {"floorf", symbol(static_cast<Real32*>(::floorf))},
      {"ceil", symbol(static_cast<Real*>(::ceil))},
      {"ceilf", symbol(static_cast<Real32*>(::ceilf))},
      {"roundeven", symbol(static_cast<Real*>(
                        ::nearbyint))},  // the same while the rounding mode is nearest even
      {"roundevenf", symbol(static_cast<Real32*>(::nearbyintf))},
      {"memcpy", symbol(::memcpy)},
      {"memmove", symbol(::memmove)},
      {"memset", symbol(::memset)},
  };
  llvm::orc::SymbolMap map;
  for (const auto& [name, definition] : list) map[session.intern(name)] = definition;
  return map;
}

// The linker would take an object of any processor.
void check_machine(llvm::StringRef bytes, const std::string& name) {
  const auto object =
      expect(llvm::object::ObjectFile::createObjectFile({bytes, name}), "loading kernel " + name);
  const llvm::Triple process(llvm::sys::getProcessTriple());
  if (object->getArch() != process.getArch())
    throw DeviceError("loading kernel " + name + ": it is code for " +
                      llvm::Triple::getArchTypeName(object->getArch()).str() +
                      ", this process is " + process.getArchName().str());
}

}  // namespace

struct CodeLibrary::Impl {
  explicit Impl(HostTarget host)
      : target(std::move(host)),
        session(expect(llvm::orc::SelfExecutorProcessControl::Create(), "code library")),
        linker(session, session.getExecutorProcessControl().getMemMgr()),
        symbols(session.createBareJITDylib("kernels")) {
    expect(symbols.define(llvm::orc::absoluteSymbols(fallbacks(session))), "code library");
  }
  ~Impl() { llvm::consumeError(session.endSession()); }

  KernelFn link(const CompiledUnit& unit) {
    const llvm::StringRef bytes(reinterpret_cast<const char*>(unit.object.data()),
                                unit.object.size());
    check_machine(bytes, unit.name);
    expect(linker.add(symbols, llvm::MemoryBuffer::getMemBufferCopy(bytes, unit.name)),
           "loading kernel " + unit.name);
    const auto found = expect(session.lookup({&symbols}, unit.name), "loading kernel " + unit.name);
    return found.getAddress().toPtr<KernelFn>();
  }

  struct Known {
    kir::Kernel kernel;
    KernelFn function;
  };

  const HostTarget target;
  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer linker;
  llvm::orc::JITDylib& symbols;

  std::mutex adding;  // one caller at a time compiles and links; find() goes on meanwhile
  std::unordered_multimap<std::uint64_t, Known> by_code;
  std::size_t compiled = 0;
  mutable std::shared_mutex finding;
  std::map<std::string, KernelFn, std::less<>> by_name;

  const Known* known(const kir::Kernel& kernel, std::uint64_t hash) const {
    const auto [first, last] = by_code.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (kir::same_code(it->second.kernel, kernel)) return &it->second;
    return nullptr;
  }

  KernelFn find(std::string_view name) const {
    const std::shared_lock lock(finding);
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }

  void name(const std::string& kernel, KernelFn function) {
    const std::unique_lock lock(finding);
    by_name.emplace(kernel, function);
  }

  // A name stands for one code, here and in what is about to be added.
  void check_names(std::span<const kir::Kernel> kernels) const {
    std::map<std::string_view, const kir::Kernel*> fresh;
    for (const kir::Kernel& kernel : kernels) {
      const KernelFn taken = find(kernel.name);
      const Known* same = taken ? known(kernel, kir::hash_code(kernel)) : nullptr;
      const kir::Kernel* twin = fresh.emplace(kernel.name, &kernel).first->second;
      if ((taken && (!same || same->function != taken)) || !kir::same_code(*twin, kernel))
        throw InternalError("code library: two kernels are named " + kernel.name);
    }
  }
};

CodeLibrary::CodeLibrary(HostTarget target) : impl_(std::make_unique<Impl>(std::move(target))) {}
CodeLibrary::~CodeLibrary() = default;

void CodeLibrary::add(std::span<const kir::Kernel> kernels, int threads) {
  const std::lock_guard lock(impl_->adding);
  impl_->check_names(kernels);
  std::vector<kir::Kernel> missing;
  for (const kir::Kernel& kernel : kernels)
    if (!impl_->known(kernel, kir::hash_code(kernel))) missing.push_back(kernel);
  const CompiledKernels compiled = compile_all(missing, impl_->target, threads);
  for (std::size_t k = 0; k < missing.size(); ++k) {
    const CompiledUnit& unit = compiled.units[compiled.unit_of[k]];
    const std::uint64_t hash = kir::hash_code(missing[k]);
    if (impl_->known(missing[k], hash)) continue;
    impl_->by_code.emplace(hash, Impl::Known{missing[k], impl_->link(unit)});
    ++impl_->compiled;
  }
  for (const kir::Kernel& kernel : kernels)
    impl_->name(kernel.name, impl_->known(kernel, kir::hash_code(kernel))->function);
}

void CodeLibrary::load(const CompiledUnit& unit) {
  const std::lock_guard lock(impl_->adding);
  if (impl_->find(unit.name))
    throw DeviceError("loading kernel " + unit.name + ": there is a kernel of this name already");
  impl_->name(unit.name, impl_->link(unit));
}

KernelFn CodeLibrary::find(std::string_view name) const { return impl_->find(name); }

const HostTarget& CodeLibrary::target() const { return impl_->target; }

std::size_t CodeLibrary::compiled() const {
  const std::lock_guard lock(impl_->adding);
  return impl_->compiled;
}

}  // namespace pantala::codegen
