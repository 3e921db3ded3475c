// The conv archetype on the CPU: a convolution and the gradients of its input and of its weight as
// implicit contractions, with prologues on the operands and an epilogue on the sums. x is [n, c,
// spatial...], the weight [o, c / groups, spatial...], y [n, o, spatial...] with 1 to 3 spatial
// axes; any strides, padding, dilation and groups. Sizes and strides are run-time parameters.
//
// The operands of a direction are those of its op: forward (x, weight) -> y, input_grad (dy,
// weight) -> dx, weight_grad (x, dy) -> dweight. The first one is the *window* operand: elements of
// it meet a *position* under a *tap* (an element of the kernel).
//
// The bits of a result depend on the ConvOrder alone, never on layouts, tiling, items or hooks. The
// sum of a result is cut into blocks; block = +0; then block = fma(first, second, block) for every
// product of the block in order; result = block 0, then result = result + block 1, ... in order.
//  - forward: a block is a chunk of `channels` input channels, and within it a chunk of `taps` taps
//    (row-major). Within a block the taps come one after another, and for each tap the channels.
//    Taps that fall into the padding are products with +0.
//  - input_grad: the same with output channels. The taps are those that reach this element of dx
//    from some position, whether or not that position is inside dy (outside it is a product with
//    +0).
//  - weight_grad: a block is a box of `box` positions (n, spatial...), a run of the row-major order
//    of positions. With `slices` > 1 each slice of consecutive blocks gives a sum of its own, and
//    another kernel (build_conv_combine) adds these in order.
//
// How: a register tile of `rows` x `vectors` vectors. Lanes are channels of the result (output
// channels, for input_grad input channels). Rows are positions (for weight_grad: pairs of tap and
// input channel), whose elements of the window operand are broadcast. These come from a *slab* in
// scratch: the part of the window operand that an item needs, with the padding's zeros, channels
// innermost; a row is an offset in it, and so is a tap (for weight_grad a position): no im2col
// matrix is made. The weight of forward and input_grad is brought into panels of `vectors` vectors
// by a kernel of its own, once for all items. A depthwise convolution has lanes along the channels
// of both operands instead. The gradient of a strided convolution's input is one convolution of
// stride 1 for each residue of the positions, so nothing is multiplied by the zeros between
// strides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/common/conv/problem.h"
#include "schedule/cpu/contract/kernel.h"

namespace pantala::schedule::cpu {

using schedule::ConvAxis;
using schedule::ConvDirection;
using schedule::ConvSizes;

// In elements, one number per dimension as the ops see them.
struct ConvStrides {
  std::vector<std::int64_t> x, weight, y;
  // Weights [o, c / groups, spatial...] in this order; x and y in this order, or with channels
  // last.
  static ConvStrides row_major(const ConvSizes& sizes);
  static ConvStrides channels_last(const ConvSizes& sizes);
};

// What is baked. Contiguous: the stride along the channels that the kernel reads or writes in
// vectors is 1. These are the channels of the window operand, and for the second operand and the
// result those of the lanes.
struct ConvSpec {
  ConvDirection direction = ConvDirection::forward;
  DType dtype = DType::f32;  // f32 or f64
  int rank = 4;              // of the tensors
  bool depthwise = false;
  bool first_contiguous = true, second_contiguous = false, result_contiguous = true;
  bool weight_dense = true;  // the weight's [c / groups, spatial...] lie one after another
  friend bool operator==(const ConvSpec&, const ConvSpec&) = default;
};
ConvSpec conv_spec(ConvDirection direction, DType dtype, const ConvSizes& sizes,
                   const ConvStrides& strides);

struct ConvOrder {
  std::int64_t channels = 1, taps = 1;          // of a block; weight_grad: unused
  std::array<std::int64_t, 4> box{1, 1, 1, 1};  // weight_grad: positions of a block (n, d, h, w)
  std::int64_t slices = 1, slice_blocks = 1;    // weight_grad: and how many blocks a slice has
  friend bool operator==(const ConvOrder&, const ConvOrder&) = default;
};
// From what the op says alone.
ConvOrder reduction_order(ConvDirection direction, const ConvSizes& sizes, DType dtype,
                          const Target& target);

// How the slab is made.
enum class ConvFill : std::uint8_t {
  channels,  // position by position, in vectors of channels
  flat,      // whole lines: columns and channels are contiguous together
  columns,   // channel by channel, in vectors of columns, which are contiguous
  in_place,  // not at all: nothing is padded, channels are contiguous
};

// Everything that may be chosen freely without a change of the result's bits.
struct ConvTiling {
  ConvFill fill = ConvFill::channels;
  bool merge_taps = false;    // neighbouring taps of a line are neighbours in the slab: one run
  bool pack_lanes = false;    // weight_grad: else y is read in place (whole panels)
  bool single_block = false;  // the kernel may rely on one block
  bool whole_runs = false;    // all runs are multiples of `unroll`
  bool short_runs = false;    // all runs are just `unroll`
  bool whole_lanes = false;   // channels of the result are whole vectors
  // weight_grad: the sums are transposed on their way to the result, whose lanes then run along
  // [c / groups, spatial...]. Needs a dense weight and no slices.
  bool flat_result = false;
  int rows = 6, vectors = 2;  // of the register tile
  int unroll = 4;             // of the loop over k
  int lanes = 8;              // of a vector
  // weight_grad: elements of the slab from one position of a line to the next, where this is the
  // same for all items (addresses within an unrolled loop are then constants apart), else 0.
  std::int64_t slab_step = 0;
  std::array<std::int64_t, 4> box{1, 1, 1, 1};  // positions of an item (n, d, h, w); weight_grad: 0
  std::int64_t lane_block = 0;                  // channels of the result per item
  std::int64_t channel_block = 0;               // weight_grad: input channels per item
  // Elements of scratch, rounded up so that neighbouring sizes are the same code.
  std::int64_t slab = 0, panels = 0, sums = 0, row_table = 0, run_table = 0, weight_table = 0;
  friend bool operator==(const ConvTiling&, const ConvTiling&) = default;
};

struct ConvNeeds {
  int workers = 1;                               // that share the items
  bool first_hook = false, second_hook = false;  // a prologue stands on the operand
  bool flat_result = true;  // the epilogue can walk a weight's [c / groups, spatial...] as one
};

// Completes a tiling whose register tile, blocks, fill and packing are chosen: the flags that
// follow from the problem and the sizes of scratch.
ConvTiling complete(ConvTiling tiling, const ConvSpec& spec, const ConvSizes& sizes,
                    const ConvStrides& strides, const ConvOrder& order);
// Whether this tiling can be built for this problem; "" or what is wrong.
std::string broken_rule(const ConvSpec& spec, const ConvSizes& sizes, const ConvStrides& strides,
                        const ConvOrder& order, const ConvTiling& tiling);
// Cycles of the slowest worker, roughly.
double estimate(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                const ConvTiling& tiling, const Target& target, int workers);
ConvTiling choose_conv_tiling(const ConvSpec& spec, const ConvSizes& sizes,
                              const ConvStrides& strides, const ConvOrder& order,
                              const Target& target, const ConvNeeds& needs = {});
// The cheapest of those with a given register tile, with the second operand packed or not; none if
// there is no such tiling.
std::optional<ConvTiling> best_with_tile(const ConvSpec& spec, const ConvSizes& sizes,
                                         const ConvStrides& strides, const ConvOrder& order,
                                         const Target& target, int rows, int vectors,
                                         bool pack_lanes, const ConvNeeds& needs = {});

// Hooks: a on the first operand, b on the second, and the result. Their sites have `coordinates`,
// the logical index [n or o, channel, spatial...] of the first lane, and `lane_dim`:
//  - result: lanes run along channels, dimension 1; for weight_grad along output channels,
//    dimension 0. batch = coordinates[0], n = the lanes' channel, m = the spatial index in
//    row-major order (weight_grad: batch = 0, m = the row-major index of [c / groups, spatial...]).
//    c_at is where the result has the first lane; the other lanes follow at the stride of lane_dim,
//    not at 1, unless spec.result_contiguous. With tiling.flat_result lanes run along m:
//    coordinates are [o, m], lane_dim is 1, lanes_along_n is false.
//  - a: lanes run along channels, dimension 1. Padding stays 0. The fill is `channels`.
//  - b: lanes as the result's, dimension 0 of a weight in forward and in depthwise convolutions,
//    else 1. Packed; a hook on a weight is one of build_conv_weights.
//
// batch, at and k of an OperandSite are not set.
//
// Buffers: first, second (forward and input_grad: the weight's panels), result, those of the hooks.
// Parameters: conv_params(), those of the hooks. With order.slices > 1 the result is
// conv_partials() elements, and no result hook is allowed.
kir::Kernel build_conv(std::string name, const ConvSpec& spec, const ConvOrder& order,
                       const ConvTiling& tiling, const ContractHooks& hooks = {});
std::vector<std::int64_t> conv_params(const ConvSpec& spec, const ConvSizes& sizes,
                                      const ConvStrides& strides, const ConvOrder& order,
                                      const ConvTiling& tiling);
std::int64_t conv_items(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                        const ConvTiling& tiling);

// The panels of a weight that forward and input_grad read: buffers: weight, panels (conv_panels()
// elements), those of the hook; parameters: conv_params(), those of the hook.
std::int64_t conv_panels(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                         const ConvTiling& tiling);
kir::Kernel build_conv_weights(std::string name, const ConvSpec& spec, const ConvTiling& tiling,
                               const Prologue& hook = {});
std::int64_t conv_weights_items(const ConvSpec& spec, const ConvSizes& sizes,
                                const ConvOrder& order, const ConvTiling& tiling);

// The sum of the slices of a weight gradient, through the epilogue: buffers: partials, result,
// those of the hook; the site is that of build_conv.
std::int64_t conv_partials(const ConvSizes& sizes, const ConvOrder& order);  // elements
kir::Kernel build_conv_combine(std::string name, const ConvSpec& spec, const Target& target,
                               const Epilogue& result = {});
std::vector<std::int64_t> conv_combine_params(const ConvSizes& sizes, const ConvStrides& strides,
                                              const ConvOrder& order);
std::int64_t conv_combine_items(const ConvSizes& sizes);

}  // namespace pantala::schedule::cpu
