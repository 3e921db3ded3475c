// What the files of Winograd's convolutions share: the problem as its kernels see it, their
// run-time arguments as numbers and as values, and the writer of the kernels.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schedule/cpu/conv/parts.h"
#include "schedule/cpu/conv/winograd.h"
#include "schedule/cpu/conv/winograd_transform.h"

namespace pantala::schedule::cpu {

// Transformed values of one point lie together; from one point to the next it is a multiple of a
// cache line that shares few sets of a cache with the others.
constexpr std::int64_t kPointGap = 16;

// As a direction sees it. Forward and input_grad: windows of the first operand make results.
// weight_grad: `window` is x and `result` is dy.
struct WinogradView {
  std::int64_t batch, channels, lane_channels;  // of the window and of the lanes
  std::array<std::int64_t, 2> window, result;   // spatial sizes
  std::array<std::int64_t, 2> padding;          // in front of the window
  std::array<std::int64_t, 2> tiles_of;         // per axis
  std::int64_t tiles;                           // all images
};
WinogradView winograd_view(const WinogradSpec& spec, const ConvSizes& sizes);

template <class T>
struct WinogradNumbers {
  T channels, lane_channels;
  T window_h, window_w, padding_h, padding_w;  // of the image that a kernel transforms
  T result_h, result_w;
  T tiles_h, tiles_w, tile0, tiles;  // the first tile and how many; of a slice
  T window_outer, window_channel, window_row, window_column;
  T weight_at, weight_lane, weight_channel, weight_row, weight_column;
  T result_at, result_outer, result_channel, result_row, result_column;
  T channel_block, row_block, lane_block, lane_blocks;
  // Of shared memory: from point to point, and from panel to panel of lanes.
  T window_point, weight_point, weight_panel;
  static void fields(auto&& f, auto& n) {
    f("channels", n.channels), f("lane_channels", n.lane_channels);
    f("window_h", n.window_h), f("window_w", n.window_w);
    f("padding_h", n.padding_h), f("padding_w", n.padding_w);
    f("result_h", n.result_h), f("result_w", n.result_w);
    f("tiles_h", n.tiles_h), f("tiles_w", n.tiles_w), f("tile0", n.tile0), f("tiles", n.tiles);
    f("window_outer", n.window_outer), f("window_channel", n.window_channel);
    f("window_row", n.window_row), f("window_column", n.window_column);
    f("weight_at", n.weight_at), f("weight_lane", n.weight_lane);
    f("weight_channel", n.weight_channel), f("weight_row", n.weight_row);
    f("weight_column", n.weight_column), f("result_at", n.result_at);
    f("result_outer", n.result_outer), f("result_channel", n.result_channel);
    f("result_row", n.result_row), f("result_column", n.result_column);
    f("channel_block", n.channel_block), f("row_block", n.row_block);
    f("lane_block", n.lane_block), f("lane_blocks", n.lane_blocks);
    f("window_point", n.window_point), f("weight_point", n.weight_point);
    f("weight_panel", n.weight_panel);
  }
};

class WinogradWriter {
 public:
  WinogradWriter(std::string name, WinogradKernel kernel, const WinogradSpec& spec,
                 const WinogradOrder& order, const WinogradTiling& tiling, const Epilogue& result);
  kir::Kernel build();

 private:
  using Var = kir::Var;
  using Vars = std::vector<Var>;

  // A row or a tile of rows of one operand and a panel of the other, from an element on.
  struct Product {
    kir::BufferId rows;
    Var rows_at;
    std::int64_t row_step, step;  // from row to row, and along the sum
    kir::BufferId lanes;
    Var lanes_at;
    Var depth;
  };
  // Where the results of a tile begin.
  struct Tile {
    Var image, row, column;
  };

  void each(Var count, const std::function<void(Var)>& body) {
    b.loop(b.i64(0), count, b.i64(1), body);
  }
  void vectors(Var count, const std::function<void(Var, Var)>& body);
  void declare();
  int points() const { return spec_.points(); }
  int columns() const { return t_.columns(); }
  Tile tile_at(Var number);

  // Transforms (winograd_operands.cpp).
  void image_item();
  void weight_item();
  // Of a tile's `size` x `size` elements; point p of channel c goes to `to(c)` + p * point.
  void transform_tile(Var number, int size, kir::BufferId out, const std::function<Var(Var)>& to,
                      Var point);
  // Of the channels [channel0, channel0 + count) of a panel of lanes; channel c, counted from
  // there, goes to `to` + c * columns.
  void transform_weight(Var lane0, Var channel0, Var count, Var to, Var point);
  // The kernels of a square of lanes and channels, with the lanes innermost, to scratch.
  void turn_weight(Var lane, Var channel, Var count);
  // The elements of one kernel, of all lanes, in their order; rows that do not exist are masked.
  Vars kernel_elements(Var lane, Var channel, const Vars& masks);
  void store_points(const Vars& row, int number, kir::BufferId out, Var to, Var point);

  // Products (winograd_products.cpp).
  void result_item();
  void result_panel(Var tile0, Var tiles, Var lane0, Var lanes);
  void weight_gradient_item();
  Vars multiply(const Product& product);
  void keep(const Vars& sums, Var at, Var is_first) {
    keep_sums(b, sums_, sums, at, t_.single_block ? Var{} : is_first);
  }
  void finish_tile(Var number, Var at, Var lane0, Var lanes);
  void finish_weight(Var channel, Var at, Var lane0, Var lanes);
  // The same for rows of kernels: squares of channels and lanes are turned.
  void finish_rows(Var channel0, Var channels, Var lane0, Var lanes);
  // The kernels of one channel of x and a vector of lanes; element k goes to `to` + k * step.
  void transform_sums(Var at, Var to, int step);
  void emit(ResultSite site, Var lane_stride);

  kir::Builder b;
  const WinogradKernel kernel_;
  const WinogradSpec spec_;
  const WinogradTiling t_;
  const Epilogue& hook_;
  const bool result_contiguous_;
  const WinogradTransform transform_;
  WinogradNumbers<Var> n_;
  // Operands as they are, and transformed; of a kernel that only transforms one, the latter is what
  // it fills.
  kir::BufferId image_, kernels_, window_, weight_, result_;
  kir::BufferId square_, sums_, finished_, turned_;
  Var window_point_, weight_point_;
  std::int64_t sums_point_ = 0;
};

}  // namespace pantala::schedule::cpu
