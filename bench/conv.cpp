// Convolutions by generated kernels: milliseconds, GFLOP/s and the share of the fma peak, with one
// and two threads. bench/conv_peer.py runs the same cases with PyTorch, in turns.
//
//   bench_conv [--all] [--row-major] [--names] [--assembly] [--seconds=0.3] [--target=x86-64-v3]
//   [words]
//
// Only the cases whose names contain all words. Where windows are single elements one after
// another and channels are last, the convolution is computed as a product of matrices.
//  - --all also runs, on one thread, the best tiling of every register tile and prints what it
//    reached beside what the model predicted.
//  - --row-major lays out x and y as their logical order says.
//  - --names prints the names alone; --assembly the code of its kernels for one thread.
//  - --target takes the code of another processor.
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
using schedule::Target;
using schedule::cpu::ContractOrder;
using schedule::cpu::ContractSizes;
using schedule::cpu::ContractSpec;
using schedule::cpu::ContractStrides;
using schedule::cpu::ContractTiling;
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
  bool is_product() const {
    return sizes.groups == 1 && std::ranges::all_of(sizes.axes, [](const ConvAxis& a) {
             return a.kernel == 1 && a.stride == 1 && a.padding == 0;
           });
  }
};

// What the kernels of a case work on.
struct Tensors {
  explicit Tensors(const ConvSizes& s)
      : x(s.batch * s.in * extent(s)),
        y(s.positions() * s.out),
        weight(s.out * s.in / s.groups * s.taps()) {}
  static std::int64_t extent(const ConvSizes& s) {
    std::int64_t size = 1;
    for (const ConvAxis& a : s.axes) size *= a.x;
    return size;
  }
  Floats x, y, weight;
  std::vector<std::unique_ptr<Floats>> between;  // from one kernel to the next
};

struct Launch {
  kir::Kernel kernel;
  std::vector<void*> buffers;
  std::vector<std::int64_t> params;
  std::int64_t items;
};

std::string describe(const ConvTiling& t) {
  static constexpr const char* kFills[] = {"channels", "flat", "columns", "in-place"};
  return fmt::format("{}x{} unroll {}{} {}{}{} box {}x{}x{}x{} lanes {} channels {}", t.rows,
                     t.vectors * t.lanes, t.unroll, t.whole_runs ? "" : "+",
                     kFills[static_cast<int>(t.fill)], t.merge_taps ? " merged" : "",
                     t.channel_block > 0 && !t.pack_lanes ? " lanes-in-place" : "", t.box[0],
                     t.box[1], t.box[2], t.box[3], t.lane_block, t.channel_block);
}
std::string describe(const ContractTiling& t) {
  return fmt::format("product {}x{} lanes {} outer {} {}{}{} block {}x{}", t.rows, 2 * t.lanes,
                     t.lanes_along_m ? 'm' : 'n', t.rows_outer ? "rows" : "lanes",
                     t.pack_rows ? "pack-rows " : "", t.pack_lanes ? "pack-lanes " : "",
                     t.direct ? "direct" : "", t.row_block, t.lane_block);
}

class Bench {
 public:
  explicit Bench(const codegen::HostTarget& host)
      : host_(host), target_(compiler::schedule_target(host)), library_(host) {}
  const Target& target() const { return target_; }
  double compile_seconds() const { return compile_seconds_; }  // of the kernels measured last
  std::string assembly(const Launch& launch) const {
    return codegen::assembly(kir::simplify(launch.kernel), host_);
  }
  std::string fresh_name() { return fmt::format("conv{}", count_++); }

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

  // Best seconds of all launches together within `limit` seconds.
  double measure(const std::vector<Launch>& launches, int threads, double limit) {
    std::vector<kir::Kernel> kernels;
    std::int64_t scratch = 0;
    for (const Launch& launch : launches) {
      kernels.push_back(kir::simplify(launch.kernel));
      scratch = std::max(scratch, kernels.back().scratch_bytes() / 4);
    }
    const double before = thread_seconds();
    library_.add({kernels.data(), 1});
    compile_seconds_ = thread_seconds() - before;
    library_.add(kernels);
    Floats scratch0(scratch), scratch1(scratch);
    const std::unique_ptr<Pair> pair = threads == 2 ? std::make_unique<Pair>() : nullptr;
    double best = 1e9;
    for (const double begin = now(); now() - begin < limit || best == 1e9;) {
      const double start = now();
      for (std::size_t k = 0; k < launches.size(); ++k) {
        const Launch& launch = launches[k];
        const codegen::KernelFn run = library_.find(kernels[k].name);
        const auto part = [&](int t) {
          run(launch.buffers.data(), launch.params.data(), launch.items * t / threads,
              launch.items * (t + 1) / threads, (t ? scratch1 : scratch0).data(), nullptr);
        };
        if (pair)
          pair->run(part);
        else
          part(0);
      }
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
  Target target_;
  codegen::CodeLibrary library_;
  double compile_seconds_ = 0;
  int count_ = 0;
};

// The kernels of one case by one tiling.
std::vector<Launch> direct_launches(Bench& bench, const Case& c, Tensors& t,
                                    const ConvStrides& strides, const ConvOrder& order,
                                    const ConvTiling& tiling) {
  const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
  const bool is_weight = c.direction == ConvDirection::weight_grad,
             is_input = c.direction == ConvDirection::input_grad;
  const auto between = [&](std::int64_t count) {
    t.between.push_back(std::make_unique<Floats>(count));
    return t.between.back()->data();
  };
  void* result = is_weight ? t.weight.data() : is_input ? t.x.data() : t.y.data();
  void* sums = result;
  if (order.slices > 1) sums = between(schedule::cpu::conv_partials(c.sizes, order));
  std::vector<Launch> launches;
  void* second = t.y.data();
  if (!is_weight) {
    second = between(schedule::cpu::conv_panels(spec, c.sizes, order, tiling));
    launches.push_back({schedule::cpu::build_conv_weights(bench.fresh_name(), spec, tiling),
                        {t.weight.data(), second},
                        schedule::cpu::conv_params(spec, c.sizes, strides, order, tiling),
                        schedule::cpu::conv_weights_items(spec, c.sizes, order, tiling)});
  }
  launches.push_back({schedule::cpu::build_conv(bench.fresh_name(), spec, order, tiling),
                      {is_input ? t.y.data() : t.x.data(), second, sums},
                      schedule::cpu::conv_params(spec, c.sizes, strides, order, tiling),
                      schedule::cpu::conv_items(spec, c.sizes, order, tiling)});
  if (order.slices > 1)
    launches.push_back({schedule::cpu::build_conv_combine(bench.fresh_name(), spec, bench.target()),
                        {sums, result},
                        schedule::cpu::conv_combine_params(c.sizes, strides, order),
                        schedule::cpu::conv_combine_items(c.sizes)});
  return launches;
}

// As schedule/cpu/conv/product.h has it, for dense images with channels last.
struct Product {
  ContractSpec spec;
  ContractSizes sizes;
  Product(ConvDirection direction, const ConvSizes& s) {
    if (direction == ConvDirection::forward)
      spec = {DType::f32, true, true, true}, sizes = {1, s.positions(), s.out, s.in};
    else if (direction == ConvDirection::input_grad)
      spec = {DType::f32, true, false, true}, sizes = {1, s.positions(), s.in, s.out};
    else
      spec = {DType::f32, false, false, false}, sizes = {1, s.in, s.out, s.positions()};
  }
};

Launch product_launch(Bench& bench, const Case& c, Tensors& t, int threads, std::string& text) {
  const Product p(c.direction, c.sizes);
  const ContractStrides strides = ContractStrides::dense(p.spec, p.sizes);
  const ContractOrder order =
      schedule::cpu::reduction_order(p.sizes, false, false, DType::f32, bench.target());
  const ContractTiling tiling = schedule::cpu::choose_tiling(p.spec, p.sizes, strides, order,
                                                             bench.target(), {.workers = threads});
  text = describe(tiling);
  const bool is_weight = c.direction == ConvDirection::weight_grad,
             is_input = c.direction == ConvDirection::input_grad;
  return {schedule::cpu::build_contract(bench.fresh_name(), p.spec, order, tiling),
          {is_input ? t.y.data() : t.x.data(), is_weight ? t.y.data() : t.weight.data(),
           is_weight  ? t.weight.data()
           : is_input ? t.x.data()
                      : t.y.data()},
          schedule::cpu::contract_params(p.sizes, strides, order, tiling),
          schedule::cpu::contract_items(p.sizes, tiling)};
}

std::vector<Case> cases() {
  const auto square = [](std::int64_t size, std::int64_t kernel, std::int64_t stride) {
    return std::vector<ConvAxis>(2, ConvAxis{size, kernel, stride, kernel / 2, 1});
  };
  std::vector<std::pair<std::string, ConvSizes>> layers{
      {"lenet1 64x1x28x28->32 3x3", {64, 1, 32, 1, square(28, 3, 1)}},
      {"lenet2 64x32x14x14->64 3x3", {64, 32, 64, 1, square(14, 3, 1)}},
      {"depth 8x128x28x28->128 3x3 groups 128", {8, 128, 128, 128, square(28, 3, 1)}},
      {"audio 2x80x3000->384 3", {2, 80, 384, 1, {ConvAxis{3000, 3, 1, 1, 1}}}},
  };
  struct Layer {
    std::string name;
    std::int64_t batch, in, size, out, kernel, stride;
  };
  for (const Layer& l : {
           Layer{"stem", 8, 3, 224, 64, 7, 2},   {"res18", 8, 64, 56, 64, 3, 1},
           {"res18", 8, 128, 28, 128, 3, 1},     {"res18", 8, 256, 14, 256, 3, 1},
           {"res18", 8, 512, 7, 512, 3, 1},      {"down18", 8, 64, 56, 128, 3, 2},
           {"down18", 8, 128, 28, 256, 3, 2},    {"down18", 8, 256, 14, 512, 3, 2},
           {"short18", 8, 64, 56, 128, 1, 2},    {"short18", 8, 128, 28, 256, 1, 2},
           {"short18", 8, 256, 14, 512, 1, 2},   {"down50", 4, 128, 56, 128, 3, 2},
           {"down50", 4, 256, 28, 256, 3, 2},    {"down50", 4, 512, 14, 512, 3, 2},
           {"short50", 4, 256, 56, 512, 1, 2},   {"short50", 4, 512, 28, 1024, 1, 2},
           {"short50", 4, 1024, 14, 2048, 1, 2}, {"point50", 4, 64, 56, 64, 1, 1},
           {"point50", 4, 64, 56, 256, 1, 1},    {"point50", 4, 256, 56, 64, 1, 1},
           {"point50", 4, 256, 56, 128, 1, 1},   {"point50", 4, 128, 28, 512, 1, 1},
           {"point50", 4, 512, 28, 128, 1, 1},   {"point50", 4, 512, 28, 256, 1, 1},
           {"point50", 4, 256, 14, 1024, 1, 1},  {"point50", 4, 1024, 14, 256, 1, 1},
           {"point50", 4, 1024, 14, 512, 1, 1},  {"point50", 4, 512, 7, 2048, 1, 1},
           {"point50", 4, 2048, 7, 512, 1, 1},
       })
    layers.push_back({fmt::format("{} {}x{}x{}x{}->{} {}x{}{}", l.name, l.batch, l.in, l.size,
                                  l.size, l.out, l.kernel, l.kernel, l.stride == 2 ? "/2" : ""),
                      {l.batch, l.in, l.out, 1, square(l.size, l.kernel, l.stride)}});
  std::vector<Case> list;
  for (const auto& [name, sizes] : layers)
    for (const ConvDirection d :
         {ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad})
      list.push_back({name, sizes, d});
  return list;
}

// Every register tile with the blocks that the model likes best.
void explore(Bench& bench, const Case& c, Tensors& tensors, const ConvStrides& strides,
             const ConvOrder& order) {
  const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
  const int lanes = bench.target().lanes(DType::f32);
  for (int vectors = 1; vectors <= 4; ++vectors)
    for (const int rows : {4, 6, 7, 8, 9, 11, 12, 13, 14}) {
      if ((rows + 1) * vectors + 1 > bench.target().vector_registers) continue;
      for (const bool pack : {true, false}) {
        const std::optional<ConvTiling> t = schedule::cpu::best_with_tile(
            spec, c.sizes, strides, order, bench.target(), rows, vectors, pack);
        if (!t) continue;
        const double seconds =
            bench.measure(direct_launches(bench, c, tensors, strides, order, *t), 1, 0.1);
        fmt::print("    {:5.1f} % predicted {:5.1f} %  {}\n",
                   100 * c.flops() / seconds / bench.peak(),
                   100 * c.flops() / (4.0 * lanes) /
                       schedule::cpu::estimate(spec, c.sizes, order, *t, bench.target(), 1),
                   describe(*t));
      }
    }
}

struct Options {
  bool all = false, row_major = false, assembly = false;
  double seconds = 0.3;
};

void run_case(Bench& bench, const Case& c, const Options& options) {
  const ConvStrides strides =
      options.row_major ? ConvStrides::row_major(c.sizes) : ConvStrides::channels_last(c.sizes);
  const ConvSpec spec = schedule::cpu::conv_spec(c.direction, DType::f32, c.sizes, strides);
  const ConvOrder order =
      schedule::cpu::reduction_order(c.direction, c.sizes, DType::f32, bench.target());
  std::string line = fmt::format("{:42}", c.name());
  Tensors tensors(c.sizes);
  for (const int threads : {1, 2}) {
    std::vector<Launch> launches;
    std::string text;
    if (c.is_product() && !options.row_major) {
      launches.push_back(product_launch(bench, c, tensors, threads, text));
    } else {
      const ConvTiling tiling = schedule::cpu::choose_conv_tiling(
          spec, c.sizes, strides, order, bench.target(), {.workers = threads});
      launches = direct_launches(bench, c, tensors, strides, order, tiling);
      text = fmt::format("{} slices {}", describe(tiling), order.slices);
    }
    if (options.assembly) {
      for (const Launch& launch : launches) fmt::print("{}", bench.assembly(launch));
      return;
    }
    std::int64_t items = 0;
    for (const Launch& launch : launches) items = std::max(items, launch.items);
    const double peak = bench.peak() * threads;
    const double seconds = bench.measure(launches, threads, options.seconds);
    line +=
        fmt::format(" | {} thread: {:7.3f} ms {:6.1f} GFLOP/s {:5.1f} % {} items {} ({:.0f} ms)",
                    threads, 1e3 * seconds, c.flops() / seconds / 1e9,
                    100 * c.flops() / seconds / peak, text, items, 1e3 * bench.compile_seconds());
  }
  fmt::print("{}\n", line);
  if (options.all) explore(bench, c, tensors, strides, order);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool names = std::erase(words, "--names") > 0;
  Options options{.all = std::erase(words, "--all") > 0,
                  .row_major = std::erase(words, "--row-major") > 0,
                  .assembly = std::erase(words, "--assembly") > 0};
  const auto option = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(words, [&](const std::string& w) { return w.starts_with(name); });
    if (found == words.end()) return std::string();
    const std::string value = found->substr(name.size());
    words.erase(found);
    return value;
  };
  const std::string processor = option("--target="), seconds = option("--seconds=");
  if (!seconds.empty()) options.seconds = std::stod(seconds);
  Bench bench(processor.empty() ? codegen::detect_host() : codegen::known_target(processor));
  for (const Case& c : cases()) {
    if (!std::ranges::all_of(
            words, [&](const std::string& w) { return c.name().find(w) != std::string::npos; }))
      continue;
    if (names)
      fmt::print("{}\n", c.name());
    else
      run_case(bench, c, options);
  }
  return 0;
}
