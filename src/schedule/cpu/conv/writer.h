// The writer of conv kernels, in parts: kernel.cpp has the items and the register tile,
// operands.cpp brings the operands into scratch, results.cpp takes the sums to the
// result. weights.cpp has the kernel that brings a weight into panels.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schedule/cpu/conv/parts.h"

namespace pantala::schedule::cpu {

class ConvKernel {
 public:
  ConvKernel(std::string name, const ConvSpec& spec, const ConvOrder& order,
             const ConvTiling& tiling, const ContractHooks& hooks);
  kir::Kernel build();

 private:
  using Var = kir::Var;

  // One spatial axis of the box of positions at hand.
  struct Axis {
    Var first, count;          // positions
    Var taps;                  // that reach them
    Var kernel0;               // the element of the kernel that the first of them is
    Var result0, result_step;  // the element of the positions' tensor that a position is
    Var window0, extent;       // where the slab starts in the window operand; its size
    Var slab_stride;
  };

  bool weight() const { return spec_.direction == ConvDirection::weight_grad; }
  bool input() const { return spec_.direction == ConvDirection::input_grad; }
  // Dimension k of a box (n, d, h, w): the tensors may have fewer spatial axes.
  bool has_axis(std::size_t k) const { return k == 0 || static_cast<int>(k) >= 6 - spec_.rank; }
  int columns() const { return t_.vectors * t_.lanes; }
  // Whether the second operand is read as panels, else where it lies.
  bool in_panels() const { return t_.pack_lanes || !weight(); }
  void each(Var count, const std::function<void(Var)>& body) {
    b.loop(b.i64(0), count, b.i64(1), body);
  }
  void each(const std::array<Var, 3>& counts, const std::function<void(std::array<Var, 3>)>& body);
  // `body(i, mask)` for every vector of `count` lanes; full vectors have no mask.
  void vectors(Var count, const std::function<void(Var, Var)>& body);

  // Items.
  void declare();
  Axis open_axis(std::size_t k, Var phase, Var box_index);
  void open_lanes(Var index);
  // The box of positions with these indices (n, d, h, w).
  void open_box(const std::array<Var, 4>& index, const std::array<Var, 3>& phase);
  void position_item();
  void position_block(Var first_tap);
  void weight_item();

  // Operands.
  void open_slab();
  void fill_slab();
  void fill_channels(Var line_ok, const std::array<Var, 3>& at, Var from, Var to);
  void fill_flat(Var line_ok, Var from, Var to);
  void fill_columns(Var line_ok, Var from, Var to);
  // The element of the slab that a tap is away from the first one, by axis.
  Var tap_offset(const std::array<Var, 3>& tap);
  std::array<Var, 3> tap_of(Var index);
  Var inside(Var at, std::size_t k);
  void rows_of_positions();
  void rows_of_taps();
  void runs_of_taps(Var first_tap, Var count);
  void runs_of_lines();
  void pack_lines(Var lane);
  void pack_vectors(Var lane, Var at, Var lane_stride, Var to,
                    const std::function<std::vector<Var>(Var)>& coordinates, int lane_dim);

  // Products.
  // `second_at` says where the second operand has the panel of a lane, and may pack it.
  void product(Var first_block, const std::function<Var(Var lane)>& second_at);
  std::vector<Var> register_tile(Var row, Var slab_lane, Var second_base);
  void keep(const std::vector<Var>& sums, Var at, Var first_block) {
    keep_sums(b, sums_, sums, at, t_.single_block ? Var{} : first_block);
  }

  // Results.
  Var sums_at(Var row, Var lane);
  void finish_positions();
  void finish_weight(Var slice);
  void finish_flat();
  void emit(ResultSite site, Var lane_stride);
  std::vector<Var> coordinates(Var outer, Var channel, const std::array<Var, 3>& spatial) const;

  kir::Builder b;
  const ConvSpec spec_;
  const ConvOrder order_;
  const ConvTiling t_;
  const ContractHooks& hooks_;
  const bool result_contiguous_;
  ConvNumbers<Var> n_;
  kir::BufferId first_, second_, result_;
  kir::BufferId slab_, packed_, sums_, row_at_, run_at_, second_at_, square_;

  std::array<Axis, 3> axes_;
  Var image0_, images_, group_, phase_;
  Var lane0_, lane_count_, panels_;
  Var channel0_, chunk_;            // of the window operand, within the group
  Var slab_image_, slab_base_;      // strides and base of the slab
  Var rows_, tiles_, padded_rows_;  // of the register tiles
  Var runs_, run_length_;           // of the loop over k
  Var slab_step_, second_step_;     // along a run
};

}  // namespace pantala::schedule::cpu
