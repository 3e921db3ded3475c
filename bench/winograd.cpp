// Convolutions of 3 x 3 windows by Winograd's algorithm: milliseconds and GFLOP/s of the direct
// algorithm, transforms of weights included, with two threads; bench/conv_peer.py prints the same
// for PyTorch. Run them in turns.
//
//   bench_winograd [--target NAME] [--side 2|4] [--launches] [--all] [words]
//
// Only the cases whose names contain all words. --launches also prints every launch; --all measures
// the best tiling of every way to share transforms.
#include "schedule/cpu/conv/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/pair.h"
#include "codegen/llvm/llvm.h"
#include "compiler/options.h"
#include "kir/simplify.h"

namespace {

using namespace pantala;
using namespace pantala::bench;
using namespace pantala::schedule::cpu;

struct Freed {
  void operator()(float* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using Floats = std::unique_ptr<float[], Freed>;

// Memory that starts at a cache line.
Floats floats(std::int64_t count) {
  Floats memory(new (std::align_val_t{64}) float[static_cast<std::size_t>(count) + 16]());
  for (std::int64_t i = 0; i < count; ++i)
    memory[static_cast<std::size_t>(i)] = static_cast<float>((i * 37 + 11) % 101 - 50) / 64;
  return memory;
}

struct Case {
  std::string layer;
  ConvSizes sizes;
  ConvDirection direction;
  std::string name() const {
    constexpr const char* kNames[] = {"forward", "input_grad", "weight_grad"};
    return fmt::format("{} {}", layer, kNames[static_cast<int>(direction)]);
  }
  double flops() const {
    return 2.0 * static_cast<double>(sizes.positions() * sizes.out * sizes.in * 9);
  }
};

struct Launch {
  std::string name;
  codegen::KernelFn run;
  std::vector<void*> buffers;
  std::vector<std::int64_t> params;
  std::int64_t items, scratch;
  double best = 1e9;
};

std::string describe(const WinogradTiling& t) {
  return fmt::format("{}x{} {}{} rows {} lanes {}", t.rows, t.columns(),
                     t.shared_window ? "window " : "", t.shared_weight ? "weight " : "",
                     t.row_block, t.lane_block);
}

class Bench {
 public:
  explicit Bench(codegen::HostTarget host)
      : target_(compiler::schedule_target(host)), library_(std::move(host)) {}
  const schedule::Target& target() const { return target_; }
  double compile_seconds = 0;

  double measure(const Case& c, const WinogradSpec& spec, const WinogradOrder& order,
                 const WinogradTiling& t, double limit, bool print) {
    const ConvSizes& s = c.sizes;
    const ConvStrides strides = ConvStrides::channels_last(s);
    Floats x = floats(s.batch * s.in * s.axes[0].x * s.axes[1].x),
           y = floats(s.positions() * s.out), weight = floats(s.out * s.in * 9);
    const auto memory = [&](WinogradKernel kernel) {
      return floats(winograd_elements(kernel, spec, s, order, t));
    };
    Floats window = memory(WinogradKernel::window), gradient = memory(WinogradKernel::gradient),
           weights = memory(WinogradKernel::weight),
           partials = floats(order.slices * s.out * s.in * 9);
    const bool is_weight = c.direction == ConvDirection::weight_grad,
               is_input = c.direction == ConvDirection::input_grad;
    float *first = is_input ? y.get() : x.get(), *result = is_input ? x.get() : y.get();
    std::vector<Launch> launches;
    const auto add = [&](std::string name, WinogradKernel kernel, std::vector<void*> buffers,
                         std::int64_t slice) {
      const kir::Kernel built =
          kir::simplify(build_winograd(fmt::format("{}{}", name, count_), kernel, spec, order, t));
      launches.push_back({name, compiled(built), std::move(buffers),
                          winograd_params(kernel, spec, s, strides, order, t, slice),
                          winograd_items(kernel, spec, s, order, t, slice), built.scratch_bytes()});
    };
    compile_seconds = 0;
    ++count_;
    if (is_weight)
      for (std::int64_t slice = 0; slice < order.slices; ++slice) {
        add("window", WinogradKernel::window, {x.get(), window.get()}, slice);
        add("gradient", WinogradKernel::gradient, {y.get(), gradient.get()}, slice);
        add("products", WinogradKernel::weight_gradient,
            {window.get(), gradient.get(), order.slices > 1 ? partials.get() : weight.get()},
            slice);
      }
    if (is_weight && order.slices > 1) {
      const kir::Kernel built =
          kir::simplify(build_conv_combine(fmt::format("combine{}", count_), spec.conv, target_));
      launches.push_back({"combine",
                          compiled(built),
                          {partials.get(), weight.get()},
                          conv_combine_params(s, strides, {.slices = order.slices}),
                          conv_combine_items(s),
                          0});
    }
    if (!is_weight) {
      if (t.shared_weight) add("weight", WinogradKernel::weight, {weight.get(), weights.get()}, 0);
      if (t.shared_window) add("window", WinogradKernel::window, {first, window.get()}, 0);
      add("products", WinogradKernel::result,
          {t.shared_window ? window.get() : first, t.shared_weight ? weights.get() : weight.get(),
           result},
          0);
    }
    std::int64_t scratch = 0;
    for (const Launch& launch : launches) scratch = std::max(scratch, launch.scratch);
    Floats scratch0 = floats(scratch / 4), scratch1 = floats(scratch / 4);
    Pair pair;
    double best = 1e9;
    for (const double begin = now(); now() - begin < limit;) {
      const double start = now();
      for (Launch& launch : launches) {
        const double before = now();
        pair.run([&](int t_number) {
          launch.run(launch.buffers.data(), launch.params.data(), launch.items * t_number / 2,
                     launch.items * (t_number + 1) / 2, (t_number ? scratch1 : scratch0).get(),
                     nullptr);
        });
        launch.best = std::min(launch.best, now() - before);
      }
      best = std::min(best, now() - start);
    }
    if (print)
      for (const Launch& launch : launches)
        fmt::print("    {:9} {:7.3f} ms {:5} items {:8} scratch\n", launch.name, 1e3 * launch.best,
                   launch.items, launch.scratch);
    return best;
  }

 private:
  codegen::KernelFn compiled(const kir::Kernel& kernel) {
    const double before = now();
    if (!library_.find(kernel.name)) library_.add({&kernel, 1});
    compile_seconds += now() - before;
    return library_.find(kernel.name);
  }
  schedule::Target target_;
  codegen::CodeLibrary library_;
  int count_ = 0;
};

std::vector<Case> cases() {
  const auto sizes = [](std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t side) {
    return ConvSizes{batch, in, out, 1, std::vector<ConvAxis>(2, ConvAxis{side, 3, 1, 1, 1})};
  };
  const std::vector<std::pair<std::string, ConvSizes>> layers{
      {"lenet2 64x32x14x14->64 3x3", sizes(64, 32, 64, 14)},
      {"res 8x64x56x56->64 3x3", sizes(8, 64, 64, 56)},
      {"res 8x128x28x28->128 3x3", sizes(8, 128, 128, 28)},
      {"res 8x256x14x14->256 3x3", sizes(8, 256, 256, 14)},
      {"deep 8x512x7x7->512 3x3", sizes(8, 512, 512, 7)},
  };
  std::vector<Case> list;
  for (const auto& [name, size] : layers)
    for (const ConvDirection d :
         {ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad})
      list.push_back({name, size, d});
  return list;
}

// The value behind an option, which is taken away.
std::string take(std::vector<std::string>& words, const std::string& option,
                 const std::string& otherwise) {
  const auto found = std::ranges::find(words, option);
  if (found == words.end() || found + 1 == words.end()) return otherwise;
  const std::string value = *(found + 1);
  words.erase(found, found + 2);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool launches = std::erase(words, "--launches") > 0, all = std::erase(words, "--all") > 0;
  const std::string name = take(words, "--target", "");
  const int side = std::stoi(take(words, "--side", "4"));
  Bench bench(name.empty() ? codegen::detect_host() : codegen::known_target(name));
  const schedule::Target& target = bench.target();
  for (const Case& c : cases()) {
    if (!std::ranges::all_of(
            words, [&](const std::string& w) { return c.name().find(w) != std::string::npos; }))
      continue;
    WinogradSpec spec =
        winograd_spec(c.direction, DType::f32, c.sizes, ConvStrides::channels_last(c.sizes), side);
    const WinogradOrder order = winograd_order(spec, c.sizes);
    spec.result_rows = c.direction == ConvDirection::weight_grad && order.slices == 1;
    const auto run = [&](const WinogradTiling& t, double limit) {
      const double seconds = bench.measure(c, spec, order, t, limit, launches);
      fmt::print(
          "{:38} | 2 threads: {:7.3f} ms {:6.1f} GFLOP/s predicted {:9.0f} slices {} {} "
          "(compile {:.0f} ms)\n",
          c.name(), 1e3 * seconds, c.flops() / seconds / 1e9,
          estimate(spec, c.sizes, order, t, target, 2), order.slices, describe(t),
          1e3 * bench.compile_seconds);
      std::fflush(stdout);
    };
    run(choose_winograd_tiling(spec, c.sizes, order, target, 2), 0.3);
    if (all)
      for (const WinogradTiling& t : best_of_each_kind(spec, c.sizes, order, target, 2))
        run(t, 0.15);
  }
  return 0;
}
