// Attention by generated kernels, forward and backward: milliseconds and GFLOP/s with two threads.
// bench/attention_peer.py prints the same table for PyTorch; run them in turns.
//
//   bench_attention [words]
//
// Only the cases whose names contain all words.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "compiler/options.h"
#include "kir/simplify.h"
#include "schedule/cpu/attention/kernel.h"

namespace {

using namespace pantala;
using schedule::cpu::AttentionPart;
using schedule::cpu::AttentionSizes;
using schedule::cpu::AttentionSpec;
using schedule::cpu::AttentionStrides;
using schedule::cpu::AttentionTiling;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Case {
  AttentionSizes sizes;
  AttentionSpec spec;
  std::string name() const {
    return fmt::format("{}x{}{}x{}x{}{}{}", sizes.batch, sizes.heads,
                       sizes.heads == sizes.key_heads ? "" : fmt::format("/{}", sizes.key_heads),
                       sizes.keys, sizes.head_dim, spec.causal ? " causal" : "",
                       spec.mask == schedule::cpu::AttentionMask::none       ? ""
                       : spec.mask == schedule::cpu::AttentionMask::additive ? " additive"
                                                                             : " boolean");
  }
};

struct Launch {
  codegen::KernelFn run = nullptr;
  std::vector<void*> buffers;
  std::vector<std::int64_t> params;
  std::int64_t items = 0;
};

// A second thread that spins for work, as the workers of an executor do within a step.
class Pair {
 public:
  Pair() : thread_([this] { serve(); }) {}
  ~Pair() { stop_ = true, round_.fetch_add(1); }
  void run(const std::function<void(int)>& work) {
    work_ = &work;
    round_.fetch_add(1);
    work(0);
    while (done_.load() != round_.load()) {}
  }

 private:
  void serve() {
    for (int seen = 0;;) {
      while (round_.load() == seen) {}
      ++seen;
      if (stop_) return;
      (*work_)(1);
      done_.store(seen);
    }
  }
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<int> round_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

class Bench {
 public:
  // Memory of the tensors: q k v out dout dq dk dv lse dots mask.
  explicit Bench(const Case& c, int workers) : case_(c), workers_(workers) {
    const AttentionSizes& s = c.sizes;
    const auto queries = static_cast<std::size_t>(s.batch * s.heads * s.queries),
               keys = static_cast<std::size_t>(s.batch * s.key_heads * s.keys),
               dim = static_cast<std::size_t>(s.head_dim);
    q_ = noise(queries * dim), k_ = noise(keys * dim), v_ = noise(keys * dim);
    dout_ = noise(queries * dim), out_ = noise(queries * dim), dq_ = noise(queries * dim);
    dk_ = noise(keys * dim), dv_ = noise(keys * dim);
    lse_ = noise(queries), dots_ = noise(queries);
    mask_.assign(static_cast<std::size_t>(s.queries * s.keys), 0);
    seen_.assign(mask_.size(), 1);
  }

  Launch launch(AttentionPart part, std::vector<void*> buffers) {
    const Case& c = case_;
    const AttentionTiling t =
        schedule::cpu::choose_tiling(part, c.spec, c.sizes, target_, workers_);
    const kir::Kernel kernel = kir::simplify(schedule::cpu::build_attention(
        fmt::format("part{}", static_cast<int>(part)), part, c.spec, t));
    const std::clock_t before = std::clock();
    library_.add({&kernel, 1});
    compile_ +=
        fmt::format(" {:.0f}", 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
    scratch_.resize(
        std::max(scratch_.size(), static_cast<std::size_t>(kernel.scratch_bytes() + 4096) * 2));
    scratch_bytes_ = std::max(scratch_bytes_, kernel.scratch_bytes());
    AttentionStrides strides = AttentionStrides::dense(c.sizes);
    strides.mask_batch = strides.mask_head = 0;
    std::vector<std::int64_t> params =
        schedule::cpu::attention_params(part, c.spec, c.sizes, strides, 0, t);
    const double scale = 1 / std::sqrt(static_cast<double>(c.sizes.head_dim));
    params.push_back(std::bit_cast<std::int32_t>(static_cast<float>(scale)));
    return {library_.find(kernel.name), std::move(buffers), params,
            schedule::cpu::attention_items(part, c.sizes, t)};
  }
  std::vector<Launch> forward() {
    std::vector<void*> buffers{q_.data(), k_.data(), v_.data()};
    add_mask(buffers);
    buffers.insert(buffers.end(), {out_.data(), lse_.data()});
    return {launch(AttentionPart::forward, buffers)};
  }
  std::vector<Launch> backward(const std::vector<AttentionPart>& parts) {
    std::vector<void*> buffers{dout_.data(), q_.data(),   k_.data(),
                               v_.data(),    lse_.data(), dots_.data()};
    add_mask(buffers);
    std::vector<Launch> launches;
    for (const AttentionPart part : parts) {
      std::vector<void*> list = buffers;
      if (part == AttentionPart::row_dots) list = {dout_.data(), out_.data(), dots_.data()};
      if (part == AttentionPart::query_grad || part == AttentionPart::all_grads)
        list.push_back(dq_.data());
      if (part == AttentionPart::key_grad || part == AttentionPart::all_grads)
        list.insert(list.end(), {dk_.data(), dv_.data()});
      launches.push_back(launch(part, list));
    }
    return launches;
  }

  // Best time of the launches, one after the other.
  double measure(const std::vector<Launch>& launches, double limit) {
    Pair pair;
    double best = 1e9;
    for (const double begin = now(); now() - begin < limit;) {
      const double start = now();
      for (const Launch& l : launches) {
        const std::function<void(int)> part = [&](int t) {
          l.run(l.buffers.data(), l.params.data(), l.items * t / workers_,
                l.items * (t + 1) / workers_, scratch(t), nullptr);
        };
        if (workers_ == 2)
          pair.run(part);
        else
          part(0);
      }
      best = std::min(best, now() - start);
    }
    return best;
  }
  // The sum of the items' best times, one thread: what disturbances of a shared machine leave
  // alone.
  double measure_items(const std::vector<Launch>& launches, double limit) {
    double sum = 0;
    for (const Launch& l : launches) {
      std::vector<double> best(static_cast<std::size_t>(l.items), 1e9);
      int rounds = 0;
      for (const double begin = now(); now() - begin < limit || rounds < 3; ++rounds)
        for (std::int64_t i = 0; i < l.items; ++i) {
          const double start = now();
          l.run(l.buffers.data(), l.params.data(), i, i + 1, scratch(0), nullptr);
          double& time = best[static_cast<std::size_t>(i)];
          time = std::min(time, now() - start);
        }
      for (const double time : best) sum += time;
    }
    return sum;
  }
  const std::string& compile_milliseconds() const { return compile_; }

 private:
  static std::vector<float> noise(std::size_t count) {
    std::vector<float> v(count);
    for (std::size_t i = 0; i < count; ++i)
      v[i] = static_cast<float>((i * 37 + 11) % 101) / 32 - 1.5F;
    return v;
  }
  void add_mask(std::vector<void*>& buffers) {
    if (case_.spec.mask == schedule::cpu::AttentionMask::additive) buffers.push_back(mask_.data());
    if (case_.spec.mask == schedule::cpu::AttentionMask::boolean) buffers.push_back(seen_.data());
  }
  void* scratch(int t) {
    const auto start = (reinterpret_cast<std::uintptr_t>(scratch_.data()) + 63) / 64 * 64;
    return reinterpret_cast<void*>(start + static_cast<std::uintptr_t>(t) *
                                               static_cast<std::uintptr_t>(scratch_bytes_ + 2048));
  }

  Case case_;
  int workers_;
  codegen::CodeLibrary library_;
  schedule::Target target_ = compiler::schedule_target(codegen::detect_host());
  std::vector<float> q_, k_, v_, dout_, out_, dq_, dk_, dv_, lse_, dots_, mask_;
  std::vector<unsigned char> seen_, scratch_;
  std::int64_t scratch_bytes_ = 0;
  std::string compile_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const AttentionSpec plain, causal{.causal = true},
      additive{.mask = schedule::cpu::AttentionMask::additive},
      boolean{.mask = schedule::cpu::AttentionMask::boolean};
  const Case cases[] = {{{1, 6, 6, 1500, 1500, 64}, plain},    {{1, 6, 6, 1500, 1500, 64}, causal},
                        {{1, 6, 6, 1500, 1500, 64}, additive}, {{1, 6, 6, 1500, 1500, 64}, boolean},
                        {{8, 12, 12, 256, 256, 64}, plain},    {{1, 6, 6, 1500, 1500, 128}, plain},
                        {{8, 8, 8, 100, 100, 80}, causal},     {{2, 9, 3, 512, 512, 64}, causal},
                        {{1, 9, 3, 1, 1500, 64}, plain}};
  for (const Case& c : cases) {
    if (!std::ranges::all_of(
            words, [&](const std::string& w) { return c.name().find(w) != std::string::npos; }))
      continue;
    const AttentionSizes& s = c.sizes;
    const double gflop = 4e-9 * static_cast<double>(s.batch * s.heads * s.queries * s.keys) *
                         static_cast<double>(s.head_dim) * (c.spec.causal ? 0.5 : 1.0);
    std::string line = fmt::format("{:24}", c.name());
    for (const int workers : {1, 2}) {
      Bench bench(c, workers);
      const std::vector<Launch> forward = bench.forward(),
                                backward =
                                    bench.backward(schedule::cpu::choose_grad_parts(s, workers));
      const auto best = [&](const std::vector<Launch>& launches) {
        return workers == 1 ? bench.measure_items(launches, 0.5) : bench.measure(launches, 0.5);
      };
      const double f = best(forward), g = best(backward);
      line += fmt::format(
          " | {} thread: forward {:6.2f} ms {:4.0f} GFLOP/s, backward {:6.2f} ms {:4.0f}"
          " GFLOP/s",
          workers, 1e3 * f, gflop / f, 1e3 * g, 2.5 * gflop / g);
      if (workers == 1)
        for (const Launch& l : backward)
          line += fmt::format(" {:.2f}", 1e3 * bench.measure_items({l}, 0.3));
      if (workers == 1) line += fmt::format(" (compiled in{} ms)", bench.compile_milliseconds());
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  return 0;
}
