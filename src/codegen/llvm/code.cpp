#include "codegen/llvm/code.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/hash.h"
#include "base/parallel.h"
#include "pantala/cancelled.h"

namespace pantala::codegen {

namespace {

std::uint64_t key_of(const kir::Kernel& kernel, const HostTarget& target) {
  std::uint64_t hash = kir::hash_code(kernel);
  for (const std::string* text : {&target.triple, &target.cpu, &target.features})
    hash = hash_combine(hash, fnv1a(*text));
  return hash;
}

}  // namespace

Code::Code(std::shared_ptr<CodeCache> cache, CompiledUnit unit, std::uint64_t key,
           std::uint64_t number)
    : cache_(std::move(cache)), unit_(std::move(unit)), key_(key), number_(number) {}

Code::~Code() {
  if (linked_.symbols) cache_->linker().unlink(linked_);
  if (number_ != 0) cache_->forget(key_, number_);
}

KernelFn Code::function() const {
  const std::lock_guard lock(linking_);
  if (!linked_.symbols) linked_ = cache_->linker().link(unit_);
  return linked_.function;
}

std::shared_ptr<CodeCache> CodeCache::process() {
  static const auto shared = std::make_shared<CodeCache>();
  return shared;
}

CodeCache::Entry* CodeCache::find(const kir::Kernel& kernel, const HostTarget& target,
                                  std::uint64_t key) {
  const auto [first, last] = entries_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.target == target && kir::same_code(entry.second.kernel, kernel);
  });
  return found == last ? nullptr : &found->second;
}

CodeCache::Entries::iterator CodeCache::position(std::uint64_t key, std::uint64_t number) {
  const auto [first, last] = entries_.equal_range(key);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second.number == number; });
  return found == last ? entries_.end() : found;
}

void CodeCache::forget(std::uint64_t key, std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = position(key, number);
  if (at != entries_.end()) entries_.erase(at);
}

std::vector<CodeCache::Found> CodeCache::get(std::span<const kir::Kernel> kernels,
                                             const HostTarget& target, int threads,
                                             const std::function<void()>& before_each) {
  while (true) {
    try {
      return get_once(kernels, target, threads, before_each);
    } catch (const CancelledError&) {
      // It may be another caller who was to compile a kernel and was called off.
      if (before_each) before_each();
    }
  }
}

std::vector<CodeCache::Found> CodeCache::get_once(std::span<const kir::Kernel> kernels,
                                                  const HostTarget& target, int threads,
                                                  const std::function<void()>& before_each) {
  std::vector<Found> result(kernels.size());
  std::vector<std::shared_future<CodePtr>> coming(kernels.size());
  std::vector<Job> jobs;
  {
    // Nothing that is let go of here may be the last: the destructor of a code takes this lock.
    const std::lock_guard lock(mutex_);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::uint64_t key = key_of(kernels[k], target);
      Entry* entry = find(kernels[k], target, key);
      if (entry && (result[k].code = entry->code.lock())) continue;
      if (!entry) entry = &entries_.emplace(key, Entry{0, target, kernels[k]})->second;
      if (!entry->coming.valid()) {
        entry->number = ++last_number_;
        Job& job = jobs.emplace_back(Job{&kernels[k], key, entry->number});
        entry->coming = job.promise.get_future().share();
        result[k].compiled = true;
      }
      coming[k] = entry->coming;
    }
  }
  try {
    finish(jobs, compile_jobs(jobs, target, threads, before_each));
  } catch (...) {
    abandon(jobs);
    throw;
  }
  for (std::size_t k = 0; k < kernels.size(); ++k)
    if (!result[k].code) result[k].code = coming[k].get();
  return result;
}

std::vector<CodeCache::Compiled> CodeCache::compile_jobs(
    std::span<const Job> jobs, const HostTarget& target, int threads,
    const std::function<void()>& before_each) const {
  std::vector<Compiled> results(jobs.size());
  parallel_for(jobs.size(), threads, [&](std::size_t k) {
    try {
      if (before_each) before_each();
      results[k].unit = compiler_(*jobs[k].kernel, target);
    } catch (...) { results[k].error = std::current_exception(); }
  });
  return results;
}

void CodeCache::finish(std::span<Job> jobs, std::vector<Compiled> results) {
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    Job& job = jobs[k];
    CodePtr code;
    if (!results[k].error)
      code = std::make_shared<const Code>(shared_from_this(), std::move(results[k].unit), job.key,
                                          job.number);
    const std::lock_guard lock(mutex_);
    if (code) {
      ++compiled_;
      Entry& entry = position(job.key, job.number)->second;
      entry.code = code;
      entry.coming = {};
      job.promise.set_value(code);
    } else {
      entries_.erase(position(job.key, job.number));
      job.promise.set_exception(results[k].error);
    }
  }
}

void CodeCache::abandon(std::span<const Job> jobs) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs)
    if (const auto at = position(job.key, job.number);
        at != entries_.end() && at->second.coming.valid())
      entries_.erase(at);
}

CodePtr CodeCache::adopt(const CompiledUnit& unit, const kir::Kernel* kernel,
                         const HostTarget& target) {
  const std::uint64_t key = kernel ? key_of(*kernel, target) : 0;
  std::shared_future<CodePtr> coming;
  if (kernel) {
    const std::lock_guard lock(mutex_);
    if (const Entry* entry = find(*kernel, target, key)) {
      if (CodePtr code = entry->code.lock()) return code;
      coming = entry->coming;
    }
  }
  if (coming.valid()) return coming.get();
  std::uint64_t number = 0;
  if (kernel) {
    const std::lock_guard lock(mutex_);
    number = ++last_number_;
  }
  const auto code = std::make_shared<const Code>(shared_from_this(), unit, key, number);
  code->function();
  if (!kernel) return code;
  const std::lock_guard lock(mutex_);
  Entry* entry = find(*kernel, target, key);
  // Somebody was faster.
  if (entry && (entry->coming.valid() || !entry->code.expired())) return code;
  if (!entry) entry = &entries_.emplace(key, Entry{0, target, *kernel})->second;
  entry->number = number;
  entry->code = code;
  return code;
}

CodeSummary CodeCache::summary() const {
  const std::lock_guard lock(mutex_);
  return {.compiled = compiled_, .shared = entries_.size()};
}

CodeSummary code_summary() { return CodeCache::process()->summary(); }

CompiledKernels compile_all(std::span<const kir::Kernel> kernels, const HostTarget& target,
                            int threads, const std::function<void()>& before_each) {
  const std::vector<CodeCache::Found> found =
      CodeCache::process()->get(kernels, target, threads, before_each);
  CompiledKernels result;
  std::unordered_map<const Code*, std::size_t> units;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto [unit, fresh] = units.try_emplace(found[k].code.get(), result.units.size());
    result.unit_of.push_back(unit->second);
    if (!fresh) continue;
    result.units.push_back(found[k].code->unit());
    result.units.back().name = kernels[k].name;
    if (!found[k].compiled) result.units.back().milliseconds = 0;
  }
  return result;
}

}  // namespace pantala::codegen
