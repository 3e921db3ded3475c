// Convolutions by generated kernels: milliseconds, GFLOP/s and the share of the fma peak, with one
// and two threads. bench/conv_peer.py prints the same table for PyTorch; run them in turns.
//
//   bench_conv [--all] [--row-major] [words]
//
// Only the cases whose names contain all words.
//  - --all also runs, on one thread, the best tiling of every register tile and prints what it
//    reached beside what the model predicted.
//  - --row-major lays out x and y as their logical order says.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/pair.h"
#include "codegen/llvm/llvm.h"
#include "compiler/options.h"
#include "kir/builder.h"
#include "kir/simplify.h"
#include "schedule/cpu/conv/kernel.h"

namespace {

using namespace pantala;
using namespace pantala::bench;
using schedule::cpu::ConvAxis;
using schedule::cpu::ConvDirection;
using schedule::cpu::ConvOrder;
using schedule::cpu::ConvSizes;
using schedule::cpu::ConvSpec;
using schedule::cpu::ConvStrides;
using schedule::cpu::ConvTiling;

// Memory that starts at a cache line.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : memory_(new(std::align_val_t{64}) float[static_cast<std::size_t>(count) + 16]()) {
    for (std::int64_t i = 0; i < count; ++i)
      memory_[i] = static_cast<float>((i * 37 + 11) % 101 - 50) / 64;
  }
  ~Floats() { ::operator delete[](memory_, std::align_val_t{64}); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* data() { return memory_; }

 private:
  float* memory_;
};

// Of this thread's work, not disturbed by others.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

const char* direction_name(ConvDirection d) {
  return d == ConvDirection::forward      ? "forward"
         : d == ConvDirection::input_grad ? "input_grad"
                                          : "weight_grad";
}

struct Case {
  std::string layer;
  ConvSizes sizes;
  ConvDirection direction;
  std::string name() const { return fmt::format("{} {}", layer, direction_name(direction)); }
  double flops() const {
    const ConvSizes& s = sizes;
    return 2.0 * static_cast<double>(s.positions() * s.out * (s.in / s.groups) * s.taps());
  }
};

std::string describe(const ConvTiling& t) {
  static constexpr const char* kFills[] = {"channels", "flat", "columns", "in-place"};
  return fmt::format("{}x{} unroll {}{} {}{}{} box {}x{}x{}x{} lanes {} channels {}", t.rows,
                     t.vectors * t.lanes, t.unroll, t.whole_runs ? "" : "+",
                     kFills[static_cast<int>(t.fill)], t.merge_taps ? " merged" : "",
                     t.pack_lanes ? "" : " lanes-in-place", t.box[0], t.box[1], t.box[2], t.box[3],
                     t.lane_block, t.channel_block);
}

class Bench {
 public:
  Bench()
      : host_(codegen::detect_host()), target_(compiler::schedule_target(host_)), library_(host_) {}
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

  // Every item's best seconds, summed: items are short enough to run undisturbed on a busy machine.
  static double item_by_item(codegen::KernelFn run, void* const* buffers,
                             const std::vector<std::int64_t>& params, std::int64_t items,
                             void* scratch, double limit) {
    std::vector<double> best(static_cast<std::size_t>(items), 1e9);
    for (const double begin = now(); now() - begin < limit || best.back() == 1e9;)
      for (std::int64_t i = 0; i < items; ++i) {
        const double start = now();
        run(buffers, params.data(), i, i + 1, scratch, nullptr);
        double& least = best[static_cast<std::size_t>(i)];
        least = std::min(least, now() - start);
      }
    double sum = 0;
    for (const double least : best) sum += least;
    return sum;
  }

  // Best seconds within `limit` seconds.
  double measure(const Case& c, const ConvStrides& strides, const ConvOrder& order,
                 const ConvTiling& tiling, int threads, double limit) {
    const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
    const std::string name = fmt::format("conv{}", count_++);
    std::vector<kir::Kernel> kernels{
        kir::simplify(schedule::cpu::build_conv(name, spec, order, tiling))};
    if (order.slices > 1)
      kernels.push_back(
          kir::simplify(schedule::cpu::build_conv_combine(name + "combine", spec, target_)));
    const double before = thread_seconds();
    library_.add({kernels.data(), 1});
    compile_seconds_ = thread_seconds() - before;
    library_.add(kernels);
    const ConvSizes& s = c.sizes;
    std::int64_t x_size = s.batch * s.in, y_size = s.positions() * s.out;
    for (const ConvAxis& a : s.axes) x_size *= a.x;
    Floats x(x_size), y(y_size), weight(s.out * s.in / s.groups * s.taps()),
        partials(schedule::cpu::conv_partials(s, order));
    const bool is_weight = c.direction == ConvDirection::weight_grad;
    void* first = c.direction == ConvDirection::input_grad ? y.data() : x.data();
    void* second = is_weight ? y.data() : weight.data();
    void* result = order.slices > 1                           ? partials.data()
                   : is_weight                                ? weight.data()
                   : c.direction == ConvDirection::input_grad ? x.data()
                                                              : y.data();
    void* buffers[] = {first, second, result};
    void* combine_buffers[] = {partials.data(), weight.data()};
    const auto params = schedule::cpu::conv_params(spec, s, strides, order, tiling);
    const auto combine_params = schedule::cpu::conv_combine_params(s, strides, order);
    Floats scratch0(kernels[0].scratch_bytes() / 4), scratch1(kernels[0].scratch_bytes() / 4);
    const std::int64_t items = schedule::cpu::conv_items(spec, s, order, tiling),
                       combine_items = schedule::cpu::conv_combine_items(s);
    const codegen::KernelFn run = library_.find(name), combine = library_.find(name + "combine");
    const auto part = [&](int t) {
      run(buffers, params.data(), items * t / threads, items * (t + 1) / threads,
          (t ? scratch1 : scratch0).data(), nullptr);
    };
    const auto combine_part = [&](int t) {
      combine(combine_buffers, combine_params.data(), combine_items * t / threads,
              combine_items * (t + 1) / threads, nullptr, nullptr);
    };
    if (threads == 1) {
      const double all = item_by_item(run, buffers, params, items, scratch0.data(), limit);
      return order.slices == 1 ? all
                               : all + item_by_item(combine, combine_buffers, combine_params,
                                                    combine_items, nullptr, limit / 4);
    }
    Pair pair;
    double best = 1e9;
    for (const double begin = now(); now() - begin < limit;) {
      const double start = now();
      pair.run(part);
      if (order.slices > 1) pair.run(combine_part);
      best = std::min(best, now() - start);
    }
    return best;
  }

 private:
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
  int count_ = 0;
};

std::vector<Case> cases() {
  const auto square = [](std::int64_t size, std::int64_t kernel, std::int64_t stride,
                         std::int64_t padding) {
    return std::vector<ConvAxis>(2, ConvAxis{size, kernel, stride, padding, 1});
  };
  const std::vector<std::pair<std::string, ConvSizes>> layers{
      {"lenet1 64x1x28x28->32 3x3", {64, 1, 32, 1, square(28, 3, 1, 1)}},
      {"lenet2 64x32x14x14->64 3x3", {64, 32, 64, 1, square(14, 3, 1, 1)}},
      {"stem 8x3x224x224->64 7x7/2", {8, 3, 64, 1, square(224, 7, 2, 3)}},
      {"res 8x64x56x56->64 3x3", {8, 64, 64, 1, square(56, 3, 1, 1)}},
      {"down 8x64x56x56->128 3x3/2", {8, 64, 128, 1, square(56, 3, 2, 1)}},
      {"deep 8x512x7x7->512 3x3", {8, 512, 512, 1, square(7, 3, 1, 1)}},
      {"point 8x64x56x56->256 1x1", {8, 64, 256, 1, square(56, 1, 1, 0)}},
      {"depth 8x128x28x28 3x3", {8, 128, 128, 128, square(28, 3, 1, 1)}},
      {"audio 2x80x3000->384 3", {2, 80, 384, 1, {ConvAxis{3000, 3, 1, 1, 1}}}},
  };
  std::vector<Case> list;
  for (const auto& [name, sizes] : layers)
    for (const ConvDirection d :
         {ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad})
      list.push_back({name, sizes, d});
  return list;
}

// Every register tile with the blocks that the model likes best.
void explore(Bench& bench, const Case& c, const ConvStrides& strides, const ConvOrder& order) {
  const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
  const int lanes = bench.target().lanes(DType::f32);
  for (int vectors = 1; vectors <= 4; ++vectors)
    for (const int rows : {4, 6, 7, 8, 9, 11, 12, 13, 14}) {
      if ((rows + 1) * vectors + 1 > bench.target().vector_registers) continue;
      for (const bool pack : {true, false}) {
        const std::optional<ConvTiling> t = schedule::cpu::best_with_tile(
            spec, c.sizes, strides, order, bench.target(), rows, vectors, pack);
        if (!t || lanes == 0) continue;
        const double seconds = bench.measure(c, strides, order, *t, 1, 0.1);
        fmt::print("    {:5.1f} % predicted {:5.1f} %  {}\n",
                   100 * c.flops() / seconds / bench.peak(),
                   100 * c.flops() / (4.0 * lanes) /
                       schedule::cpu::estimate(spec, c.sizes, order, *t, bench.target(), 1),
                   describe(*t));
      }
    }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool all = std::erase(words, "--all") > 0, row_major = std::erase(words, "--row-major") > 0;
  Bench bench;
  for (const Case& c : cases()) {
    if (!std::ranges::all_of(
            words, [&](const std::string& w) { return c.name().find(w) != std::string::npos; }))
      continue;
    const ConvStrides strides =
        row_major ? ConvStrides::row_major(c.sizes) : ConvStrides::channels_last(c.sizes);
    const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
    const ConvOrder order =
        schedule::cpu::reduction_order(c.direction, c.sizes, DType::f32, bench.target());
    std::string line = fmt::format("{:38}", c.name());
    for (const int threads : {1, 2}) {
      const double before = now();
      const ConvTiling tiling = schedule::cpu::choose_conv_tiling(
          spec, c.sizes, strides, order, bench.target(), {.workers = threads});
      const double chosen = now() - before;
      const double peak = bench.peak() * threads;
      const double seconds = bench.measure(c, strides, order, tiling, threads, 0.3);
      line += fmt::format(
          " | {} thread: {:7.3f} ms {:6.1f} GFLOP/s {:5.1f} % {} slices {} (choose {:.1f}, compile "
          "{:.0f} ms)",
          threads, 1e3 * seconds, c.flops() / seconds / 1e9, 100 * c.flops() / seconds / peak,
          describe(tiling), order.slices, 1e3 * chosen, 1e3 * bench.compile_seconds());
    }
    fmt::print("{}\n", line);
    if (all) explore(bench, c, strides, order);
    std::fflush(stdout);
  }
  return 0;
}
