#include "device/cpu/probe.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "device/cpu/pool.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "kir/builder.h"

namespace pantala::device::cpu {

namespace {

using kir::Var;

constexpr int kChains = 12;                      // independent sums: more than a core has under way
constexpr std::int64_t kRounds = 1 << 14;        // of an item
constexpr std::int64_t kBlock = 1 << 16;         // elements of an item that reads or copies
constexpr int kLoads = 4;                        // vectors of a round
constexpr int kShortTurns = 16, kLongTurns = 3;  // at least, of microseconds and of milliseconds
constexpr std::chrono::microseconds kSpin{200};

// An item is kRounds multiply-adds of every chain; what comes out is stored, so that it is needed.
kir::Kernel multiply_adds(int lanes) {
  kir::Builder b("probe_flops");
  const kir::BufferId out = b.buffer("out", DType::f32, kir::Access::write);
  const Var factor = b.splat(b.param("factor", DType::f32), lanes),
            summand = b.splat(b.param("summand", DType::f32), lanes);
  std::vector<Var> chains;
  for (int k = 0; k < kChains; ++k) chains.push_back(summand * static_cast<double>(k + 1));
  chains = b.loop(b.i64(0), b.i64(kRounds), b.i64(1), chains, [&](Var, std::span<const Var> now) {
    std::vector<Var> next;
    for (const Var& x : now) next.push_back(b.fma(x, factor, summand));
    return next;
  });
  Var sum = chains[0];
  for (std::size_t k = 1; k < chains.size(); ++k) sum = sum + chains[k];
  b.store(out, b.item() * lanes, sum);
  return b.finish();
}

kir::Kernel reads(int lanes) {
  kir::Builder b("probe_read");
  const kir::BufferId in = b.buffer("in", DType::f32, kir::Access::read),
                      out = b.buffer("out", DType::f32, kir::Access::write);
  const Var begin = b.item() * kBlock;
  std::vector<Var> sums;
  for (int k = 0; k < kLoads; ++k) sums.push_back(b.constant({DType::f32, lanes}, 0.0));
  sums = b.loop(
      begin, begin + kBlock, b.i64(kLoads * lanes), sums, [&](Var at, std::span<const Var> now) {
        std::vector<Var> next;
        for (int k = 0; k < kLoads; ++k)
          next.push_back(now[static_cast<std::size_t>(k)] + b.load(in, at + k * lanes, lanes));
        return next;
      });
  Var sum = sums[0];
  for (std::size_t k = 1; k < sums.size(); ++k) sum = sum + sums[k];
  b.store(out, b.item() * lanes, sum);
  return b.finish();
}

kir::Kernel copies(int lanes) {
  kir::Builder b("probe_copy");
  const kir::BufferId in = b.buffer("in", DType::f32, kir::Access::read),
                      out = b.buffer("out", DType::f32, kir::Access::write);
  const Var begin = b.item() * kBlock;
  b.loop(begin, begin + kBlock, b.i64(lanes),
         [&](Var at) { b.store(out, at, b.load(in, at, lanes)); });
  return b.finish();
}

// A kernel's items, shared out over the workers of a pool.
struct Turn {
  codegen::KernelFn kernel;
  std::vector<void*> buffers;
  std::vector<std::int64_t> params;
  std::int64_t items;
  int workers;

  static void run(void* opaque, int worker) {
    const Turn& turn = *static_cast<Turn*>(opaque);
    std::int32_t status = 0;
    turn.kernel(turn.buffers.data(), turn.params.data(), turn.items * worker / turn.workers,
                turn.items * (worker + 1) / turn.workers, nullptr, &status);
  }
};

// Seconds of the best of the turns that fit into the time, but of so many at least: whoever else
// uses the processors must not hit them all.
double best_of(WorkerPool& pool, Turn turn, int least, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  turn.workers = pool.workers();
  const Clock::time_point start = Clock::now();
  double best = 0;
  for (int turns = 0; turns < least || since(start) < seconds; ++turns) {
    const Clock::time_point begin = Clock::now();
    pool.run(&Turn::run, &turn);
    const double taken = std::max(since(begin), 1e-9);
    best = turns == 0 ? taken : std::min(best, taken);
  }
  return best;
}

std::int64_t bits_of(float x) { return plan::slot_of(x); }

}  // namespace

Probe probe_host(const ProbeOptions& options) {
  WorkerPool pool(options.workers == 0 ? default_workers() : options.workers, kSpin),
      alone(1, kSpin);
  codegen::CodeLibrary library;
  const int lanes = library.target().vector_bytes / 4;
  library.add(std::vector{multiply_adds(lanes), reads(lanes), copies(lanes)}, pool.workers());

  const std::int64_t blocks = std::max<std::int64_t>(
      static_cast<std::int64_t>(options.megabytes * 1e6) / (kBlock * 4), pool.workers());
  HostBlock from(blocks * kBlock * 4, false), to(blocks * kBlock * 4, false);
  // Memory that nobody has written is a single page of zeros for whoever reads it.
  std::memset(from.data(), 1, static_cast<std::size_t>(from.bytes()));
  std::memset(to.data(), 1, static_cast<std::size_t>(to.bytes()));
  Probe probe{.workers = pool.workers()};
  const auto flops = [&](WorkerPool& by) {
    const Turn turn{library.find("probe_flops"),
                    {to.data()},
                    {bits_of(0.999F), bits_of(0.001F)},
                    by.workers(),
                    1};
    return static_cast<double>(2 * kChains * lanes * kRounds) * by.workers() /
           best_of(by, turn, kShortTurns, options.seconds);
  };
  probe.flops_of_one = flops(alone);
  probe.flops = flops(pool);
  const double bytes = static_cast<double>(blocks * kBlock * 4);
  probe.copy_bytes =
      2 * bytes /
      best_of(pool, {library.find("probe_copy"), {from.data(), to.data()}, {}, blocks, 1},
              kLongTurns, options.seconds);
  probe.read_bytes =
      bytes / best_of(pool, {library.find("probe_read"), {to.data(), from.data()}, {}, blocks, 1},
                      kLongTurns, options.seconds);
  return probe;
}

}  // namespace pantala::device::cpu
