#include "device/cpu/loaded_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "pantala/error.h"
#include "plan/dependencies.h"

namespace pantala::device::cpu {

LoadedPlan::LoadedPlan(plan::Plan plan, int compile_threads)
    : plan_(std::move(plan)), library_(codegen::runnable_target(plan_.target)), binder_(plan_) {
  load_code(compile_threads);
  // A single item is nobody's but the first worker's.
  for (plan::Launch& launch : plan_.launches) launch.serial = launch.serial || launch.items() <= 1;
  const std::vector<bool> barriers = plan::barriers(plan_.launches);
  for (std::size_t k = 0; k < plan_.launches.size(); ++k) add_step(plan_.launches[k], barriers[k]);
  pointers_.resize(places_.size());
}

void LoadedPlan::load_code(int threads) {
  const bool ours = plan_.target == codegen::target_name(library_.target());
  std::vector<kir::Kernel> kernels;
  for (plan::Unit& unit : plan_.units) {
    if (ours && !unit.object.empty()) {
      library_.load({unit.entry, std::move(unit.object)}, unit.kernel ? &*unit.kernel : nullptr);
      unit.object.clear();
    } else if (unit.kernel) {
      kernels.push_back(*unit.kernel);
    } else {
      throw DeviceError(fmt::format("plan '{}': unit '{}' was compiled for {}, this is {}",
                                    plan_.name, unit.entry, plan_.target,
                                    codegen::target_name(library_.target())));
    }
  }
  library_.add(kernels, threads);
}

void LoadedPlan::add_step(const plan::Launch& launch, bool barrier) {
  Step step{.kernel = library_.find(plan_.units[launch.unit].entry),
            .first_row = rows_.size(),
            .rows = 0,
            .items = 0,
            .barrier = barrier,
            .serial = launch.serial};
  for (const plan::ArgumentSet& set : launch.sets) {
    if (set.items == 0) continue;
    rows_.push_back({step.items, set.items, places_.size(), slots_.size()});
    step.items += set.items;
    for (const std::uint32_t b : set.buffers)
      places_.push_back({Binder::base_of(plan_.buffers[b]), plan_.buffers[b].offset});
    for (const plan::Scalar& s : set.params) {
      if (s.is_uniform)
        uniform_slots_.push_back({slots_.size(), static_cast<std::size_t>(s.value)});
      slots_.push_back(s.is_uniform ? 0 : s.value);
    }
  }
  step.rows = rows_.size() - step.first_row;
  steps_.push_back(step);
}

void LoadedPlan::bind(const RunArguments& arguments, const HostMemory& memory) {
  if (binder_.bind(plan_, arguments, memory))
    for (std::size_t k = 0; k < places_.size(); ++k) {
      std::byte* base = binder_.bases()[places_[k].base];
      pointers_[k] = base ? base + places_[k].offset : nullptr;
    }
  is_prepared_ = arguments.is_prepared;
  for (const UniformSlot& u : uniform_slots_) slots_[u.slot] = arguments.uniforms[u.uniform];
}

void LoadedPlan::walk(WorkerPool& pool, int worker, WorkerState& state, Finished finished) const {
  const int workers = pool.workers();
  for (std::size_t k = first_step(); k < steps_.size(); ++k) {
    if (steps_[k].barrier) pool.barrier();
    if (steps_[k].barrier || workers == 1) tell(finished, k, worker);
    run_share(steps_[k], workers, worker, state);
  }
}

void LoadedPlan::walk_timed(WorkerPool& pool, int worker, WorkerState& state, Finished finished,
                            RunTimes& times) const {
  const int workers = pool.workers();
  const auto now = [&] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - times.begin).count();
  };
  ShareTime* const shares = times.shares.data() + static_cast<std::size_t>(worker) * steps_.size();
  std::fill_n(shares, first_step(), ShareTime{});
  for (std::size_t k = first_step(); k < steps_.size(); ++k) {
    if (steps_[k].barrier) pool.barrier();
    if (steps_[k].barrier || workers == 1) tell(finished, k, worker);
    shares[k].begin = now();
    shares[k].items = run_share(steps_[k], workers, worker, state);
    shares[k].end = now();
  }
}

std::int64_t LoadedPlan::run_share(const Step& step, int workers, int worker,
                                   WorkerState& state) const {
  if (step.serial && worker > 0) return 0;
  const std::int64_t begin = step.serial ? 0 : step.items * worker / workers,
                     end = step.serial ? step.items : step.items * (worker + 1) / workers;
  run_items(step, begin, end, state);
  return end - begin;
}

void LoadedPlan::run_items(const Step& step, std::int64_t begin, std::int64_t end,
                           WorkerState& state) const {
  if (begin >= end) return;
  const auto rows = std::span(rows_).subspan(step.first_row, step.rows);
  // The last row that starts at or before `begin`.
  auto row = std::ranges::upper_bound(rows, begin, {}, &Row::first_item) - 1;
  for (; begin < end; ++row) {
    const std::int64_t stop = std::min(end, row->first_item + row->items);
    step.kernel(pointers_.data() + row->buffers, slots_.data() + row->params,
                begin - row->first_item, stop - row->first_item, state.scratch, &state.status);
    begin = stop;
  }
}

}  // namespace pantala::device::cpu
