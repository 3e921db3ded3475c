// How the operands of a conv kernel get into scratch: the slab of the window operand, panels of the
// other, and the tables of offsets that rows and runs are.
#include "schedule/cpu/conv/writer.h"

namespace pantala::schedule::cpu {

using kir::Op;
using kir::Var;

void ConvKernel::open_slab() {
  const Var channel =
      (spec_.depthwise ? lane0_ : group_ * n_.channels + channel0_) * n_.window_channel;
  slab_base_ = b.i64(0);
  if (t_.fill == ConvFill::in_place) {
    slab_base_ = image0_ * n_.window_outer + channel;
    slab_image_ = n_.window_outer;
    for (std::size_t k = 0; k < 3; ++k) {
      axes_[k].slab_stride = n_.axes[k].gap * n_.axes[k].window_stride;
      slab_base_ = slab_base_ + axes_[k].window0 * n_.axes[k].window_stride;
    }
    return;
  }
  Var stride = spec_.depthwise ? panels_ * columns() : chunk_;
  for (std::size_t k = 3; k > 0; --k) {
    axes_[k - 1].slab_stride = stride;
    stride = stride * max(axes_[k - 1].extent, 0);
  }
  slab_image_ = stride;
}

Var ConvKernel::inside(Var at, std::size_t k) {
  return b.binary(Op::bit_and, le(0, at), lt(at, n_.axes[k].window));
}

void ConvKernel::fill_slab() {
  if (t_.fill == ConvFill::in_place) return;
  const Var channel =
      (spec_.depthwise ? lane0_ : group_ * n_.channels + channel0_) * n_.window_channel;
  each({images_, axes_[0].extent, axes_[1].extent}, [&](std::array<Var, 3> i) {
    const Var d = axes_[0].window0 + i[1] * n_.axes[0].gap,
              h = axes_[1].window0 + i[2] * n_.axes[1].gap;
    const Var ok = b.binary(Op::bit_and, inside(d, 0), inside(h, 1));
    const Var from = (image0_ + i[0]) * n_.window_outer + channel + d * n_.axes[0].window_stride +
                     h * n_.axes[1].window_stride + axes_[2].window0 * n_.axes[2].window_stride;
    const Var to = i[0] * slab_image_ + i[1] * axes_[0].slab_stride + i[2] * axes_[1].slab_stride;
    if (t_.fill == ConvFill::channels)
      fill_channels(ok, {image0_ + i[0], d, h}, from, to);
    else if (t_.fill == ConvFill::flat)
      fill_flat(ok, from, to);
    else
      fill_columns(ok, from, to);
  });
}

// A vector may reach beyond its position: the next one is written later.
void ConvKernel::fill_channels(Var line_ok, const std::array<Var, 3>& at, Var from, Var to) {
  const Var count = spec_.depthwise ? lane_count_ : chunk_;
  const Var padded = spec_.depthwise ? axes_[2].slab_stride : chunk_;
  const Var channel = spec_.depthwise ? lane0_ : group_ * n_.channels + channel0_;
  const ConvAxisNumbers<Var>& axis = n_.axes[2];
  each(axes_[2].extent, [&](Var i) {
    const Var w = axes_[2].window0 + i * axis.gap;
    const Var there = b.select(b.binary(Op::bit_and, line_ok, inside(w, 2)), count, b.i64(0));
    const Var source = from + i * axis.gap * axis.window_stride;
    b.loop(b.i64(0), padded, b.i64(t_.lanes), [&](Var c) {
      const Var mask = first_lanes(b, there - c, t_.lanes);
      const Var where = source + c * n_.window_channel;
      Var value = spec_.first_contiguous
                      ? b.load(first_, where, t_.lanes, mask)
                      : b.load_strided(first_, where, n_.window_channel, t_.lanes, mask);
      if (hooks_.a.apply) {
        OperandSite site{.value = value, .batch = {}, .at = {}, .k = {}, .mask = mask};
        site.coordinates = coordinates(at[0], channel + c, {at[1], at[2], w});
        site.lane_dim = 1;
        value = b.select(mask, hooks_.a.apply(b, site), like(value, 0.0));
      }
      b.store(slab_, to + i * axes_[2].slab_stride + c, value);
    });
  });
}

void ConvKernel::fill_flat(Var line_ok, Var from, Var to) {
  const Var pitch = axes_[2].slab_stride;
  const Var length = axes_[2].extent * pitch;
  const Var begin = max(-axes_[2].window0, 0) * pitch;
  const Var inner_end = min(n_.axes[2].window - axes_[2].window0, axes_[2].extent) * pitch;
  const Var end = b.select(line_ok, inner_end, b.i64(0));
  const Var lane = b.iota({DType::i32, t_.lanes});
  const auto clamped = [&](Var x) {
    return b.splat(b.cast(max(min(x, t_.lanes), 0), DType::i32), t_.lanes);
  };
  b.loop(b.i64(0), length, b.i64(t_.lanes), [&](Var i) {
    const Var mask =
        b.binary(Op::bit_and, le(clamped(begin - i), lane), lt(lane, clamped(end - i)));
    b.store(slab_, to + i, b.load(first_, from + i, t_.lanes, mask));
  });
}

void ConvKernel::fill_columns(Var line_ok, Var from, Var to) {
  const Var pitch = axes_[2].slab_stride;
  const Var begin = max(-axes_[2].window0, 0);
  const Var end = b.select(line_ok, n_.axes[2].window - axes_[2].window0, b.i64(0));
  const Var lane = b.iota({DType::i32, t_.lanes});
  const auto clamped = [&](Var x) {
    return b.splat(b.cast(max(min(x, t_.lanes), 0), DType::i32), t_.lanes);
  };
  b.loop(b.i64(0), axes_[2].extent, b.i64(t_.lanes), [&](Var i) {
    const Var mask =
        b.binary(Op::bit_and, le(clamped(begin - i), lane), lt(lane, clamped(end - i)));
    const Var some = first_lanes(b, axes_[2].extent - i, t_.lanes);
    each(chunk_, [&](Var c) {
      const Var value = b.load(first_, from + c * n_.window_channel + i, t_.lanes,
                               b.binary(Op::bit_and, mask, some));
      b.store_strided(slab_, to + i * pitch + c, pitch, value, some);
    });
  });
}

Var ConvKernel::tap_offset(const std::array<Var, 3>& tap) {
  Var offset = b.i64(0);
  for (std::size_t k = 0; k < 3; ++k) {
    const Axis& axis = axes_[k];
    const Var at = input() ? axis.taps - 1 - tap[k] : tap[k];
    offset = offset + at * n_.axes[k].tap_step * axis.slab_stride;
  }
  return offset;
}

std::array<Var, 3> ConvKernel::tap_of(Var index) {
  const Var h = max(axes_[1].taps, 1), w = max(axes_[2].taps, 1);
  return {index / (w * h), index / w % h, index % w};
}

void ConvKernel::rows_of_positions() {
  Var step[3];
  for (std::size_t k = 0; k < 3; ++k) step[k] = n_.axes[k].row_step * axes_[k].slab_stride;
  each({images_, axes_[0].count, axes_[1].count}, [&](std::array<Var, 3> i) {
    const Var line = (i[0] * axes_[0].count + i[1]) * axes_[1].count + i[2];
    const Var at = slab_base_ + i[0] * slab_image_ + i[1] * step[0] + i[2] * step[1];
    each(axes_[2].count,
         [&](Var w) { b.store(row_at_, line * axes_[2].count + w, at + w * step[2]); });
  });
  b.loop(rows_, padded_rows_, b.i64(1), [&](Var r) { b.store(row_at_, r, slab_base_); });
}

void ConvKernel::rows_of_taps() {
  const std::array<Var, 3> taps{axes_[0].taps, axes_[1].taps, axes_[2].taps};
  each(taps, [&](std::array<Var, 3> tap) {
    const Var at = slab_base_ + tap_offset(tap);
    const Var row = ((tap[0] * taps[1] + tap[1]) * taps[2] + tap[2]) * chunk_;
    each(chunk_, [&](Var c) { b.store(row_at_, row + c, at + c); });
  });
  b.loop(rows_, padded_rows_, b.i64(1), [&](Var r) { b.store(row_at_, r, slab_base_); });
}

void ConvKernel::runs_of_taps(Var first_tap, Var count) {
  slab_step_ = b.i64(1);
  second_step_ = b.i64(columns());
  runs_ = count;
  run_length_ = chunk_;
  const std::array<Var, 3> taps{axes_[0].taps, axes_[1].taps, axes_[2].taps};
  const auto note = [&](const std::array<Var, 3>& tap, Var i) {
    b.store(run_at_, i, tap_offset(tap));
  };
  if (!t_.merge_taps) {
    if (t_.single_block)
      each(taps, [&](std::array<Var, 3> tap) {
        note(tap, (tap[0] * taps[1] + tap[1]) * taps[2] + tap[2]);
      });
    else
      each(count, [&](Var i) { note(tap_of(first_tap + i), i); });
    return;
  }
  runs_ = taps[0] * taps[1];
  run_length_ = taps[2] * chunk_;
  each({taps[0], taps[1], b.i64(1)}, [&](std::array<Var, 3> tap) {
    b.store(run_at_, tap[0] * taps[1] + tap[1], tap_offset({tap[0], tap[1], b.i64(0)}));
  });
}

void ConvKernel::runs_of_lines() {
  slab_step_ = t_.slab_step > 0 ? b.i64(t_.slab_step) : n_.axes[2].row_step * axes_[2].slab_stride;
  second_step_ = t_.pack_lanes ? b.i64(columns()) : n_.axes[2].second_stride;
  runs_ = images_ * axes_[0].count * axes_[1].count;
  run_length_ = axes_[2].count;
  each({images_, axes_[0].count, axes_[1].count}, [&](std::array<Var, 3> i) {
    const Var line = (i[0] * axes_[0].count + i[1]) * axes_[1].count + i[2];
    b.store(run_at_, line,
            i[0] * slab_image_ + i[1] * n_.axes[0].row_step * axes_[0].slab_stride +
                i[2] * n_.axes[1].row_step * axes_[1].slab_stride);
    b.store(second_at_, line,
            (image0_ + i[0]) * n_.second_outer +
                (axes_[0].first + i[1]) * n_.axes[0].second_stride +
                (axes_[1].first + i[2]) * n_.axes[1].second_stride +
                axes_[2].first * n_.axes[2].second_stride);
  });
}

// The lanes from `lane` on of one k; `at` is where the operand has lane 0.
void ConvKernel::pack_vectors(Var lane, Var at, Var lane_stride, Var to,
                              const std::function<std::vector<Var>(Var)>& coordinates_of,
                              int lane_dim) {
  for (int v = 0; v < t_.vectors; ++v) {
    const Var first = lane + v * t_.lanes;
    const Var mask = first_lanes(b, lane0_ + lane_count_ - first, t_.lanes);
    const Var from = at + first * lane_stride;
    Var value = spec_.second_contiguous
                    ? b.load(second_, from, t_.lanes, mask)
                    : b.load_strided(second_, from, lane_stride, t_.lanes, mask);
    if (hooks_.b.apply) {
      OperandSite site{.value = value, .batch = {}, .at = {}, .k = {}, .mask = mask};
      site.coordinates = coordinates_of(first);
      site.lane_dim = lane_dim;
      value = hooks_.b.apply(b, site);
    }
    b.store(packed_, to + v * t_.lanes, value);
  }
}

void ConvKernel::pack_lines(Var lane) {
  const Var channel0 = group_ * n_.lane_channels;
  each({images_, axes_[0].count, axes_[1].count}, [&](std::array<Var, 3> i) {
    const Var line = (i[0] * axes_[0].count + i[1]) * axes_[1].count + i[2];
    const Var from = b.load(second_at_, line) + channel0 * n_.second_channel;
    each(axes_[2].count, [&](Var w) {
      const auto coordinates_of = [&](Var first) {
        return coordinates(image0_ + i[0], channel0 + first,
                           {axes_[0].first + i[1], axes_[1].first + i[2], axes_[2].first + w});
      };
      pack_vectors(lane, from + w * n_.axes[2].second_stride, n_.second_channel,
                   (line * axes_[2].count + w) * columns(), coordinates_of, 1);
    });
  });
}

}  // namespace pantala::schedule::cpu
