#include "tools/tune/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pantala/ops.h"

namespace pantala::tools {

namespace {

// What the estimate takes for the part of a cache that data can count on, from its other side.
constexpr double kBeyond = 1.6;
constexpr double kMostBytes = 400e6;  // of a probe

Tensor values(Graph& graph, const std::string& name, const Shape& shape) {
  return graph.parameter(name, shape, init::constant(0.5));
}

// --- arithmetic and accesses

Probe sums_and_products(std::int64_t elements) {
  Probe probe{"arithmetic", {}};
  const Tensor x = values(probe.graph, "x", {elements});
  Tensor y = x;
  for (int k = 0; k < 24; ++k) y = (y + 0.25) * x;
  probe.graph.output("y", y);
  return probe;
}

Probe exponentials(std::int64_t elements) {
  Probe probe{"exponentials", {}};
  Tensor y = values(probe.graph, "x", {elements});
  for (int k = 0; k < 4; ++k) y = exp(-y);
  probe.graph.output("y", y);
  return probe;
}

// Every row takes the same few values again, which stay near.
Probe near_rows(std::int64_t rows, std::int64_t columns) {
  Probe probe{"near rows", {}};
  const Tensor a = values(probe.graph, "a", {1, columns}),
               b = values(probe.graph, "b", {1, columns}), c = values(probe.graph, "c", {rows, 1});
  probe.graph.output("y", sum(maximum(a, c) * b, {1}));
  return probe;
}

Probe transposed(std::int64_t rows, std::int64_t columns) {
  Probe probe{"transposed", {}};
  const Tensor x = values(probe.graph, "x", {columns, rows}),
               z = values(probe.graph, "z", {rows, columns});
  probe.graph.output("y", transpose(x) + z);
  return probe;
}

Probe gathered(std::int64_t rows, std::int64_t columns) {
  Probe probe{"gathered", {}};
  const Tensor x = values(probe.graph, "x", {rows, columns});
  const Tensor index = probe.graph.input("index", {rows, columns}, i64);
  probe.graph.output("y", gather(x, index, 1) + 1.0);
  std::vector<std::int64_t> places(static_cast<std::size_t>(rows * columns));
  for (std::size_t k = 0; k < places.size(); ++k)
    places[k] = static_cast<std::int64_t>(k * 7919 % static_cast<std::size_t>(columns));
  probe.inputs.emplace("index", Literal::ints({rows, columns}, std::move(places)));
  return probe;
}

// --- reductions

Probe sums_of_rows(std::int64_t rows, std::int64_t columns) {
  Probe probe{"sums of rows", {}};
  probe.graph.output("y", sum(values(probe.graph, "x", {rows, columns}), {1}));
  return probe;
}

Probe sums_of_columns(std::int64_t rows, std::int64_t columns) {
  Probe probe{"sums of columns", {}};
  probe.graph.output("y", sum(values(probe.graph, "x", {rows, columns}), {0}));
  return probe;
}

Probe normalised_rows(std::int64_t rows, std::int64_t columns) {
  Probe probe{"normalised rows", {}};
  probe.graph.output("y", softmax(values(probe.graph, "x", {rows, columns}), 1));
  return probe;
}

// --- memory: a map that reads two arrays and writes one, so many bytes in all

Probe stream(double bytes, bool is_alone = false) {
  Probe probe{"stream", {}, {}, is_alone};
  const auto elements = static_cast<std::int64_t>(bytes / 12) / 64 * 64;
  const Tensor a = values(probe.graph, "a", {elements}), b = values(probe.graph, "b", {elements});
  probe.graph.output("y", a + b);
  return probe;
}

// --- the kernels that have tilings of their own

Probe product(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed_b) {
  Probe probe{"product", {}};
  const Tensor a = values(probe.graph, "a", {m, k});
  const Tensor b =
      transposed_b ? transpose(values(probe.graph, "b", {n, k})) : values(probe.graph, "b", {k, n});
  probe.graph.output("y", matmul(a, b));
  return probe;
}

struct ConvShape {
  std::int64_t batch, in, out, side, kernel;
};
Probe convolution_of(const ConvShape& shape) {
  Probe probe{"convolution", {}};
  const Tensor x = values(probe.graph, "x", {shape.batch, shape.in, shape.side, shape.side}),
               w = values(probe.graph, "w", {shape.out, shape.in, shape.kernel, shape.kernel});
  probe.graph.output("y", convolution(x, w));
  return probe;
}

Probe convolution_backward(const ConvShape& shape) {
  Probe probe{"gradients of a convolution", {}};
  const std::int64_t side = shape.side - shape.kernel + 1;
  const Tensor x = values(probe.graph, "x", {shape.batch, shape.in, shape.side, shape.side}),
               w = values(probe.graph, "w", {shape.out, shape.in, shape.kernel, shape.kernel}),
               dy = values(probe.graph, "dy", {shape.batch, shape.out, side, side});
  probe.graph.output("dx", convolution_input_grad(dy, w, {shape.side, shape.side}));
  probe.graph.output("dw", convolution_weight_grad(x, dy, {shape.kernel, shape.kernel}));
  return probe;
}

Probe attention_of(std::int64_t batch, std::int64_t sequence, std::int64_t size, bool causal) {
  Probe probe{"attention", {}};
  const Shape shape{batch, 4, sequence, size};
  const Tensor q = values(probe.graph, "q", shape), k = values(probe.graph, "k", shape),
               v = values(probe.graph, "v", shape);
  probe.graph.output("y", attention(q, k, v, {.causal = causal}));
  return probe;
}

// Streams from every level that there is, by the sizes at which the estimate sees a level.
void add_streams(const schedule::Target& target, int threads, double place,
                 std::vector<Probe>& round) {
  const double l1 = static_cast<double>(target.l1_bytes) * threads,
               l2 = static_cast<double>(target.l2_bytes) * threads,
               l3 = static_cast<double>(target.l3_bytes);
  // Between two levels: at `place` of the way from the smaller to the larger.
  const auto between = [&](double smaller, double larger) {
    return smaller * std::pow(larger / smaller, place);
  };
  round.push_back(stream(between(l1, 0.7 * l2)));
  if (0.7 * l3 > 1.2 * l2) round.push_back(stream(between(l2, 0.7 * l3)));
  if (const double beyond = kBeyond * (1 + place) * l3; beyond < kMostBytes) {
    round.push_back(stream(beyond));
    round.push_back(stream(beyond, true));
  }
}

}  // namespace

std::vector<std::vector<Probe>> probe_rounds(const schedule::Target& target, int threads) {
  std::vector<std::vector<Probe>> rounds(3);
  const auto add = [&](std::size_t round, Probe probe) {
    rounds[round].push_back(std::move(probe));
  };
  add(0, sums_and_products(1 << 17));
  add(0, near_rows(2048, 1024));
  add(0, transposed(256, 512));
  add(0, gathered(256, 512));
  add(0, sums_of_rows(32768, 4));
  add(0, sums_of_columns(512, 512));
  add(0, normalised_rows(8192, 16));
  add(0, product(256, 256, 256, false));
  add(0, convolution_of({8, 16, 32, 28, 3}));
  add(0, attention_of(2, 128, 64, true));
  add(1, exponentials(1 << 17));
  add(1, near_rows(8192, 256));
  add(1, transposed(1024, 100));
  add(1, gathered(64, 4096));
  add(1, sums_of_rows(65536, 8));
  add(1, sums_of_columns(2048, 100));
  add(1, normalised_rows(16384, 10));
  add(1, product(64, 784, 128, true));
  add(1, convolution_backward({8, 16, 32, 28, 3}));
  add(1, attention_of(1, 256, 32, false));
  add(2, sums_and_products(1 << 15));
  add(2, near_rows(1024, 4096));
  add(2, sums_of_rows(100000, 3));
  add(2, product(512, 1024, 64, false));
  add(2, product(1024, 128, 512, true));
  add(2, convolution_of({4, 64, 64, 14, 3}));
  add(2, convolution_of({16, 1, 6, 28, 5}));
  add(2, attention_of(4, 64, 64, true));
  constexpr double kPlaces[] = {0.5, 0.3, 0.7};
  for (std::size_t k = 0; k < rounds.size(); ++k)
    add_streams(target, threads, kPlaces[k], rounds[k]);
  return rounds;
}

Probe launch_chain(bool serial, int launches) {
  Probe probe{serial ? "serial launches" : "shared launches", {}};
  // Sums of rows that the next one needs whole: nothing of it can be one kernel.
  const std::int64_t side = serial ? 16 : 160;
  const Tensor w = values(probe.graph, "w", {side, side});
  Tensor row = values(probe.graph, "x", {1, side});
  for (int k = 0; k < launches; ++k) row = reshape(sum(w * row, {1}), {1, side});
  probe.graph.output("y", row);
  return probe;
}

}  // namespace pantala::tools
