// Matrix products by generated kernels: GFLOP/s and the share of the fma peak, with one and two
// threads. bench/contract_peer.py runs the same cases with PyTorch, in turns.
//
//   bench_contract [--all] [--names] [--seconds=0.3] [--k-block=N] [--target=x86-64-v3] [words]
//
// Only the cases whose names contain all words.
//  - --all also runs, on one thread, the best tiling of every structure and prints what it reached
//    beside what the model predicted.
//  - --names prints the names alone.
//  - --k-block tries another order of reduction.
//  - --target takes the code of another processor (x86-64-v3, ...).
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/pair.h"
#include "codegen/llvm/llvm.h"
#include "compiler/options.h"
#include "kir/builder.h"
#include "kir/simplify.h"
#include "schedule/cpu/contract/kernel.h"

namespace {

using namespace pantala;
using namespace pantala::bench;
using schedule::cpu::ContractOrder;
using schedule::cpu::ContractSizes;
using schedule::cpu::ContractSpec;
using schedule::cpu::ContractStrides;
using schedule::cpu::ContractTiling;

// Memory that starts at a cache line.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : memory_(new(std::align_val_t{64}) float[static_cast<std::size_t>(count) + 16]()),
        count_(count) {}
  ~Floats() { ::operator delete[](memory_, std::align_val_t{64}); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* data() { return memory_; }
  void fill() {
    for (std::int64_t i = 0; i < count_; ++i)
      memory_[i] = static_cast<float>((i * 37 + 11) % 101 - 50) / 64;
  }

 private:
  float* memory_;
  std::int64_t count_;
};

struct Case {
  std::string kind;
  ContractSizes sizes;
  std::string name() const { return fmt::format("{} {}x{}x{}", kind, sizes.m, sizes.n, sizes.k); }
  ContractSpec spec() const { return {.a_k_inner = kind[0] == 'n', .b_k_inner = kind[1] == 't'}; }
};

std::string describe(const ContractTiling& t) {
  return fmt::format("{}x{} lanes {} outer {} {}{}{} block {}x{}", t.rows, t.vectors * t.lanes,
                     t.lanes_along_m ? 'm' : 'n', t.rows_outer ? "rows" : "lanes",
                     t.pack_rows ? "pack-rows " : "", t.pack_lanes ? "pack-lanes " : "",
                     t.direct ? "direct" : "", t.row_block, t.lane_block);
}

class Bench {
 public:
  explicit Bench(const codegen::HostTarget& host)
      : host_(host), target_(compiler::schedule_target(host)), library_(host) {}
  const schedule::Target& target() const { return target_; }
  double compile_seconds() const { return compile_seconds_; }  // of the kernel measured last

  // Nothing but fmas: what one core can do now.
  double peak() {
    if (!library_.find("peak")) library_.add(std::vector{peak_kernel()});
    float out[12 * 16];
    void* buffers[] = {out};
    const std::int64_t count = 5000;
    double best = 0;
    for (int i = 0; i < 30; ++i) {
      const double begin = now();
      library_.find("peak")(buffers, &count, 0, 1, nullptr, nullptr);
      best = std::max(best, 2.0 * 12 * 4 * target_.lanes(DType::f32) * static_cast<double>(count) /
                                (now() - begin));
    }
    return best;
  }

  // Best GFLOP/s within `limit` seconds.
  double measure(const Case& c, const ContractTiling& tiling, const ContractOrder& order,
                 int threads, double limit) {
    const ContractSpec spec = c.spec();
    const kir::Kernel kernel =
        kir::simplify(schedule::cpu::build_contract(kernel_name(c, tiling), spec, order, tiling));
    const double before = now();
    library_.add({&kernel, 1});
    compile_seconds_ = now() - before;
    const codegen::KernelFn run = library_.find(kernel.name);
    const ContractSizes& s = c.sizes;
    Floats a(s.m * s.k), b(s.n * s.k), out(s.m * s.n);
    a.fill(), b.fill();
    const std::int64_t scratch_floats = kernel.scratch_bytes() / 4;
    Floats scratch0(scratch_floats), scratch1(scratch_floats);
    const auto params =
        schedule::cpu::contract_params(s, ContractStrides::dense(spec, s), order, tiling);
    void* buffers[] = {a.data(), b.data(), out.data()};
    const std::int64_t items = schedule::cpu::contract_items(s, tiling);
    const auto part = [&](int t) {
      run(buffers, params.data(), items * t / threads, items * (t + 1) / threads,
          (t ? scratch1 : scratch0).data(), nullptr);
    };
    std::unique_ptr<Pair> pair = threads == 2 ? std::make_unique<Pair>() : nullptr;
    double best = 1e9;
    for (const double begin = now(); now() - begin < limit;) {
      const double start = now();
      if (pair)
        pair->run(part);
      else
        part(0);
      best = std::min(best, now() - start);
    }
    return 2.0 * static_cast<double>(s.m * s.n * s.k) / best;
  }

 private:
  std::string kernel_name(const Case& c, const ContractTiling& t) const {
    return c.name() + describe(t);
  }
  kir::Kernel peak_kernel() const {
    kir::Builder b("peak");
    const auto out = b.buffer("out", DType::f32, kir::Access::write);
    const kir::Var count = b.param("count");
    const int lanes = target_.lanes(DType::f32);
    const kir::Var half = b.constant({DType::f32, lanes}, 0.5);
    const std::vector<kir::Var> end =
        b.loop(b.i64(0), count, b.i64(1), std::vector<kir::Var>(12, half),
               [&](kir::Var, std::span<const kir::Var> carried) {
                 std::vector<kir::Var> next(carried.begin(), carried.end());
                 for (int r = 0; r < 4; ++r)
                   for (kir::Var& v : next) v = b.fma(v, half, half);
                 return next;
               });
    for (int k = 0; k < 12; ++k) b.store(out, b.i64(k * lanes), end[static_cast<std::size_t>(k)]);
    return b.finish();
  }

  codegen::HostTarget host_;
  schedule::Target target_;
  codegen::CodeLibrary library_;
  double compile_seconds_ = 0;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const ContractSizes s : {ContractSizes{1, 32, 128, 784},
                                {1, 128, 1024, 784},
                                {1, 1500, 384, 384},
                                {1, 1500, 1536, 384},
                                {1, 1500, 384, 1536},
                                {1, 2048, 1024, 256},
                                {1, 2048, 256, 1024},
                                {1, 2048, 8192, 256},
                                {1, 128, 576, 576},
                                {1, 128, 1536, 576},
                                {1, 128, 576, 1536},
                                {1, 128, 49152, 576},
                                {1, 784, 128, 32},
                                {1, 512, 512, 512},
                                {1, 1024, 1024, 1024}})
    for (const char* kind : {"nt", "nn", "tn"}) list.push_back({kind, s});
  return list;
}

// Every structure of a tiling with the blocks that the model likes best.
void explore(Bench& bench, const Case& c, const ContractOrder& order, double seconds) {
  const ContractSpec spec = c.spec();
  const ContractStrides strides = ContractStrides::dense(spec, c.sizes);
  struct Row {
    double reached, predicted;
    ContractTiling tiling;
  };
  std::vector<Row> rows;
  for (unsigned bits = 0; bits < 32; ++bits)
    for (const int tile_rows : {6, 8, 11, 12, 13, 14}) {
      ContractTiling t{.lanes_along_m = (bits & 1) != 0,
                       .rows_outer = (bits & 2) != 0,
                       .pack_rows = (bits & 4) != 0,
                       .pack_lanes = (bits & 8) != 0,
                       .single_block = c.sizes.k <= order.k_block,
                       .direct = (bits & 16) != 0,
                       .rows = tile_rows,
                       .lanes = bench.target().lanes(DType::f32)};
      if (tile_rows > (bench.target().vector_registers - 4) / 2) continue;
      double least = 1e30;
      ContractTiling best;
      for (std::int64_t row_block = tile_rows;
           row_block < 2 * (t.lanes_along_m ? c.sizes.n : c.sizes.m); row_block += tile_rows)
        for (std::int64_t lane_block = t.vectors * t.lanes;
             lane_block < 2 * (t.lanes_along_m ? c.sizes.m : c.sizes.n);
             lane_block += t.vectors * t.lanes) {
          t.row_block = row_block, t.lane_block = lane_block;
          if (!schedule::cpu::broken_rule(spec, c.sizes, order, t).empty()) continue;
          const double cycles =
              schedule::cpu::estimate(spec, c.sizes, strides, order, t, bench.target(), 1);
          if (cycles < least) least = cycles, best = t;
        }
      if (least == 1e30) continue;
      const double flops = 2.0 * static_cast<double>(c.sizes.m * c.sizes.n * c.sizes.k);
      rows.push_back({bench.measure(c, best, order, 1, seconds / 4) / bench.peak(),
                      flops / least / (4.0 * t.lanes), best});
    }
  std::ranges::sort(rows, [](const Row& x, const Row& y) { return x.reached > y.reached; });
  for (const Row& r : rows)
    fmt::print("    {:5.1f} % predicted {:5.1f} %  {}\n", 100 * r.reached, 100 * r.predicted,
               describe(r.tiling));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool all = std::erase(words, "--all") > 0, names = std::erase(words, "--names") > 0;
  const auto option = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(words, [&](const std::string& w) { return w.starts_with(name); });
    if (found == words.end()) return std::string();
    const std::string value = found->substr(name.size());
    words.erase(found);
    return value;
  };
  const std::string depth = option("--k-block="), processor = option("--target="),
                    limit = option("--seconds=");
  const double seconds = limit.empty() ? 0.3 : std::stod(limit);
  Bench bench(processor.empty() ? codegen::detect_host() : codegen::known_target(processor));
  for (const Case& c : cases()) {
    if (!std::ranges::all_of(
            words, [&](const std::string& w) { return c.name().find(w) != std::string::npos; }))
      continue;
    if (names) {
      fmt::print("{}\n", c.name());
      continue;
    }
    const ContractSpec spec = c.spec();
    ContractOrder order = schedule::cpu::reduction_order(
        c.sizes, c.kind[0] == 'n', c.kind[1] == 't', DType::f32, bench.target());
    if (!depth.empty()) order.k_block = std::stoll(depth);
    std::string line = fmt::format("{:16}", c.name());
    for (const int threads : {1, 2}) {
      const ContractTiling tiling =
          schedule::cpu::choose_tiling(spec, c.sizes, ContractStrides::dense(spec, c.sizes), order,
                                       bench.target(), {.workers = threads});
      const double peak = bench.peak() * threads;
      const double reached = bench.measure(c, tiling, order, threads, seconds);
      line += fmt::format(" | {} thread: {:6.1f} GFLOP/s {:5.1f} %  {} ({:.0f} ms to compile)",
                          threads, reached / 1e9, 100 * reached / peak, describe(tiling),
                          1e3 * bench.compile_seconds());
    }
    fmt::print("{}\n", line);
    if (all) explore(bench, c, order, seconds);
    std::fflush(stdout);
  }
  return 0;
}
