// From the sums of a conv kernel to its result, and the kernel that adds the slices of a weight
// gradient.
#include <fmt/format.h>

#include "pantala/error.h"
#include "schedule/cpu/conv/writer.h"

namespace pantala::schedule::cpu {

using kir::Var;

namespace {

constexpr std::int64_t kCombineRows = 8;  // rows of the result per item

void store_result(kir::Builder& b, const Epilogue& epilogue, const ResultSite& site,
                  bool contiguous, Var lane_stride) {
  Var value = site.value;
  if (epilogue.apply) {
    value = epilogue.apply(b, site);
    if (!value.valid()) return;
  }
  if (contiguous)
    b.store(site.c, site.c_at, value, site.mask);
  else
    b.store_strided(site.c, site.c_at, lane_stride, value, site.mask);
}

std::vector<Var> with_rank(int rank, Var outer, Var channel, const std::array<Var, 3>& spatial) {
  std::vector<Var> list{outer, channel};
  for (int k = 5 - rank; k < 3; ++k) list.push_back(spatial[static_cast<std::size_t>(k)]);
  return list;
}

}  // namespace

std::vector<Var> ConvKernel::coordinates(Var outer, Var channel,
                                         const std::array<Var, 3>& spatial) const {
  return with_rank(spec_.rank, outer, channel, spatial);
}

Var ConvKernel::sums_at(Var row, Var lane) {
  return (lane / columns() * padded_rows_ + row) * columns() + lane % columns();
}

void ConvKernel::emit(ResultSite site, Var lane_stride) {
  site.c = result_;
  site.lanes_along_n = true;
  store_result(b, hooks_.result, site, result_contiguous_, lane_stride);
}

void ConvKernel::finish_positions() {
  const Var channel0 = group_ * n_.lane_channels + lane0_;
  each({images_, axes_[0].count, axes_[1].count}, [&](std::array<Var, 3> i) {
    const Var line = (i[0] * axes_[0].count + i[1]) * axes_[1].count + i[2];
    each(axes_[2].count, [&](Var w) {
      const Var image = image0_ + i[0];
      const std::array<Var, 3> in_box{i[1], i[2], w};
      std::array<Var, 3> spatial;
      Var at = image * n_.result_outer, flat = b.i64(0);
      for (std::size_t k = 0; k < 3; ++k) {
        spatial[k] = axes_[k].result0 + (axes_[k].first + in_box[k]) * axes_[k].result_step;
        at = at + spatial[k] * n_.axes[k].result_stride;
        flat = flat * n_.axes[k].results + spatial[k];
      }
      vectors(lane_count_, [&](Var lane, Var mask) {
        const Var channel = channel0 + lane;
        emit({.value = b.load(sums_, sums_at(line * axes_[2].count + w, lane), t_.lanes),
              .batch = image,
              .m = flat,
              .n = channel,
              .mask = mask,
              .c_at = at + channel * n_.result_channel,
              .c = {},
              .lanes_along_n = true,
              .coordinates = coordinates(image, channel, spatial),
              .lane_dim = 1},
             n_.result_channel);
      });
    });
  });
}

// Taps innermost: they are neighbours in the weight's memory.
void ConvKernel::finish_weight(Var slice) {
  const Var out0 = group_ * n_.lane_channels + lane0_;
  const std::array<Var, 3> kernel{n_.axes[0].kernel, n_.axes[1].kernel, n_.axes[2].kernel};
  each(chunk_, [&](Var c) {
    const Var channel = channel0_ + c;
    each(kernel, [&](std::array<Var, 3> tap) {
      Var at = slice * n_.slice_stride + channel * n_.result_channel, flat = b.i64(0);
      for (std::size_t k = 0; k < 3; ++k) {
        at = at + tap[k] * n_.axes[k].result_stride;
        flat = flat * kernel[k] + tap[k];
      }
      vectors(lane_count_, [&](Var lane, Var mask) {
        const Var out = out0 + lane;
        emit({.value = b.load(sums_, sums_at(flat * chunk_ + c, lane), t_.lanes),
              .batch = b.i64(0),
              .m = channel * kernel[0] * kernel[1] * kernel[2] + flat,
              .n = out,
              .mask = mask,
              .c_at = at + out * n_.result_outer,
              .c = {},
              .lanes_along_n = true,
              .coordinates = coordinates(out, channel, tap),
              .lane_dim = 0},
             n_.result_outer);
      });
    });
  });
}

// Squares are transposed, and pass through scratch, so that the epilogue stands in a loop: what one
// output channel has lies one after another, and output channels lie far apart.
void ConvKernel::finish_flat() {
  const Var elements = n_.axes[0].kernel * n_.axes[1].kernel * n_.axes[2].kernel;
  const Var length = chunk_ * elements;
  const auto finish_square = [&](Var lane, Var first, std::span<const Var> place) {
    std::vector<Var> square;
    Var c = place[0], tap = place[1];
    for (int j = 0; j < t_.lanes; ++j) {
      square.push_back(b.load(sums_, sums_at(min(tap * chunk_ + c, rows_ - 1), lane), t_.lanes));
      const Var wraps = eq(tap + 1, elements);
      c = b.select(wraps, c + 1, c);
      tap = b.select(wraps, b.i64(0), tap + 1);
    }
    square = b.transpose(square);
    for (int l = 0; l < t_.lanes; ++l)
      b.store(square_, b.i64(l * t_.lanes), square[static_cast<std::size_t>(l)]);
    const auto emit_all = [&](Var mask) {
      each(min(lane_count_ - lane, t_.lanes), [&](Var l) {
        const Var out = group_ * n_.lane_channels + lane0_ + lane + l;
        const Var m = channel0_ * elements + first;
        store_result(b, hooks_.result,
                     {.value = b.load(square_, l * t_.lanes, t_.lanes),
                      .batch = b.i64(0),
                      .m = m,
                      .n = out,
                      .mask = mask,
                      .c_at = out * n_.result_outer + m,
                      .c = result_,
                      .lanes_along_n = false,
                      .coordinates = {out, m},
                      .lane_dim = 1},
                     true, {});
      });
      return std::vector<Var>{};
    };
    const Var left = length - first;
    b.branch(
        le(t_.lanes, left), [&] { return emit_all({}); },
        [&] { return emit_all(first_lanes(b, left, t_.lanes)); });
    return std::vector<Var>{c, tap};
  };
  b.loop(b.i64(0), lane_count_, b.i64(t_.lanes), [&](Var lane) {
    b.loop(
        b.i64(0), length, b.i64(t_.lanes), {b.i64(0), b.i64(0)},
        [&](Var first, std::span<const Var> place) { return finish_square(lane, first, place); });
  });
}

kir::Kernel build_conv_combine(std::string name, const ConvSpec& spec, const Target& target,
                               const Epilogue& epilogue) {
  if (spec.direction != ConvDirection::weight_grad)
    throw InternalError(fmt::format("conv kernel '{}': only weight gradients have slices", name));
  const int lanes = target.lanes(spec.dtype);
  kir::Builder b(std::move(name));
  const kir::BufferId partials = b.buffer("partials", spec.dtype, kir::Access::read);
  const kir::BufferId result = b.buffer("result", spec.dtype, epilogue.c_access);
  const Var rows = b.param("rows"), out = b.param("out"), slices = b.param("slices");
  const std::array<Var, 3> kernel{b.param("kernel_d"), b.param("kernel_h"), b.param("kernel_w")};
  const Var outer = b.param("result_outer"), channel_stride = b.param("result_channel");
  const std::array<Var, 3> stride{b.param("result_d"), b.param("result_h"), b.param("result_w")};
  if (epilogue.declare) epilogue.declare(b);
  const Var first = b.item() * kCombineRows;
  b.loop(first, min(first + kCombineRows, rows), b.i64(1), [&](Var row) {
    const Var w = row % kernel[2], h = row / kernel[2] % kernel[1],
              d = row / (kernel[2] * kernel[1]) % kernel[0],
              channel = row / (kernel[2] * kernel[1] * kernel[0]);
    const Var at = channel * channel_stride + d * stride[0] + h * stride[1] + w * stride[2];
    const auto vector = [&](Var lane, Var mask) {
      const Var from = row * out + lane;
      const Var sum =
          b.loop(b.i64(1), slices, b.i64(1), {b.load(partials, from, lanes, mask)},
                 [&](Var slice, std::span<const Var> carried) {
                   return std::vector<Var>{
                       carried[0] + b.load(partials, slice * rows * out + from, lanes, mask)};
                 })[0];
      store_result(b, epilogue,
                   {.value = sum,
                    .batch = b.i64(0),
                    .m = row,
                    .n = lane,
                    .mask = mask,
                    .c_at = at + lane * outer,
                    .c = result,
                    .lanes_along_n = true,
                    .coordinates = with_rank(spec.rank, lane, channel, {d, h, w}),
                    .lane_dim = 0},
                   spec.result_contiguous, outer);
    };
    const Var whole = out / lanes * lanes;
    b.loop(b.i64(0), whole, b.i64(lanes), [&](Var lane) { vector(lane, {}); });
    b.branch(lt(whole, out), [&] { vector(whole, first_lanes(b, out - whole, lanes)); });
  });
  return b.finish();
}

std::vector<std::int64_t> conv_combine_params(const ConvSizes& sizes, const ConvStrides& strides,
                                              const ConvOrder& order) {
  std::vector<std::int64_t> list{sizes.in / sizes.groups * sizes.taps(), sizes.out, order.slices};
  const std::size_t missing = 3 - sizes.axes.size();
  for (std::size_t k = 0; k < 3; ++k)
    list.push_back(k < missing ? 1 : sizes.axes[k - missing].kernel);
  list.push_back(strides.weight[0]);
  list.push_back(strides.weight[1]);
  for (std::size_t k = 0; k < 3; ++k)
    list.push_back(k < missing ? 0 : strides.weight[k - missing + 2]);
  return list;
}

std::int64_t conv_combine_items(const ConvSizes& sizes) {
  return (sizes.in / sizes.groups * sizes.taps() + kCombineRows - 1) / kCombineRows;
}

}  // namespace pantala::schedule::cpu
