// Hand-built kernels and plans, and a plan on a device with its memory bound.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"
#include "kir/builder.h"
#include "plan/arena.h"
#include "plan/dependencies.h"
#include "plan/plan.h"

namespace pantala::plan {

constexpr std::int64_t kTile = 32;
inline std::int64_t tiles(std::int64_t n) { return (n + kTile - 1) / kTile; }

// Calls body(i, mask) for eight lanes at a time of the item's tile of n elements.
inline void for_lanes(kir::Builder& b, kir::Var n,
                      const std::function<void(kir::Var, kir::Var)>& body) {
  const kir::Var begin = b.item() * kTile;
  b.loop(begin, min(begin + kTile, n), b.i64(8),
         [&](kir::Var i) { body(i, lt(b.splat(i, 8) + b.iota({DType::i64, 8}), b.splat(n, 8))); });
}

// y += a * x.
inline kir::Kernel axpy(const std::string& name = "axpy") {
  kir::Builder b(name);
  const kir::BufferId x = b.buffer("x", DType::f32, kir::Access::read),
                      y = b.buffer("y", DType::f32, kir::Access::read_write);
  const kir::Var n = b.param("n"), a = b.param("a", DType::f32);
  for_lanes(b, n, [&](kir::Var i, kir::Var mask) {
    b.store(y, i, b.fma(a, b.load(x, i, 8, mask), b.load(y, i, 8, mask)), mask);
  });
  return b.finish();
}

// y = x * x + c.
inline kir::Kernel square(const std::string& name = "square", double c = 0.25) {
  kir::Builder b(name);
  const kir::BufferId x = b.buffer("x", DType::f32, kir::Access::read),
                      y = b.buffer("y", DType::f32, kir::Access::write);
  const kir::Var n = b.param("n");
  for_lanes(b, n, [&](kir::Var i, kir::Var mask) {
    const kir::Var v = b.load(x, i, 8, mask);
    b.store(y, i, v * v + c, mask);
  });
  return b.finish();
}

// x = x / 2, in place: `x` and `y` are the same memory.
inline kir::Kernel halve(const std::string& name = "halve") {
  kir::Builder b(name);
  const kir::BufferId x = b.buffer("x", DType::f32, kir::Access::read_write),
                      y = b.buffer("y", DType::f32, kir::Access::write);
  const kir::Var n = b.param("n");
  for_lanes(b, n,
            [&](kir::Var i, kir::Var mask) { b.store(y, i, b.load(x, i, 8, mask) * 0.5, mask); });
  return b.finish();
}

// sums[item] = the sum of the item's tile, by way of scratch.
inline kir::Kernel tile_sums(const std::string& name = "tile_sums") {
  kir::Builder b(name);
  const kir::BufferId x = b.buffer("x", DType::f32, kir::Access::read),
                      sums = b.buffer("sums", DType::f32, kir::Access::write);
  const kir::BufferId tile = b.scratch("tile", DType::f32, kTile);
  const kir::Var n = b.param("n");
  const kir::Var begin = b.item() * kTile, end = min(begin + kTile, n);
  b.loop(begin, end, b.i64(1), [&](kir::Var i) { b.store(tile, i - begin, b.load(x, i)); });
  const auto sum = b.loop(b.i64(0), end - begin, b.i64(1), {b.constant({DType::f32, 1}, 0.0)},
                          [&](kir::Var i, std::span<const kir::Var> carried) {
                            return std::vector{carried[0] + b.load(tile, i)};
                          });
  b.store(sums, b.item(), sum[0]);
  return b.finish();
}

// y[0] = the sum of x in order; reports 7 if it exceeds the limit.
inline kir::Kernel total(const std::string& name = "total") {
  kir::Builder b(name);
  const kir::BufferId x = b.buffer("x", DType::f32, kir::Access::read),
                      y = b.buffer("y", DType::f32, kir::Access::write);
  const kir::Var n = b.param("n"), limit = b.param("limit", DType::f64);
  const auto sum = b.loop(b.i64(0), n, b.i64(1), {b.constant({DType::f32, 1}, 0.0)},
                          [&](kir::Var i, std::span<const kir::Var> carried) {
                            return std::vector{carried[0] + b.load(x, i)};
                          });
  b.report(lt(limit, b.cast(sum[0], DType::f64)), 7);
  b.store(y, b.item(), sum[0]);
  return b.finish();
}

inline Launch launch(std::string name, std::uint32_t unit, std::vector<ArgumentSet> sets,
                     bool serial = false) {
  return {.name = std::move(name),
          .unit = unit,
          .sets = std::move(sets),
          .after = {},
          .serial = serial};
}

// A step in small, n at least 100: weights of several sizes are moved by their "gradients" in one
// launch over a table, with a rate that is a uniform; a chain of temporaries from the input, one of
// them in place; and a reduction in two launches. 100 constants are added on the way.
inline Plan small_step(std::int64_t n = 1000) {
  Plan p;
  p.name = "small_step";
  const std::uint32_t rate = add_uniform(p, "rate", DType::f32),
                      limit = add_uniform(p, "limit", DType::f64);
  const std::uint32_t k_axpy = add_unit(p, axpy()), k_square = add_unit(p, square()),
                      k_halve = add_unit(p, halve()), k_sums = add_unit(p, tile_sums()),
                      k_total = add_unit(p, total());
  const std::uint32_t x = add_region_buffer(p, Storage::input, "x", DType::f32, n);
  p.inputs.push_back({"x", x, Shape{n}, 0});
  std::vector<float> numbers(100);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k) * 0.125F;
  std::vector<std::byte> content(400);
  std::memcpy(content.data(), numbers.data(), 400);
  const std::uint32_t bias = add_constant(p, "bias", DType::f32, content);
  Launch update = launch("update", k_axpy, {});
  for (const std::int64_t size : {n, std::int64_t{1}, std::int64_t{77}, n / 2}) {
    const std::string name = fmt::format("w{}", update.sets.size());
    const std::uint32_t w = add_region_buffer(p, Storage::store, name, DType::f32, size);
    p.parameters.push_back({name, w, Shape{size}, 0});
    update.sets.push_back({tiles(size), {x, w}, {Scalar::immediate(size), Scalar::uniform(rate)}});
  }
  const std::uint32_t a = add_arena_buffer(p, "a", DType::f32, n),
                      b = add_arena_buffer(p, "b", DType::f32, n),
                      c = add_arena_buffer(p, "c", DType::f32, n);
  const std::uint32_t sums = add_arena_buffer(p, "sums", DType::f32, tiles(n));
  const std::uint32_t loss = add_region_buffer(p, Storage::output, "loss", DType::f32, 1);
  p.outputs.push_back({"loss", loss, Shape{}, 0});
  p.gradients.push_back({"w0", p.parameters[0].buffer, a});
  const Scalar size = Scalar::immediate(n);
  p.launches.push_back(update);
  p.launches.push_back(launch("a", k_square, {{tiles(n), {p.parameters[0].buffer, a}, {size}}}));
  p.launches.push_back(
      launch("bias", k_axpy,
             {{tiles(100), {bias, a}, {Scalar::immediate(100), Scalar::immediate(2.0F)}}}));
  p.launches.push_back(launch("b", k_halve, {{tiles(n), {a, b}, {size}}}));
  p.launches.push_back(launch("c", k_square, {{tiles(n), {b, c}, {size}}}));
  p.launches.push_back(launch("sums", k_sums, {{tiles(n), {c, sums}, {size}}}));
  p.launches.push_back(
      launch("loss", k_total,
             {{1, {sums, loss}, {Scalar::immediate(tiles(n)), Scalar::uniform(limit)}}}, true));
  const std::vector<std::vector<ArenaUse::InPlace>> in_place{{}, {}, {}, {{b, a}}};
  place_arena(p, {}, in_place);
  add_dependencies(p);
  return p;
}

}  // namespace pantala::plan

namespace pantala::device {

// A plan on a device, every region with memory of its own.
class OnDevice {
 public:
  OnDevice(Device& device, plan::Plan plan)
      : device_(device), plan_(plan), id_(device.load(std::move(plan))) {
    arena = {device.allocate(plan_.arena_bytes), 0, plan_.arena_bytes};
    for (const plan::Region& r : plan_.regions)
      regions.push_back({device.allocate(r.bytes), 0, r.bytes});
  }
  ~OnDevice() {
    device_.unload(id_);
    device_.free(arena.memory);
    for (const Slice& s : regions) device_.free(s.memory);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  void run(const std::vector<std::int64_t>& uniforms) {
    device_.run(id_, {arena, regions, uniforms});
  }
  // Seeded numbers in every input and store region of f32.
  void fill(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t r = 0; r < regions.size(); ++r) {
      std::vector<float> values(static_cast<std::size_t>(regions[r].bytes / 4));
      for (float& v : values)
        v = static_cast<float>(static_cast<double>(random() % 2001) / 1000.0 - 1.0);
      device_.write(regions[r], std::as_bytes(std::span(values)));
    }
  }
  std::map<std::string, std::vector<std::byte>> contents() {
    std::map<std::string, std::vector<std::byte>> result;
    for (std::size_t r = 0; r < regions.size(); ++r) {
      auto& bytes = result[plan_.regions[r].name];
      bytes.resize(static_cast<std::size_t>(regions[r].bytes));
      device_.read(regions[r], bytes);
    }
    return result;
  }
  PlanId id() const { return id_; }

  Slice arena;
  std::vector<Slice> regions;

 private:
  Device& device_;
  plan::Plan plan_;
  PlanId id_;
};

}  // namespace pantala::device
