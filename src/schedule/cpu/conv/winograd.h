// Convolutions of 3 x 3 windows, stride 1, by Winograd's algorithm F(m x m, 3 x 3), m = 2 or
// 4: 2.25 or 4 times fewer multiplications than the direct kernels of conv/kernel.h for results
// that are equal but for rounding. Sizes, strides, padding, layouts and the epilogue are as there.
//
// The results of an image are cut into tiles of m x m, the last ones of a row or column may be
// incomplete; tiles are numbered over (n, tile row, tile column). A tile has (m + 2)^2 *points*.
//
// Bits: those of the transforms (winograd_transform.h) and of the WinogradOrder, never of tiling,
// layouts, items or hooks.
//  - forward, input_grad: the latter is the convolution of dy with the turned kernel. For every
//    point, block = +0; block = fma(window, weight, block) for every channel of a block of
//    `channels` in order; sum = block 0, then sum = sum + block 1, ... The sums are transformed.
//  - weight_grad: for every point the same over the tiles of a slice, in blocks of `tiles`; the
//  sums
//    are transformed; with several slices these are added in order (build_conv_combine).
//
// How: products of matrices for every point, whose lanes are channels of the result and whose rows
// are tiles (weight_grad: channels of x). Of the two operands of the products, each is transformed
// either by the item that needs it, into its scratch, or by a launch before, into memory that all
// items share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/cpu/conv/kernel.h"

namespace pantala::schedule::cpu {

// Whether the convolution is one of those; f32 or f64.
bool has_winograd(const ConvSizes& sizes, DType dtype);

// How weights lie in memory, from the easiest on.
enum class WinogradWeights : std::uint8_t {
  lanes,    // lanes are contiguous
  rows,     // all kernels of a lane are, one channel after another
  kernels,  // the elements of a kernel are
  strided,
};

// What is baked beside the tiling.
struct WinogradSpec {
  ConvSpec conv;
  int side = 4;  // m
  WinogradWeights weights = WinogradWeights::strided;
  // weight_grad without slices: all kernels of an output channel are contiguous, and so are the
  // lanes of the hook's sites. Their coordinates are the output channel and, in the place of the
  // last axis, the number of the element among all of these kernels.
  bool result_rows = false;
  int points() const { return (side + 2) * (side + 2); }
  friend bool operator==(const WinogradSpec&, const WinogradSpec&) = default;
};
WinogradSpec winograd_spec(ConvDirection direction, DType dtype, const ConvSizes& sizes,
                           const ConvStrides& strides, int side);

struct WinogradOrder {
  std::int64_t channels = 1;                            // of a block; weight_grad: unused
  std::int64_t tiles = 1, slice_tiles = 1, slices = 1;  // weight_grad
  friend bool operator==(const WinogradOrder&, const WinogradOrder&) = default;
};
// From what the op says alone.
WinogradOrder winograd_order(const WinogradSpec& spec, const ConvSizes& sizes);

struct WinogradTiling {
  bool shared_window = false;  // transformed by a launch before; weight_grad: always
  bool shared_weight = true;
  bool single_block = false;  // the kernel may rely on one block of the order
  int rows = 8, vectors = 2;  // of the register tile
  int lanes = 8;              // of a vector
  int unroll = 4;
  // Per item: tiles (weight_grad: channels of x), multiples of `rows`, and channels of the result,
  // multiples of the register tile's columns.
  std::int64_t row_block = 0, lane_block = 0;
  std::int64_t pitch = 0;  // elements from one transformed tile to the next
  // forward, input_grad: the order's channels, if weights are made in place
  std::int64_t chunk = 0;
  friend bool operator==(const WinogradTiling&, const WinogradTiling&) = default;
  int columns() const { return vectors * lanes; }
};
// Completes a tiling whose register tile, blocks and sharing are chosen.
WinogradTiling complete(WinogradTiling tiling, const WinogradSpec& spec, const ConvSizes& sizes,
                        const WinogradOrder& order);
WinogradTiling choose_winograd_tiling(const WinogradSpec& spec, const ConvSizes& sizes,
                                      const WinogradOrder& order, const Target& target,
                                      int workers);
// The cheapest ones of every register tile and way to share, the cheapest first.
std::vector<WinogradTiling> best_of_each_kind(const WinogradSpec& spec, const ConvSizes& sizes,
                                              const WinogradOrder& order, const Target& target,
                                              int workers);

enum class WinogradKernel : std::uint8_t {
  window,    // transforms tiles of the window operand: window -> transformed
  gradient,  // weight_grad: tiles of dy: dy -> transformed
  weight,    // transforms the weight: weight -> transformed
  result,    // products, and back: window, weight -> result, either of them transformed or not
  weight_gradient,  // products, and back: both transformed -> result, or partials of slices
};
struct WinogradLaunch {
  WinogradKernel kernel = WinogradKernel::result;
  std::int64_t slice = 0;  // of a weight gradient
};
// In order; those of transforms that the tiling does not share have no items.
std::vector<WinogradLaunch> winograd_launches(const WinogradSpec& spec, const WinogradOrder& order);

// Cycles of the slowest worker, roughly, of one launch and of all.
double estimate(WinogradKernel kernel, const WinogradSpec& spec, const ConvSizes& sizes,
                const WinogradOrder& order, const WinogradTiling& tiling, const Target& target,
                int workers);
double estimate(const WinogradSpec& spec, const ConvSizes& sizes, const WinogradOrder& order,
                const WinogradTiling& tiling, const Target& target, int workers);

// Buffers as above, then those of the hook, which is one of `result` and `weight_gradient` only;
// its sites are those of build_conv. Parameters: winograd_params(), those of the hook.
kir::Kernel build_winograd(std::string name, WinogradKernel kernel, const WinogradSpec& spec,
                           const WinogradOrder& order, const WinogradTiling& tiling,
                           const Epilogue& result = {});
std::vector<std::int64_t> winograd_params(WinogradKernel kernel, const WinogradSpec& spec,
                                          const ConvSizes& sizes, const ConvStrides& strides,
                                          const WinogradOrder& order, const WinogradTiling& tiling,
                                          std::int64_t slice = 0);
std::int64_t winograd_items(WinogradKernel kernel, const WinogradSpec& spec, const ConvSizes& sizes,
                            const WinogradOrder& order, const WinogradTiling& tiling,
                            std::int64_t slice = 0);
// Elements of the memory that a launch of `window`, `gradient` or `weight` fills.
std::int64_t winograd_elements(WinogradKernel kernel, const WinogradSpec& spec,
                               const ConvSizes& sizes, const WinogradOrder& order,
                               const WinogradTiling& tiling);

}  // namespace pantala::schedule::cpu
