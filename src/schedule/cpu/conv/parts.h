// What the files of the conv archetype share: the run-time arguments of a kernel, as numbers and as
// values of the kernel, and what follows from the sizes of a problem.
#pragma once

#include <array>
#include <cstdint>

#include "kir/builder.h"
#include "schedule/cpu/contract/parts.h"
#include "schedule/cpu/conv/kernel.h"

namespace pantala::schedule::cpu {

// One spatial axis. Missing ones stand in front, with sizes 1 and strides 0.
template <class T>
struct ConvAxisNumbers {
  // Sizes of the window operand, of the positions' tensor, of the kernel.
  T window, results, kernel;
  T stride, padding, dilation;
  // A slab has every `gap`-th element of the window operand; from one position to the next it is
  // `row_step` of them, from one tap to the next `tap_step`.
  T gap, row_step, tap_step;
  // input_grad: the greatest common divisor of stride and dilation, stride / common, dilation /
  // common and the latter's inverse modulo the former.
  T common, kernel_step, reach, inverse;
  T window_stride, second_stride, result_stride;
  static void fields(auto&& f, auto& a) {
    f("window", a.window), f("results", a.results), f("kernel", a.kernel);
    f("stride", a.stride), f("padding", a.padding), f("dilation", a.dilation);
    f("gap", a.gap), f("row_step", a.row_step), f("tap_step", a.tap_step);
    f("common", a.common), f("kernel_step", a.kernel_step), f("reach", a.reach);
    f("inverse", a.inverse), f("window_stride", a.window_stride);
    f("second_stride", a.second_stride), f("result_stride", a.result_stride);
  }
};

template <class T>
struct ConvNumbers {
  T batch, groups;  // a depthwise convolution counts as one group
  T channels;       // per group: of the window operand; depthwise: 1
  T lane_channels;  // per group: of the lanes
  std::array<ConvAxisNumbers<T>, 3> axes;
  T window_outer, window_channel, second_outer, second_channel, result_outer, result_channel;
  T channel_block, tap_block, lane_block;
  std::array<T, 4> box;
  T channel_blocks, lane_blocks;  // how many there are
  std::array<T, 4> boxes;
  T slices, slice_blocks, slice_stride;
  T tap_blocks, block_size;  // of the weight's panels: blocks of a phase, elements of one
  static void fields(auto&& f, auto& n) {
    f("batch", n.batch), f("groups", n.groups), f("channels", n.channels);
    f("lane_channels", n.lane_channels);
    for (auto& axis : n.axes) ConvAxisNumbers<T>::fields(f, axis);
    f("window_outer", n.window_outer), f("window_channel", n.window_channel);
    f("second_outer", n.second_outer), f("second_channel", n.second_channel);
    f("result_outer", n.result_outer), f("result_channel", n.result_channel);
    f("channel_block", n.channel_block), f("tap_block", n.tap_block);
    f("lane_block", n.lane_block);
    for (auto& side : n.box) f("box", side);
    f("channel_blocks", n.channel_blocks), f("lane_blocks", n.lane_blocks);
    for (auto& count : n.boxes) f("boxes", count);
    f("slices", n.slices), f("slice_blocks", n.slice_blocks), f("slice_stride", n.slice_stride);
    f("tap_blocks", n.tap_blocks), f("block_size", n.block_size);
  }
};

ConvNumbers<std::int64_t> conv_numbers(const ConvSpec& spec, const ConvSizes& sizes,
                                       const ConvStrides& strides, const ConvOrder& order,
                                       const ConvTiling& tiling);

// As parameters of a kernel; those of axes that tensors of this rank do not have are constants.
ConvNumbers<kir::Var> declare_numbers(kir::Builder& b, int rank);

// The next digit of a number whose digit there has `count` values.
kir::Var take_digit(kir::Var& rest, kir::Var count);

// The elements of the kernel along an axis that reach the positions of a phase: `first`, `first` +
// kernel_step, ...: those whose dilated distance is a multiple of the stride.
struct PhaseTaps {
  kir::Var first, count;
};
PhaseTaps taps_of_phase(kir::Builder& b, const ConvAxisNumbers<kir::Var>& axis, kir::Var phase);

// Where the panels of a weight have the block of some taps and channels of a panel. `phases`:
// whether there are several (input_grad).
struct PanelIndex {
  kir::Var group, phase, panel, chunk, tap_block;
};
kir::Var panel_at(kir::Builder& b, const ConvNumbers<kir::Var>& n, int columns, bool phases,
                  const PanelIndex& index);

// A problem with all three axes, as a direction sees it.
struct ConvView {
  std::int64_t batch, groups, channels, lane_channels;
  std::array<ConvAxis, 3> axes;
  std::array<std::int64_t, 3> phases;     // input_grad: residues of positions, else 1
  std::array<std::int64_t, 3> positions;  // the most of any phase
  std::array<std::int64_t, 3> taps;       // the most of any phase
  std::array<std::int64_t, 3> gap, row_step, tap_step;
  std::int64_t all_taps() const { return taps[0] * taps[1] * taps[2]; }
  std::int64_t all_phases() const { return phases[0] * phases[1] * phases[2]; }
};
ConvView conv_view(ConvDirection direction, const ConvSizes& sizes);

// How many boxes cover the positions, per dimension.
std::array<std::int64_t, 4> conv_boxes(const ConvView& view,
                                       const std::array<std::int64_t, 4>& box);
// Elements of a slab per image and channel, for a box.
std::int64_t slab_plane(const ConvView& view, const std::array<std::int64_t, 4>& box);

// The strides of the sums of slices: [slice, c / groups, spatial..., o].
std::vector<std::int64_t> partial_strides(const ConvSizes& sizes);

// Stores vectors of sums one behind another from `at` on: as they are in the first block of a
// reduction, else added to what is there. An invalid `is_first`: there is one block only.
void keep_sums(kir::Builder& b, kir::BufferId into, const std::vector<kir::Var>& sums, kir::Var at,
               kir::Var is_first);

// Throws InternalError unless the sizes are those of a convolution.
void check_sizes(const ConvSizes& sizes);

}  // namespace pantala::schedule::cpu
