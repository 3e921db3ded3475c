// How a convolution is cut: the order of its reduction, which is part of its meaning, and the
// tiling, which is not.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "schedule/cpu/conv/parts.h"

namespace pantala::schedule::cpu {

namespace {

using Box = std::array<std::int64_t, 4>;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up_to(std::int64_t a, std::int64_t b) { return up(a, b) * b; }

// Parts of nearly equal size, multiples of `multiple`, of about `most` at most.
std::int64_t even_part(std::int64_t size, std::int64_t most, std::int64_t multiple) {
  most = std::max<std::int64_t>(most, 1);
  if (size <= most) return std::max<std::int64_t>(size, 1);
  return round_up_to(up(size, up(size, most)), multiple);
}

// The longest run of positions in row-major order that is a box and has about `most` elements.
Box run_of_positions(const ConvView& v, std::int64_t most) {
  const std::int64_t w = v.positions[2], h = v.positions[1], d = v.positions[0];
  if (w > most) return {1, 1, 1, even_part(w, most, 1)};
  if (w * h > most) return {1, 1, even_part(h, most / w, 1), w};
  if (w * h * d > most) return {1, even_part(d, most / (w * h), 1), h, w};
  return {even_part(v.batch, most / (w * h * d), 1), d, h, w};
}

Box clipped(const Box& box, const ConvView& v) {
  return {std::min(box[0], std::max<std::int64_t>(v.batch, 1)), std::min(box[1], v.positions[0]),
          std::min(box[2], v.positions[1]), std::min(box[3], v.positions[2])};
}
// Whether elements at this distance share few sets of the L1 cache: all of them lie a multiple of
// `span` bytes apart.
bool collides(std::int64_t pitch, std::int64_t span, DType dtype) {
  return pitch != 0 && pitch * dtype_bytes(dtype) % span == 0;
}

std::int64_t volume(const Box& box) { return box[0] * box[1] * box[2] * box[3]; }

// What an item has to do.
struct Work {
  std::int64_t rows, lanes, k;    // of the whole reduction of an item
  std::int64_t blocks;            // of k
  std::int64_t block_k;           // of the largest block
  std::int64_t runs, run;         // of a block
  std::int64_t slab, slab_lines;  // elements and lines of a slab, images included
  std::int64_t fills;             // slabs
};
Work work_of(const ConvSpec& spec, const ConvView& v, const ConvOrder& order, const ConvTiling& t) {
  Work w{};
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  w.lanes = std::min(t.lane_block, v.lane_channels);
  const bool weight = spec.direction == ConvDirection::weight_grad;
  const Box box = clipped(weight ? order.box : t.box, v);
  const std::int64_t channels =
      std::max<std::int64_t>(std::min(weight ? t.channel_block : order.channels, v.channels), 1);
  const std::int64_t pitch =
      spec.depthwise ? round_up_to(std::max<std::int64_t>(w.lanes, 1), columns) : channels;
  w.slab = box[0] * slab_plane(v, box) * pitch;
  w.slab_lines =
      w.slab / pitch / (v.row_step[2] * (box[3] - 1) + v.tap_step[2] * (v.taps[2] - 1) + 1);
  if (weight) {
    w.rows = v.all_taps() * channels;
    w.blocks = order.slice_blocks;
    w.block_k = volume(box);
    w.k = w.block_k * w.blocks;
    w.run = box[3];
    w.runs = w.block_k / w.run;
    w.fills = w.blocks;
    return w;
  }
  const std::int64_t taps = std::min(order.taps, v.all_taps());
  w.rows = volume(box);
  w.fills = std::max<std::int64_t>(up(v.channels, order.channels), 1);
  w.blocks = w.fills * up(v.all_taps(), order.taps);
  w.k = v.channels * v.all_taps();
  w.block_k = taps * channels;
  w.run = t.merge_taps ? v.taps[2] * channels : channels;
  w.runs = w.block_k / w.run;
  return w;
}

// The common divisor of the lengths of a kernel's runs; `longest` is the longest of them.
std::int64_t run_divisor(const ConvSpec& spec, const ConvView& v, const ConvOrder& order,
                         const ConvTiling& t, std::int64_t& longest) {
  const bool weight = spec.direction == ConvDirection::weight_grad;
  const std::int64_t size = weight ? v.positions[2] : v.channels;
  const std::int64_t part = std::min(weight ? order.box[3] : order.channels, size);
  const std::int64_t factor = !weight && t.merge_taps ? v.taps[2] : 1;
  longest = part * factor;
  return part == 0 ? 0 : std::gcd(part, size % part) * factor;
}

bool can_merge_taps(const ConvSpec& spec, const ConvView& v, const ConvOrder& order,
                    const ConvTiling& t) {
  return spec.direction == ConvDirection::forward && !spec.depthwise && v.tap_step[2] == 1 &&
         order.taps >= v.all_taps() && t.fill != ConvFill::in_place;
}

const std::vector<std::int64_t>& window_strides(const ConvSpec& spec, const ConvStrides& s) {
  return spec.direction == ConvDirection::input_grad ? s.y : s.x;
}

// Whether no tap of any position falls into the padding.
bool nothing_padded(ConvDirection direction, const ConvView& v) {
  for (std::size_t k = 0; k < 3; ++k) {
    const ConvAxis& a = v.axes[k];
    if (a.padding != 0) return false;
    if (direction == ConvDirection::input_grad && (a.kernel != 1 || a.stride != 1)) return false;
  }
  return true;
}

// Whether lanes of a weight gradient may run along what lies one after another.
bool can_flatten(const ConvSpec& spec, const ConvOrder& order) {
  return spec.direction == ConvDirection::weight_grad && spec.weight_dense &&
         !spec.result_contiguous && order.slices == 1;
}

bool can_fill(ConvFill fill, const ConvSpec& spec, const ConvView& v, const ConvStrides& strides,
              const ConvOrder& order, const ConvTiling& t) {
  const std::vector<std::int64_t>& window = window_strides(spec, strides);
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const std::int64_t chunk =
      spec.direction == ConvDirection::weight_grad ? t.channel_block : order.channels;
  switch (fill) {
    case ConvFill::channels:
      return true;
    case ConvFill::flat:
      return !spec.depthwise && v.groups == 1 && chunk >= v.channels && v.gap[2] == 1 &&
             window.back() == v.channels && (v.channels == 1 || spec.first_contiguous);
    case ConvFill::columns:
      return !spec.depthwise && window.back() * v.gap[2] == 1;
    case ConvFill::in_place:
      return (spec.first_contiguous || v.channels == 1) && nothing_padded(spec.direction, v) &&
             (!spec.depthwise || (spec.first_contiguous && v.lane_channels % columns == 0 &&
                                  t.lane_block % columns == 0));
  }
  return false;
}

std::int64_t constant_slab_step(const ConvSpec& spec, const ConvView& v, const ConvStrides& strides,
                                const ConvTiling& t) {
  if (spec.direction != ConvDirection::weight_grad) return 0;
  if (t.fill == ConvFill::in_place)
    return v.row_step[2] * v.gap[2] * window_strides(spec, strides).back();
  const std::int64_t size = spec.depthwise ? v.lane_channels : v.channels;
  const std::int64_t part = std::min(spec.depthwise ? t.lane_block : t.channel_block, size);
  if (part == 0 || size % part != 0) return 0;
  return v.row_step[2] *
         (spec.depthwise ? round_up_to(part, std::int64_t{t.vectors} * t.lanes) : part);
}

}  // namespace

ConvOrder reduction_order(ConvDirection direction, const ConvSizes& sizes, DType dtype,
                          const Target& target) {
  check_sizes(sizes);
  const ConvView v = conv_view(direction, sizes);
  ConvOrder order;
  if (direction != ConvDirection::weight_grad) {
    const std::int64_t most = 2560 / dtype_bytes(dtype), taps = v.all_taps();
    order.taps = even_part(taps, most, 1);
    order.channels = even_part(v.channels, most / order.taps, most / order.taps >= 16 ? 16 : 1);
    return order;
  }
  order.taps = v.all_taps();
  // A block's panel of y and lines of x stay in L1 for all of the block's register tiles.
  order.box = run_of_positions(v, 1024 / dtype_bytes(dtype));
  const Box counts = conv_boxes(v, order.box);
  const std::int64_t blocks = std::max<std::int64_t>(volume(counts), 1);
  // Enough pieces for many workers, whoever they are.
  constexpr std::int64_t kPieces = 256, kRows = 14;
  const std::int64_t tiles =
      std::max<std::int64_t>(v.groups * up(v.channels * v.all_taps(), kRows) *
                                 up(v.lane_channels, std::int64_t{2} * target.lanes(dtype)),
                             1);
  const std::int64_t wanted =
      std::clamp<std::int64_t>(kPieces / tiles, 1, std::min<std::int64_t>(blocks, 64));
  order.slice_blocks =
      up(blocks, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted))));
  order.slices = up(blocks, order.slice_blocks);
  return order;
}

ConvTiling complete(ConvTiling t, const ConvSpec& spec, const ConvSizes& sizes,
                    const ConvStrides& strides, const ConvOrder& order) {
  const ConvView v = conv_view(spec.direction, sizes);
  t.slab_step = constant_slab_step(spec, v, strides, t);
  t.merge_taps = can_merge_taps(spec, v, order, t);
  std::int64_t longest = 0;
  const std::int64_t divisor = run_divisor(spec, v, order, t, longest);
  t.whole_runs = t.short_runs = false;
  t.unroll = 4;
  if (divisor > 0 && divisor == longest && longest <= 8) {
    t.unroll = static_cast<int>(longest);
    t.short_runs = t.whole_runs = true;
  } else if (divisor > 0) {
    // Short code where addresses are simple; the strides of weight_grad want more of it, and so
    // do runs that end soon.
    const bool weight = spec.direction == ConvDirection::weight_grad;
    const auto unrolls = weight          ? std::array{7, 4, 5, 6, 8}
                         : longest <= 32 ? std::array{7, 5, 4, 3, 2}
                                         : std::array{2, 3, 4, 5, 7};
    for (const int unroll : unrolls)
      if (divisor % unroll == 0) {
        t.unroll = unroll;
        t.whole_runs = true;
        break;
      }
  }
  t.whole_lanes = v.lane_channels % t.lanes == 0 && t.lane_block % t.lanes == 0;
  const Work w = work_of(spec, v, order, t);
  t.single_block = w.blocks == 1;
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const std::int64_t rows = round_up_to(std::max<std::int64_t>(w.rows, 1), t.rows);
  t.slab = t.fill == ConvFill::in_place ? 0 : scratch_size(w.slab + t.lanes);
  t.panels = t.pack_lanes && spec.direction == ConvDirection::weight_grad
                 ? scratch_size(std::max<std::int64_t>(w.block_k, 1) * columns)
                 : 0;
  t.sums = scratch_size(rows * round_up_to(std::max<std::int64_t>(w.lanes, 1), columns));
  t.row_table = scratch_size(rows);
  t.run_table = scratch_size(std::max<std::int64_t>(
      spec.direction == ConvDirection::weight_grad ? w.runs : std::min(order.taps, v.all_taps()),
      1));
  t.weight_table = scratch_size(sizes.taps());
  return t;
}

std::string broken_rule(const ConvSpec& spec, const ConvSizes& sizes, const ConvStrides& strides,
                        const ConvOrder& order, const ConvTiling& t) {
  if (spec.dtype != DType::f32 && spec.dtype != DType::f64)
    return fmt::format("{} is not a type of computation", dtype_name(spec.dtype));
  if (!kir::valid_lanes(t.lanes) || t.lanes < 2)
    return fmt::format("{} lanes are no vector", t.lanes);
  if (t.rows < 1 || t.vectors < 1 || t.lane_block < 1) return "a tile or block is empty";
  if (spec.direction == ConvDirection::weight_grad ? t.channel_block < 1
                                                   : std::ranges::min(t.box) < 1)
    return "a block is empty";
  const ConvView v = conv_view(spec.direction, sizes);
  if (!can_fill(t.fill, spec, v, strides, order, t)) return "the slab cannot be made in this way";
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const bool weight = spec.direction == ConvDirection::weight_grad;
  if (!weight && t.pack_lanes) return "a weight comes in panels";
  if (!weight && t.lane_block % columns != 0) return "an item has a part of a panel";
  if (t.flat_result && !can_flatten(spec, order)) return "the result has no contiguous part";
  if (weight && !t.pack_lanes &&
      (!spec.second_contiguous || t.lane_block % columns != 0 || v.lane_channels % columns != 0))
    return "the second operand cannot be read in place";
  if (!(complete(t, spec, sizes, strides, order) == t)) return "the tiling is not complete";
  return "";
}

namespace {

// Cycles per vector, measured on cores with two fma units.
constexpr double kCopy = 4.0, kGather = 14.0, kFillPosition = 6.0, kFinish = 3.0, kFinishFlat = 8.0,
                 kFinishStrided = 40.0, kTile = 30.0, kRun = 8.0, kFromL2 = 0.15, kItem = 1500.0,
                 kTable = 2.0, kFarBytes = 12.0;

double cycles_of_item(const ConvSpec& spec, const ConvView& v, const ConvOrder& order,
                      const ConvTiling& t, const Target& target) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const bool weight = spec.direction == ConvDirection::weight_grad;
  const Work w = work_of(spec, v, order, t);
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const double tiles = real(up(w.rows, t.rows)), panels = real(up(w.lanes, columns));
  const double fmas = t.rows * t.vectors;
  const double loads = (spec.depthwise ? fmas : t.rows) + t.vectors;
  double step = std::max({0.5 * fmas, 0.5 * loads, 4.0});
  if (w.block_k * columns * dtype_bytes(spec.dtype) > target.l1_bytes * 3 / 4)
    step += kFromL2 * t.vectors;
  if (!t.pack_lanes && tiles > 1)
    step *= collides(v.lane_channels * v.groups, 1024, spec.dtype) ? 1.5 : 1.15;
  if (weight && !spec.depthwise &&
      collides(v.row_step[2] * w.rows / v.all_taps(), 1024, spec.dtype))
    step *= 1.5;
  // Phases have different numbers of taps; workers share them evenly.
  double reached = 1;
  for (std::size_t k = 0; k < 3 && !weight; ++k)
    reached *= real(v.axes[k].kernel) / real(v.phases[k] * v.taps[k]);
  const double runs = real(w.runs * w.blocks) * reached;
  double cycles = tiles * panels *
                  (real(w.k) * reached * step + runs * (kRun + 0.5 * t.rows) +
                   real(w.blocks) * (kTile + 1.5 * fmas));
  if (weight && t.pack_lanes)
    cycles += panels * real(w.k) * t.vectors * (spec.second_contiguous ? kCopy : kGather);
  const double slabs = real(w.slab) / t.lanes * real(w.fills);
  const double positions = slabs * t.lanes /
                           real(std::max<std::int64_t>(
                               spec.depthwise ? w.lanes : std::min(order.channels, v.channels), 1));
  switch (t.fill) {
    case ConvFill::channels:
      cycles += slabs * (spec.first_contiguous ? kCopy : kGather) + positions * kFillPosition;
      break;
    case ConvFill::flat:
      cycles += slabs * kCopy;
      break;
    case ConvFill::columns:
      cycles += slabs * kGather;
      break;
    case ConvFill::in_place:
      break;
  }
  const bool contiguous = spec.result_contiguous || order.slices > 1;
  cycles += real(w.rows) * panels * t.vectors *
            (contiguous      ? kFinish
             : t.flat_result ? kFinishFlat
                             : kFinishStrided);
  cycles += real(w.rows) * kTable * real(w.fills) + kItem;
  // The operands come from further away once per item.
  const std::int64_t weights = v.channels * v.all_taps() * v.lane_channels * v.groups;
  const bool weights_far = weights * dtype_bytes(spec.dtype) > target.l2_bytes / 2;
  const std::int64_t far = w.slab * w.fills + (weight || weights_far ? w.k * w.lanes : 0);
  cycles += real(far * dtype_bytes(spec.dtype)) / kFarBytes;
  const std::int64_t footprint =
      (w.slab + w.rows * w.lanes + w.block_k * columns) * dtype_bytes(spec.dtype);
  if (footprint > target.l2_bytes * 3 / 4) cycles *= 1.3;
  return cycles;
}

// Boxes of positions: inner dimensions are whole before outer ones are more than 1.
std::vector<Box> boxes_of(const ConvView& v) {
  std::vector<Box> list;
  const Box whole{std::max<std::int64_t>(v.batch, 1), v.positions[0], v.positions[1],
                  v.positions[2]};
  Box box{1, 1, 1, 1};
  for (std::size_t k = 4; k > 0; --k) {
    std::int64_t last = 0;
    for (std::int64_t parts = whole[k - 1]; parts >= 1;
         parts = parts > 8 ? std::max<std::int64_t>(parts * 3 / 4, 8) : parts - 1) {
      box[k - 1] = up(whole[k - 1], parts);
      if (box[k - 1] != last) list.push_back(box);
      last = box[k - 1];
    }
    box[k - 1] = whole[k - 1];
  }
  return list;
}

std::vector<std::int64_t> parts_of(std::int64_t size, std::int64_t unit) {
  std::vector<std::int64_t> list;
  for (std::int64_t parts = 1; parts <= 256; parts = parts < 8 ? parts + 1 : parts * 2) {
    const std::int64_t part = std::max<std::int64_t>(round_up_to(up(size, parts), unit), unit);
    if (list.empty() || list.back() != part) list.push_back(part);
    if (part == unit) break;
  }
  return list;
}

ConvFill best_fill(const ConvSpec& spec, const ConvView& v, const ConvStrides& strides,
                   const ConvOrder& order, const ConvTiling& t, bool hook) {
  if (hook) return ConvFill::channels;
  if (can_fill(ConvFill::in_place, spec, v, strides, order, t) &&
      !collides(v.row_step[2] * v.gap[2] * window_strides(spec, strides).back(), 4096, spec.dtype))
    return ConvFill::in_place;
  if (can_fill(ConvFill::flat, spec, v, strides, order, t)) return ConvFill::flat;
  if (!spec.first_contiguous && can_fill(ConvFill::columns, spec, v, strides, order, t))
    return ConvFill::columns;
  return ConvFill::channels;
}

}  // namespace

double estimate(const ConvSpec& spec, const ConvSizes& sizes, const ConvOrder& order,
                const ConvTiling& t, const Target& target, int workers) {
  const ConvView v = conv_view(spec.direction, sizes);
  // Workers share the items of different phases evenly if each has whole sets of them.
  const std::int64_t phases = spec.direction == ConvDirection::weight_grad ? 1 : v.all_phases();
  return cycles_of_item(spec, v, order, t, target) *
         static_cast<double>(up(conv_items(spec, sizes, order, t) / phases, workers) * phases);
}

std::optional<ConvTiling> best_with_tile(const ConvSpec& spec, const ConvSizes& sizes,
                                         const ConvStrides& strides, const ConvOrder& order,
                                         const Target& target, int rows, int vectors,
                                         bool pack_lanes, const ConvNeeds& needs) {
  const ConvView v = conv_view(spec.direction, sizes);
  const bool weight = spec.direction == ConvDirection::weight_grad;
  ConvTiling t{.pack_lanes = pack_lanes,
               .flat_result = needs.flat_result && can_flatten(spec, order),
               .rows = rows,
               .vectors = vectors,
               .lanes = target.lanes(spec.dtype)};
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  if (pack_lanes && !weight) return {};
  if (weight && !pack_lanes &&
      (!spec.second_contiguous || needs.second_hook || v.lane_channels % columns != 0))
    return {};
  double least = std::numeric_limits<double>::infinity();
  ConvTiling best;
  const std::vector<Box> boxes = weight ? std::vector<Box>{{0, 0, 0, 0}} : boxes_of(v);
  // Chunks of one size: their slabs have one pitch, which code relies on.
  std::vector<std::int64_t> chunks =
      weight ? parts_of(v.channels, 1) : std::vector{std::int64_t{0}};
  std::erase_if(chunks, [&](std::int64_t chunk) { return chunk > 0 && v.channels % chunk != 0; });
  for (const std::int64_t lane_block : parts_of(v.lane_channels, columns))
    for (const std::int64_t chunk : chunks)
      for (const Box& box : boxes) {
        t.lane_block = lane_block, t.box = box, t.channel_block = chunk;
        t.fill = best_fill(spec, v, strides, order, t, needs.first_hook);
        t.merge_taps = can_merge_taps(spec, v, order, t);
        const double cycles = estimate(spec, sizes, order, t, target, needs.workers);
        if (cycles < least) least = cycles, best = t;
      }
  return complete(best, spec, sizes, strides, order);
}

ConvTiling choose_conv_tiling(const ConvSpec& spec, const ConvSizes& sizes,
                              const ConvStrides& strides, const ConvOrder& order,
                              const Target& target, const ConvNeeds& needs) {
  const std::int64_t lane_channels = conv_view(spec.direction, sizes).lane_channels;
  ConvTiling best;
  double least = std::numeric_limits<double>::infinity();
  for (int vectors = 1; vectors <= 4; ++vectors) {
    // A vector more than the lanes have is work for nothing.
    if (vectors > 1 && (vectors - 1) * target.lanes(spec.dtype) >= lane_channels) break;
    // Sums in three quarters of the registers, with room for a vector of each column and a
    // broadcast: code with more of them is spilled at times.
    const int sums =
        std::min(target.vector_registers * 3 / 4, target.vector_registers - vectors - 1);
    const int most = std::min(14, sums / vectors);
    for (int rows = std::max(1, most / 2); rows <= most; ++rows)
      for (const bool pack_lanes : {false, true}) {
        const std::optional<ConvTiling> t =
            best_with_tile(spec, sizes, strides, order, target, rows, vectors, pack_lanes, needs);
        if (!t) continue;
        const double cycles = estimate(spec, sizes, order, *t, target, needs.workers);
        if (cycles < least) least = cycles, best = *t;
      }
  }
  return best;
}

}  // namespace pantala::schedule::cpu
