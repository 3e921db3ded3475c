// Objects become machine code in this process by ORC's JITLink layer. Each has a table of symbols
// of its own, so that it can go alone; it may call only the functions of the C library named here
// (what LLVM falls back to on processors that lack an instruction).
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
#include <mutex>
#include <utility>

#include "codegen/llvm/code.h"
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
      // The same while the rounding mode is nearest even.
      {"roundeven", symbol(static_cast<Real*>(::nearbyint))},
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

struct Linker::Impl {
  Impl()
      : session(expect(llvm::orc::SelfExecutorProcessControl::Create(), "code library")),
        linker(session, session.getExecutorProcessControl().getMemMgr()),
        library(session.createBareJITDylib("library")) {
    expect(library.define(llvm::orc::absoluteSymbols(fallbacks(session))), "code library");
  }
  ~Impl() { llvm::consumeError(session.endSession()); }

  std::mutex mutex;  // one object at a time is linked or goes
  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer linker;
  llvm::orc::JITDylib& library;
  std::uint64_t last_number = 0;
};

Linker::Linker() : impl_(std::make_unique<Impl>()) {}
Linker::~Linker() = default;

Linker::Linked Linker::link(const CompiledUnit& unit) {
  const std::string what = "loading kernel " + unit.name;
  const llvm::StringRef bytes(reinterpret_cast<const char*>(unit.object.data()),
                              unit.object.size());
  check_machine(bytes, unit.name);
  const std::lock_guard lock(impl_->mutex);
  llvm::orc::JITDylib& symbols =
      impl_->session.createBareJITDylib("kernel " + std::to_string(++impl_->last_number));
  symbols.addToLinkOrder(impl_->library);
  try {
    expect(impl_->linker.add(symbols, llvm::MemoryBuffer::getMemBufferCopy(bytes, unit.name)),
           what);
    const auto found = expect(impl_->session.lookup({&symbols}, kObjectSymbol), what);
    return {found.getAddress().toPtr<KernelFn>(), &symbols};
  } catch (...) {
    llvm::consumeError(impl_->session.removeJITDylib(symbols));
    throw;
  }
}

void Linker::unlink(const Linked& linked) noexcept {
  const std::lock_guard lock(impl_->mutex);
  llvm::consumeError(
      impl_->session.removeJITDylib(*static_cast<llvm::orc::JITDylib*>(linked.symbols)));
}

}  // namespace pantala::codegen
