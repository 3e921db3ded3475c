// The kernel that brings the weight of a convolution into panels: for every panel of lanes and
// every block of the reduction [tap][channel][lanes], as the register tiles of conv kernels read
// it, once for all of their items. An item is one panel of one chunk of channels, with all taps.
#include "schedule/cpu/conv/parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

Var panel_at(kir::Builder& b, const ConvNumbers<Var>& n, int columns, bool phases,
             const PanelIndex& index) {
  Var at = index.group;
  if (phases) at = at * (n.axes[0].stride * n.axes[1].stride * n.axes[2].stride) + index.phase;
  at = at * ceil_div(n.lane_channels, columns) + index.panel;
  at = at * max(n.channel_blocks, 1) + index.chunk;
  at = at * max(n.tap_blocks, b.i64(1)) + index.tap_block;
  return at * n.block_size;
}

namespace {

class WeightKernel {
 public:
  WeightKernel(std::string name, const ConvSpec& spec, const ConvTiling& tiling,
               const Prologue& hook)
      : b(std::move(name)), spec_(spec), t_(tiling), hook_(hook) {}

  kir::Kernel build() {
    weight_ = b.buffer("weight", spec_.dtype, kir::Access::read);
    panels_ = b.buffer("panels", spec_.dtype, kir::Access::write);
    n_ = declare_numbers(b, spec_.rank);
    if (hook_.declare) hook_.declare(b);
    slots_ = b.scratch("slots", DType::i64, t_.weight_table);
    Var rest = b.item();
    const Var chunk = take_digit(rest, n_.channel_blocks);
    panel_ = take_digit(rest, ceil_div(n_.lane_channels, columns()));
    group_ = rest;
    channel0_ = chunk * n_.channel_block;
    chunk_ = min(n_.channel_block, n_.channels - channel0_);
    elements_ = n_.axes[0].kernel * n_.axes[1].kernel * n_.axes[2].kernel;
    find_slots(chunk);
    if (spec_.weight_dense && !spec_.second_contiguous && !hook_.apply)
      transpose_runs();
    else
      copy_vectors();
    return b.finish();
  }

 private:
  bool input() const { return spec_.direction == ConvDirection::input_grad; }
  // Whether lanes are the weight's first dimension, else its second.
  bool lanes_outer() const { return !input() || spec_.depthwise; }
  int columns() const { return t_.vectors * t_.lanes; }
  Var lane_stride() const { return lanes_outer() ? n_.second_outer : n_.second_channel; }
  Var chunk_stride() const { return lanes_outer() ? n_.second_channel : n_.second_outer; }
  Var outer0() const { return group_ * (lanes_outer() ? n_.lane_channels : n_.channels); }
  // Where the weight has lane 0 of channel c of the chunk.
  Var channel_at(Var c) { return outer0() * n_.second_outer + (channel0_ + c) * chunk_stride(); }
  void each(Var count, const std::function<void(Var)>& body) {
    b.loop(b.i64(0), count, b.i64(1), body);
  }
  void each_element(const std::function<void(std::array<Var, 3>, Var)>& body) {
    each(n_.axes[0].kernel, [&](Var d) {
      each(n_.axes[1].kernel, [&](Var h) {
        each(n_.axes[2].kernel,
             [&](Var w) { body({d, h, w}, (d * n_.axes[1].kernel + h) * n_.axes[2].kernel + w); });
      });
    });
  }

  // Where every element of the kernel has its lanes of channel 0. Each is a tap of just one phase.
  void find_slots(Var chunk) {
    each_element([&](std::array<Var, 3> at, Var element) {
      Var phase = b.i64(0), tap = b.i64(0);
      for (std::size_t k = 0; k < 3; ++k) {
        const ConvAxisNumbers<Var>& a = n_.axes[k];
        if (!input()) {
          tap = tap * a.kernel + at[k];
          continue;
        }
        // The phase that is dilation * element - padding away, modulo the stride.
        const Var residue = (at[k] * a.dilation + a.padding * (a.stride - 1)) % a.stride;
        const PhaseTaps taps = taps_of_phase(b, a, residue);
        phase = phase * a.stride + residue;
        tap = tap * taps.count + (at[k] - taps.first) / a.kernel_step;
      }
      const Var block =
          panel_at(b, n_, columns(), input(), {group_, phase, panel_, chunk, tap / n_.tap_block});
      b.store(slots_, element, block + tap % n_.tap_block * chunk_ * columns());
    });
  }

  Var slot(Var element, Var c, int vector) {
    return b.load(slots_, element) + c * columns() + vector * t_.lanes;
  }

  // What a lane reads lies one after another, for the outer dimension all channels of the chunk:
  // squares of lanes x lanes are transposed on their way.
  void transpose_runs() {
    if (lanes_outer())
      transpose_run(channel_at(b.i64(0)), b.i64(0), chunk_ * elements_);
    else
      each(chunk_, [&](Var c) { transpose_run(channel_at(c), c, elements_); });
  }
  void transpose_run(Var at, Var channel, Var length) {
    for (int v = 0; v < t_.vectors; ++v) {
      std::vector<Var> lane_at;
      for (int l = 0; l < t_.lanes; ++l) {
        const Var lane = panel_ * columns() + (v * t_.lanes + l);
        lane_at.push_back(at + min(lane, n_.lane_channels - 1) * lane_stride());
      }
      const auto square = [&](Var first, std::span<const Var> place, Var left) {
        const Var mask = left.valid() ? first_lanes(b, left, t_.lanes) : Var();
        std::vector<Var> vectors;
        for (const Var& lane : lane_at)
          vectors.push_back(b.load(weight_, lane + first, t_.lanes, mask));
        vectors = b.transpose(vectors);
        Var c = place[0], element = place[1];
        for (int j = 0; j < t_.lanes; ++j) {
          const auto store = [&] {
            b.store(panels_, slot(element, c, v), vectors[static_cast<std::size_t>(j)]);
          };
          if (left.valid())
            b.branch(lt(j, left), store);
          else
            store();
          const Var wraps = eq(element + 1, elements_);
          c = b.select(wraps, c + 1, c);
          element = b.select(wraps, b.i64(0), element + 1);
        }
        return std::vector<Var>{c, element};
      };
      const Var whole = length / t_.lanes * t_.lanes;
      const std::vector<Var> place = b.loop(
          b.i64(0), whole, b.i64(t_.lanes), {channel, b.i64(0)},
          [&](Var first, std::span<const Var> carried) { return square(first, carried, {}); });
      b.branch(lt(whole, length), [&] { square(whole, place, length - whole); });
    }
  }

  void copy_vectors() {
    each(chunk_, [&](Var c) {
      each_element([&](std::array<Var, 3> at, Var element) {
        Var from = channel_at(c);
        for (std::size_t k = 0; k < 3; ++k) from = from + at[k] * n_.axes[k].second_stride;
        for (int v = 0; v < t_.vectors; ++v) {
          const Var lane = panel_ * columns() + v * t_.lanes;
          const Var mask = first_lanes(b, n_.lane_channels - lane, t_.lanes);
          const Var there = from + lane * lane_stride();
          Var value = spec_.second_contiguous
                          ? b.load(weight_, there, t_.lanes, mask)
                          : b.load_strided(weight_, there, lane_stride(), t_.lanes, mask);
          if (hook_.apply) value = hook_.apply(b, site(value, mask, lane, c, at));
          b.store(panels_, slot(element, c, v), value);
        }
      });
    });
  }
  OperandSite site(Var value, Var mask, Var lane, Var c, const std::array<Var, 3>& element) const {
    OperandSite site{.value = value, .batch = {}, .at = {}, .k = {}, .mask = mask};
    site.coordinates = lanes_outer() ? std::vector{outer0() + lane, channel0_ + c}
                                     : std::vector{outer0() + channel0_ + c, lane};
    for (int k = 5 - spec_.rank; k < 3; ++k)
      site.coordinates.push_back(element[static_cast<std::size_t>(k)]);
    site.lane_dim = lanes_outer() ? 0 : 1;
    return site;
  }

  kir::Builder b;
  const ConvSpec spec_;
  const ConvTiling t_;
  const Prologue& hook_;
  ConvNumbers<Var> n_;
  kir::BufferId weight_, panels_, slots_;
  Var panel_, group_, channel0_, chunk_, elements_;
};

}  // namespace

kir::Kernel build_conv_weights(std::string name, const ConvSpec& spec, const ConvTiling& tiling,
                               const Prologue& hook) {
  return WeightKernel(std::move(name), spec, tiling, hook).build();
}

}  // namespace pantala::schedule::cpu
