// Can generated code reach the peak? A register-tiled f32 product of packed panels, written with
// the kernel-IR builder, against a kernel of nothing but independent fmas. One thread; panels come
// from L1 (B) and L2 (A), as in a blocked product.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "kir/builder.h"

namespace {

using namespace pantala;
using kir::Access;
using kir::Builder;
using kir::Var;

// Rows and columns of C that stay in registers: two vectors of B, one or two registers for A,
// accumulators in the rest.
struct Tile {
  int rows;
  int lanes;
  int columns() const { return 2 * lanes; }
};

Tile register_tile(const codegen::HostTarget& target) {
  return {(target.vector_registers - 4) / 2, target.vector_bytes / 4};
}

// Every accumulator is a chain of fmas; there are more chains than an fma's latency times the
// number of units.
kir::Kernel peak_kernel(const codegen::HostTarget& target, int chains, int rounds) {
  Builder b("peak");
  const auto out = b.buffer("out", DType::f32, Access::write);
  const Var count = b.param("count");
  const int lanes = target.vector_bytes / 4;
  const Var scale = b.splat(b.param("scale", DType::f32), lanes);
  const Var shift = b.splat(b.param("shift", DType::f32), lanes);
  const std::vector<Var> start(static_cast<std::size_t>(chains), shift);
  const std::vector<Var> end =
      b.loop(b.i64(0), count, b.i64(1), start, [&](Var, std::span<const Var> carried) {
        std::vector<Var> next(carried.begin(), carried.end());
        for (int r = 0; r < rounds; ++r)
          for (Var& v : next) v = b.fma(v, scale, shift);
        return next;
      });
  for (int k = 0; k < chains; ++k) b.store(out, b.i64(k * lanes), end[static_cast<std::size_t>(k)]);
  return b.finish();
}

// c[item] = a[item]^T b: a is [items, depth, rows], b [depth, columns], c [items, rows, columns].
kir::Kernel product_kernel(Tile tile, int unroll) {
  Builder b("product");
  const auto a = b.buffer("a", DType::f32, Access::read);
  const auto bb = b.buffer("b", DType::f32, Access::read);
  const auto c = b.buffer("c", DType::f32, Access::write);
  const Var depth = b.param("depth");
  const Var panel = b.item() * depth * tile.rows;
  const std::vector<Var> zero(static_cast<std::size_t>(2 * tile.rows),
                              b.constant({DType::f32, tile.lanes}, 0.0));
  const std::vector<Var> sums =
      b.loop(b.i64(0), depth, b.i64(unroll), zero, [&](Var k, std::span<const Var> carried) {
        std::vector<Var> next(carried.begin(), carried.end());
        const Var at_a = panel + k * tile.rows;
        const Var at_b = k * tile.columns();
        for (int u = 0; u < unroll; ++u) {
          const Var b0 = b.load(bb, at_b + u * tile.columns(), tile.lanes);
          const Var b1 = b.load(bb, at_b + (u * tile.columns() + tile.lanes), tile.lanes);
          for (int r = 0; r < tile.rows; ++r) {
            const Var x = b.splat(b.load(a, at_a + (u * tile.rows + r)), tile.lanes);
            Var* sum = &next[static_cast<std::size_t>(2 * r)];
            sum[0] = b.fma(x, b0, sum[0]);
            sum[1] = b.fma(x, b1, sum[1]);
          }
        }
        return next;
      });
  const Var at_c = b.item() * (tile.rows * tile.columns());
  for (int r = 0; r < 2 * tile.rows; ++r)
    b.store(c, at_c + r * tile.lanes, sums[static_cast<std::size_t>(r)]);
  return b.finish();
}

// Cache lines are the unit of packing: a panel's rows of B must not straddle them.
struct Floats {
  explicit Floats(std::int64_t count, float value = 0)
      : memory(static_cast<std::size_t>(count + 16), value) {}
  float* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  std::vector<float> memory;
};

template <class Run>
double seconds(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Nothing but fmas: `flops` of them a run.
struct Peak {
  explicit Peak(const codegen::HostTarget& target)
      : library(target), out(kChains * target.vector_bytes / 4) {
    const kir::Kernel kernel = peak_kernel(target, kChains, 4);
    library.add({&kernel, 1});
    flops = 2.0 * 4 * kChains * (target.vector_bytes / 4) * kCount;
    const float scale = 0.5F, shift = 1.0F;
    std::memcpy(&params[1], &scale, sizeof scale);
    std::memcpy(&params[2], &shift, sizeof shift);
  }
  void run() {
    void* buffers[] = {out.data()};
    library.find("peak")(buffers, params, 0, 1, nullptr, nullptr);
  }
  static constexpr int kChains = 12;
  static constexpr std::int64_t kCount = 20000;
  codegen::CodeLibrary library;
  Floats out;
  std::int64_t params[3] = {kCount, 0, 0};
  double flops = 0;
};

struct Product {
  Product(Tile size, std::int64_t k)
      : tile(size),
        depth(k),
        a(kPanels * k * size.rows, 0.5F),
        b(k * size.columns(), 0.25F),
        c(kPanels * size.rows * size.columns()) {}
  void run(codegen::KernelFn kernel) {
    void* buffers[] = {a.data(), b.data(), c.data()};
    for (int k = 0; k < kRepeats; ++k) kernel(buffers, &depth, 0, kPanels, nullptr, nullptr);
  }
  double flops() const {
    return 2.0 * kRepeats * static_cast<double>(kPanels * depth * tile.rows * tile.columns());
  }
  static constexpr std::int64_t kPanels = 12;
  static constexpr int kRepeats = 20;
  Tile tile;
  std::int64_t depth;
  Floats a, b, c;
};

// Clocks wander and machines are shared, so both kernels are timed in turn and compared pair by
// pair.
void report(Peak& peak, codegen::KernelFn kernel, Product& product, int unroll, double compile_ms) {
  std::vector<double> shares;
  double best = 0;
  for (int k = 0; k < 150; ++k) {
    const double reference = peak.flops / seconds([&] { peak.run(); });
    const double reached = product.flops() / seconds([&] { product.run(kernel); });
    shares.push_back(reached / reference);
    best = std::max(best, reached);
  }
  std::ranges::sort(shares);
  fmt::print(
      "{}x{} depth {:4} unroll {}: best {:7.1f} GFLOP/s, median {:5.1f} % of peak (compiled in "
      "{:.1f} ms)\n",
      product.tile.rows, product.tile.columns(), product.depth, unroll, best / 1e9,
      100 * shares[shares.size() / 2], compile_ms);
}

}  // namespace

// bench_microkernel [target]: x86-64-v3, ... instead of the host's own; bench_microkernel
// --assembly [target] prints the code.
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool print = !words.empty() && words[0] == "--assembly";
  const std::size_t named = print ? 1 : 0;
  const codegen::HostTarget target =
      words.size() > named ? codegen::known_target(words[named]) : codegen::detect_host();
  const Tile tile = register_tile(target);
  if (print) {
    fmt::print("{}", codegen::assembly(product_kernel(tile, 4), target));
    return 0;
  }
  Peak peak(target);
  double best = 0;
  for (int k = 0; k < 150; ++k) best = std::max(best, peak.flops / seconds([&] { peak.run(); }));
  fmt::print("{}: {}-byte vectors, {} registers; fma peak {:.1f} GFLOP/s\n", target.cpu,
             target.vector_bytes, target.vector_registers, best / 1e9);
  for (const int unroll : {1, 2, 4, 8}) {
    const kir::Kernel kernel = product_kernel(tile, unroll);
    codegen::CodeLibrary library(target);
    const double compile_ms = 1e3 * seconds([&] { library.add({&kernel, 1}); });
    for (const std::int64_t depth : {128, 256, 512}) {
      Product product(tile, depth);
      report(peak, library.find("product"), product, unroll, compile_ms);
    }
  }
  return 0;
}
