#include "schedule/cpu/conv/kernel.h"

#include <fmt/format.h>

#include "pantala/error.h"
#include "schedule/cpu/conv/writer.h"

namespace pantala::schedule::cpu {

using kir::Access;
using kir::Var;

ConvKernel::ConvKernel(std::string name, const ConvSpec& spec, const ConvOrder& order,
                       const ConvTiling& tiling, const ContractHooks& hooks)
    : b(std::move(name)),
      spec_(spec),
      order_(order),
      t_(tiling),
      hooks_(hooks),
      result_contiguous_(spec.result_contiguous || order.slices > 1) {}

kir::Kernel ConvKernel::build() {
  declare();
  if (weight())
    weight_item();
  else
    position_item();
  return b.finish();
}

void ConvKernel::declare() {
  first_ = b.buffer("first", spec_.dtype, Access::read);
  second_ = b.buffer("second", spec_.dtype, Access::read);
  result_ = b.buffer("result", spec_.dtype, hooks_.result.c_access);
  n_ = declare_numbers(b, spec_.rank);
  if (hooks_.a.declare) hooks_.a.declare(b);
  if (hooks_.b.declare) hooks_.b.declare(b);
  if (hooks_.result.declare) hooks_.result.declare(b);
  slab_ = first_;
  if (t_.fill != ConvFill::in_place) slab_ = b.scratch("slab", spec_.dtype, t_.slab);
  packed_ = second_;
  if (t_.pack_lanes) packed_ = b.scratch("panel", spec_.dtype, t_.panels);
  sums_ = b.scratch("sums", spec_.dtype, t_.sums);
  if (t_.flat_result) square_ = b.scratch("square", spec_.dtype, t_.lanes * t_.lanes);
  row_at_ = b.scratch("row_at", DType::i64, t_.row_table);
  run_at_ = b.scratch("run_at", DType::i64, t_.run_table);
  if (weight()) second_at_ = b.scratch("second_at", DType::i64, t_.run_table);
}

void ConvKernel::each(const std::array<Var, 3>& counts,
                      const std::function<void(std::array<Var, 3>)>& body) {
  each(counts[0], [&](Var x) {
    each(counts[1], [&](Var y) { each(counts[2], [&](Var z) { body({x, y, z}); }); });
  });
}

void ConvKernel::vectors(Var count, const std::function<void(Var, Var)>& body) {
  const Var whole = t_.whole_lanes ? count : count / t_.lanes * t_.lanes;
  b.loop(b.i64(0), whole, b.i64(t_.lanes), [&](Var i) { body(i, {}); });
  if (t_.whole_lanes) return;
  b.branch(lt(whole, count), [&] { body(whole, first_lanes(b, count - whole, t_.lanes)); });
}

ConvKernel::Axis ConvKernel::open_axis(std::size_t k, Var phase, Var box_index) {
  const ConvAxisNumbers<Var>& a = n_.axes[k];
  Axis axis;
  axis.first = box_index * n_.box[k + 1];
  Var positions = a.results;
  if (input()) {
    // The elements phase, phase + stride, ... are computed together.
    const Var distance = phase + a.padding;
    const PhaseTaps taps = taps_of_phase(b, a, phase);
    axis.kernel0 = taps.first;
    axis.taps = taps.count;
    axis.result0 = phase;
    axis.result_step = a.stride;
    positions = ceil_div(a.results - phase, a.stride);
    axis.window0 =
        (distance - axis.kernel0 * a.dilation) / a.stride + axis.first - (axis.taps - 1) * a.reach;
  } else {
    axis.kernel0 = b.i64(0);
    axis.taps = a.kernel;
    axis.result0 = b.i64(0);
    axis.result_step = b.i64(1);
    axis.window0 = axis.first * a.stride - a.padding;
  }
  axis.count = max(min(n_.box[k + 1], positions - axis.first), 0);
  axis.extent = a.row_step * (axis.count - 1) + a.tap_step * (axis.taps - 1) + 1;
  return axis;
}

void ConvKernel::open_lanes(Var index) {
  lane0_ = index * n_.lane_block;
  lane_count_ = min(n_.lane_block, n_.lane_channels - lane0_);
  panels_ = ceil_div(lane_count_, columns());
}

void ConvKernel::open_box(const std::array<Var, 4>& index, const std::array<Var, 3>& phase) {
  image0_ = index[0] * n_.box[0];
  images_ = min(n_.box[0], n_.batch - image0_);
  for (std::size_t k = 0; k < 3; ++k) axes_[k] = open_axis(k, phase[k], index[k + 1]);
}

// Phases differ in their work, so neighbours have different ones: workers take runs of items.
void ConvKernel::position_item() {
  Var rest = b.item();
  std::array<Var, 3> phase;
  phase_ = b.i64(0);
  for (std::size_t k = 3; k > 0; --k)
    phase[k - 1] = input() && has_axis(k) ? take_digit(rest, n_.axes[k - 1].stride) : b.i64(0);
  for (std::size_t k = 0; k < 3 && input(); ++k)
    phase_ = phase_ * (has_axis(k + 1) ? n_.axes[k].stride : b.i64(1)) + phase[k];
  open_lanes(take_digit(rest, n_.lane_blocks));
  std::array<Var, 4> box;
  for (std::size_t k = 4; k > 0; --k)
    box[k - 1] = has_axis(k - 1) ? take_digit(rest, n_.boxes[k - 1]) : b.i64(0);
  group_ = rest;
  open_box(box, phase);
  rows_ = images_ * axes_[0].count * axes_[1].count * axes_[2].count;
  tiles_ = ceil_div(rows_, t_.rows);
  padded_rows_ = tiles_ * t_.rows;
  const auto chunk = [&](Var channel0) {
    channel0_ = channel0;
    chunk_ = min(n_.channel_block, n_.channels - channel0);
    open_slab();
    fill_slab();
    rows_of_positions();
    if (t_.single_block) return position_block(b.i64(0));
    const Var taps = axes_[0].taps * axes_[1].taps * axes_[2].taps;
    b.loop(b.i64(0), max(taps, 1), n_.tap_block, [&](Var tap) { position_block(tap); });
  };
  if (t_.single_block)
    chunk(b.i64(0));
  else
    b.loop(b.i64(0), max(n_.channels, 1), n_.channel_block, chunk);
  finish_positions();
}

void ConvKernel::position_block(Var first_tap) {
  const Var taps = axes_[0].taps * axes_[1].taps * axes_[2].taps;
  const Var count = min(n_.tap_block, taps - first_tap);
  runs_of_taps(first_tap, count);
  const Var first_block = b.binary(kir::Op::bit_and, eq(channel0_, 0), eq(first_tap, 0));
  const Var chunk = channel0_ / n_.channel_block, tap_block = first_tap / n_.tap_block;
  product(first_block, [&](Var lane) {
    return panel_at(b, n_, columns(), input(),
                    {group_, phase_, lane / columns(), chunk, tap_block});
  });
}

void ConvKernel::weight_item() {
  Var rest = b.item();
  channel0_ = take_digit(rest, n_.channel_blocks) * n_.channel_block;
  chunk_ = min(n_.channel_block, n_.channels - channel0_);
  open_lanes(take_digit(rest, n_.lane_blocks));
  group_ = take_digit(rest, n_.groups);
  const Var slice = rest;
  const Var blocks = n_.boxes[0] * n_.boxes[1] * n_.boxes[2] * n_.boxes[3];
  const Var first = slice * n_.slice_blocks;
  rows_ = n_.axes[0].kernel * n_.axes[1].kernel * n_.axes[2].kernel * chunk_;
  tiles_ = ceil_div(rows_, t_.rows);
  padded_rows_ = tiles_ * t_.rows;
  // Also once for no images: the sums must be written.
  b.loop(first, max(min(first + n_.slice_blocks, blocks), first + 1), b.i64(1), [&](Var block) {
    Var digits = block;
    std::array<Var, 4> index;
    for (std::size_t k = 3; k > 0; --k)
      index[k] = has_axis(k) ? take_digit(digits, n_.boxes[k]) : b.i64(0);
    index[0] = digits;
    open_box(index, {b.i64(0), b.i64(0), b.i64(0)});
    open_slab();
    fill_slab();
    rows_of_taps();
    runs_of_lines();
    product(eq(block, first), [&](Var lane) {
      if (!t_.pack_lanes) return group_ * n_.lane_channels * n_.second_channel + lane;
      pack_lines(lane);
      return b.i64(0);
    });
  });
  for (std::size_t k = 0; k < 3; ++k) axes_[k] = open_axis(k, b.i64(0), b.i64(0));
  if (t_.flat_result)
    finish_flat();
  else
    finish_weight(slice);
}

void ConvKernel::product(Var first_block, const std::function<Var(Var)>& second_at) {
  each(panels_, [&](Var panel) {
    const Var second_base = second_at(lane0_ + panel * columns());
    each(tiles_, [&](Var tile) {
      const Var slab_lane = spec_.depthwise ? panel * columns() : b.i64(0);
      const std::vector<Var> sums = register_tile(tile * t_.rows, slab_lane, second_base);
      keep(sums, (panel * padded_rows_ + tile * t_.rows) * columns(), first_block);
    });
  });
}

std::vector<Var> ConvKernel::register_tile(Var row, Var slab_lane, Var second_base) {
  std::vector<Var> row_at;
  for (int r = 0; r < t_.rows; ++r) row_at.push_back(b.load(row_at_, row + r));
  const auto step = [&](const std::vector<Var>& from, Var second, Var i, int u,
                        std::vector<Var>& sums) {
    std::vector<Var> lanes;
    const Var at = second + (i + u) * second_step_;
    for (int v = 0; v < t_.vectors; ++v)
      lanes.push_back(b.load(packed_, at + v * t_.lanes, t_.lanes));
    const Var along = i * slab_step_, further = u * slab_step_;
    for (std::size_t r = 0; r < from.size(); ++r) {
      Var many;
      if (!spec_.depthwise) many = b.splat(b.load(slab_, from[r] + along + further), t_.lanes);
      for (int v = 0; v < t_.vectors; ++v) {
        Var& sum = sums[r * static_cast<std::size_t>(t_.vectors) + static_cast<std::size_t>(v)];
        if (spec_.depthwise)
          many = b.load(slab_, from[r] + along + (further + v * t_.lanes), t_.lanes);
        sum = b.fma(many, lanes[static_cast<std::size_t>(v)], sum);
      }
    }
  };
  const auto run = [&](Var index, std::span<const Var> carried) {
    std::vector<Var> sums(carried.begin(), carried.end());
    const Var offset = b.load(run_at_, index) + slab_lane;
    std::vector<Var> from;
    for (const Var& at : row_at) from.push_back(at + offset);
    const Var second =
        second_base + (in_panels() ? index * run_length_ * columns() : b.load(second_at_, index));
    const auto body = [&](int unroll) {
      return [&, unroll](Var i, std::span<const Var> before) {
        std::vector<Var> next(before.begin(), before.end());
        for (int u = 0; u < unroll; ++u) step(from, second, i, u, next);
        return next;
      };
    };
    if (t_.short_runs) return body(t_.unroll)(b.i64(0), sums);
    const Var whole = t_.whole_runs ? run_length_ : run_length_ / t_.unroll * t_.unroll;
    sums = b.loop(b.i64(0), whole, b.i64(t_.unroll), sums, body(t_.unroll));
    if (t_.whole_runs) return sums;
    return b.loop(whole, run_length_, b.i64(1), sums, body(1));
  };
  const std::vector<Var> zeros(static_cast<std::size_t>(t_.rows * t_.vectors),
                               b.constant({spec_.dtype, t_.lanes}, 0.0));
  return b.loop(b.i64(0), runs_, b.i64(1), zeros, run);
}

kir::Kernel build_conv(std::string name, const ConvSpec& spec, const ConvOrder& order,
                       const ConvTiling& tiling, const ContractHooks& hooks) {
  const auto fail = [&](const char* what) {
    throw InternalError(fmt::format("conv kernel '{}': {}", name, what));
  };
  if (spec.dtype != DType::f32 && spec.dtype != DType::f64) fail("not a type of computation");
  if (spec.rank < 3 || spec.rank > 5) fail("1 to 3 spatial axes are possible");
  if (tiling.rows < 1 || tiling.vectors < 1 || tiling.unroll < 1 || tiling.lanes < 2)
    fail("a tile is empty");
  if (order.slices > 1 && hooks.result.apply)
    fail("the epilogue of a sliced reduction belongs to the kernel that combines the slices");
  if (hooks.a.apply && tiling.fill != ConvFill::channels)
    fail("an operand with a prologue is filled by channels");
  if (hooks.b.apply && !tiling.pack_lanes) fail("an operand with a prologue is not packed here");
  return ConvKernel(std::move(name), spec, order, tiling, hooks).build();
}

}  // namespace pantala::schedule::cpu
