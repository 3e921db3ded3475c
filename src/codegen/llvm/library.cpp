// Kernels by name, over the code that the process shares.
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "codegen/llvm/code.h"
#include "pantala/error.h"

namespace pantala::codegen {

struct CodeLibrary::Impl {
  struct Known {
    CodePtr code;
    KernelFn function = nullptr;
  };
  explicit Impl(HostTarget t) : target(std::move(t)) {}

  const HostTarget target;
  const std::shared_ptr<CodeCache> cache = CodeCache::process();
  std::mutex adding;  // one caller at a time compiles and links; find() goes on meanwhile
  mutable std::shared_mutex finding;
  std::map<std::string, Known, std::less<>> by_name;
  std::size_t compiled = 0;
};

CodeLibrary::CodeLibrary(HostTarget target) : impl_(std::make_unique<Impl>(std::move(target))) {}
CodeLibrary::~CodeLibrary() = default;

void CodeLibrary::add(std::span<const kir::Kernel> kernels, int threads) {
  const std::lock_guard lock(impl_->adding);
  const std::vector<CodeCache::Found> found = impl_->cache->get(kernels, impl_->target, threads);
  std::map<std::string, Impl::Known, std::less<>> fresh;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    impl_->compiled += found[k].compiled ? 1 : 0;
    const auto taken = impl_->by_name.find(kernels[k].name);
    const auto& twin = fresh.try_emplace(kernels[k].name, Impl::Known{found[k].code}).first->second;
    if (twin.code != found[k].code ||
        (taken != impl_->by_name.end() && taken->second.code != found[k].code))
      throw InternalError("code library: two kernels are named " + kernels[k].name);
  }
  for (auto& [name, known] : fresh) known.function = known.code->function();
  const std::unique_lock writing(impl_->finding);
  impl_->by_name.merge(fresh);
}

void CodeLibrary::load(const CompiledUnit& unit, const kir::Kernel* kernel) {
  const std::lock_guard lock(impl_->adding);
  if (impl_->by_name.contains(unit.name))
    throw DeviceError("loading kernel " + unit.name + ": there is a kernel of this name already");
  CodePtr code = impl_->cache->adopt(unit, kernel, impl_->target);
  const KernelFn function = code->function();
  const std::unique_lock writing(impl_->finding);
  impl_->by_name.emplace(unit.name, Impl::Known{std::move(code), function});
}

KernelFn CodeLibrary::find(std::string_view name) const {
  const std::shared_lock lock(impl_->finding);
  const auto found = impl_->by_name.find(name);
  return found == impl_->by_name.end() ? nullptr : found->second.function;
}

const HostTarget& CodeLibrary::target() const { return impl_->target; }

std::size_t CodeLibrary::compiled() const {
  const std::lock_guard lock(impl_->adding);
  return impl_->compiled;
}

}  // namespace pantala::codegen
