// A loaded plan, flattened for the walk: what one step costs besides its kernels is a table lookup
// per launch and a barrier where an edge needs one.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "device/cpu/pool.h"
#include "device/host_memory.h"
#include "plan/plan.h"

namespace pantala::device::cpu {

// What belongs to one worker, on cache lines of its own.
struct alignas(kCacheLine) WorkerState {
  std::byte* scratch = nullptr;
  std::int32_t status = 0;
};

class LoadedPlan {
 public:
  // Loads the plan's objects if they are for this processor or for a class of processors that it
  // belongs to, otherwise compiles its kernels.
  LoadedPlan(plan::Plan plan, int compile_threads);

  const plan::Plan& plan() const { return plan_; }
  const ArenaGaps& gaps() const { return binder_.gaps(); }
  std::byte* arena() const { return binder_.bases()[0]; }  // as it was bound last
  // Sets addresses and uniforms for the next walk.
  void bind(const RunArguments& arguments, const HostMemory& memory);
  // Runs all launches, or those behind the preparation: called by every worker of the pool at once.
  // Which items a worker takes depends on the number of workers; the results do not. `finished` is
  // RunArguments::finished, or null.
  using Finished = std::atomic<std::int64_t>*;
  void walk(WorkerPool& pool, int worker, WorkerState& state, Finished finished) const;
  // The same with clocks: every worker notes its shares, for which there must be room.
  void walk_timed(WorkerPool& pool, int worker, WorkerState& state, Finished finished,
                  RunTimes& times) const;

 private:
  // An argument set: items first_item, ... of its launch.
  struct Row {
    std::int64_t first_item = 0, items = 0;
    std::size_t buffers = 0, params = 0;  // where its pointers and slots start
  };
  struct Step {
    codegen::KernelFn kernel = nullptr;
    std::size_t first_row = 0, rows = 0;
    std::int64_t items = 0;
    bool barrier = false;  // before it
    bool serial = false;
  };
  struct Place {
    std::size_t base = 0;
    std::int64_t offset = 0;
  };
  struct UniformSlot {
    std::size_t slot = 0, uniform = 0;
  };

  // All launches before this one have finished, on all workers.
  static void tell(Finished finished, std::size_t launch, int worker) {
    if (finished && worker == 0)
      finished->store(static_cast<std::int64_t>(launch), std::memory_order_release);
  }
  void load_code(int threads);
  void add_step(const plan::Launch& launch, bool barrier);
  std::size_t first_step() const { return is_prepared_ ? plan_.preparation : 0; }
  // A worker's share of a step; how many items it was.
  std::int64_t run_share(const Step& step, int workers, int worker, WorkerState& state) const;
  void run_items(const Step& step, std::int64_t begin, std::int64_t end, WorkerState& state) const;

  plan::Plan plan_;
  bool is_prepared_ = false;  // for the next walk
  codegen::CodeLibrary library_;
  Binder binder_;
  std::vector<Step> steps_;
  std::vector<Row> rows_;
  std::vector<Place> places_;  // of pointers
  std::vector<void*> pointers_;
  std::vector<std::int64_t> slots_;
  std::vector<UniformSlot> uniform_slots_;
};

}  // namespace pantala::device::cpu
