// How Winograd's kernels get their operands: declarations, and the transforms of tiles and weights.
#include <algorithm>

#include "schedule/cpu/conv/winograd_parts.h"

namespace pantala::schedule::cpu {

using kir::Access;
using kir::Op;
using kir::Var;

WinogradWriter::WinogradWriter(std::string name, WinogradKernel kernel, const WinogradSpec& spec,
                               const WinogradOrder& order, const WinogradTiling& tiling,
                               const Epilogue& result)
    : b(std::move(name)),
      kernel_(kernel),
      spec_(spec),
      t_(tiling),
      hook_(result),
      result_contiguous_(spec.conv.result_contiguous || spec.result_rows || order.slices > 1),
      transform_(spec.side) {}

kir::Kernel WinogradWriter::build() {
  declare();
  switch (kernel_) {
    case WinogradKernel::window:
    case WinogradKernel::gradient:
      image_item();
      break;
    case WinogradKernel::weight:
      weight_item();
      break;
    case WinogradKernel::result:
      result_item();
      break;
    case WinogradKernel::weight_gradient:
      weight_gradient_item();
      break;
  }
  return b.finish();
}

void WinogradWriter::declare() {
  const DType dtype = spec_.conv.dtype;
  const bool products =
      kernel_ == WinogradKernel::result || kernel_ == WinogradKernel::weight_gradient;
  const bool makes_weight = kernel_ == WinogradKernel::weight,
             makes_gradient = kernel_ == WinogradKernel::gradient;
  if (products) {
    (t_.shared_window ? window_ : image_) = b.buffer("window", dtype, Access::read);
    (t_.shared_weight ? weight_ : kernels_) = b.buffer("weight", dtype, Access::read);
    result_ = b.buffer("result", dtype, hook_.c_access);
  } else {
    (makes_weight ? kernels_ : image_) = b.buffer("operand", dtype, Access::read);
    (makes_weight || makes_gradient ? weight_ : window_) =
        b.buffer("transformed", dtype, Access::write);
  }
  WinogradNumbers<Var>::fields([&](const char* field, Var& value) { value = b.param(field); }, n_);
  if (products && hook_.declare) hook_.declare(b);
  window_point_ = n_.window_point, weight_point_ = n_.weight_point;
  const auto scratch = [&](const char* name, std::int64_t size) {
    return b.scratch(name, dtype, scratch_size(size));
  };
  if (products && !t_.shared_window) {
    const std::int64_t point = t_.row_block * t_.pitch + kPointGap;
    window_ = scratch("transformed_window", points() * point);
    window_point_ = b.i64(point);
  }
  if (products && !t_.shared_weight) {
    const std::int64_t point = t_.chunk * columns() + kPointGap;
    weight_ = scratch("transformed_weight", points() * point);
    weight_point_ = b.i64(point);
  }
  if (spec_.weights == WinogradWeights::rows && (makes_weight || (products && !t_.shared_weight)))
    square_ = scratch("square", std::int64_t{9} * t_.lanes * t_.lanes);
  if (!products) return;
  const std::int64_t panels =
      kernel_ == WinogradKernel::weight_gradient ? t_.lane_block / columns() : 1;
  sums_point_ = panels * t_.row_block * columns() + kPointGap;
  sums_ = scratch("sums", points() * sums_point_);
  const int square = 9 * t_.lanes * t_.lanes;
  finished_ = scratch(
      "finished", spec_.result_rows ? square : std::max(9, spec_.side * spec_.side) * columns());
  if (spec_.result_rows) turned_ = scratch("turned", square);
}

void WinogradWriter::vectors(Var count, const std::function<void(Var, Var)>& body) {
  const Var whole = count / t_.lanes * t_.lanes;
  b.loop(b.i64(0), whole, b.i64(t_.lanes), [&](Var i) { body(i, {}); });
  b.branch(lt(whole, count), [&] { body(whole, first_lanes(b, count - whole, t_.lanes)); });
}

WinogradWriter::Tile WinogradWriter::tile_at(Var number) {
  const Var line = number / n_.tiles_w;
  return {line / n_.tiles_h, line % n_.tiles_h * spec_.side, number % n_.tiles_w * spec_.side};
}

void WinogradWriter::store_points(const Vars& row, int number, kir::BufferId out, Var to,
                                  Var point) {
  for (std::size_t j = 0; j < row.size(); ++j)
    b.store(out, to + (number * transform_.points() + static_cast<int>(j)) * point, row[j]);
}

// Vectors whose elements all exist are loaded as they are, the others by the rows and columns that
// do.
void WinogradWriter::transform_tile(Var number, int size, kir::BufferId out,
                                    const std::function<Var(Var)>& to, Var point) {
  const bool is_gradient = kernel_ == WinogradKernel::gradient;
  const Tile tile = tile_at(number);
  const Var row0 = tile.row - n_.padding_h, column0 = tile.column - n_.padding_w;
  const Var from = tile.image * n_.window_outer + row0 * n_.window_row + column0 * n_.window_column;
  const auto both = [&](Var x, Var y) { return b.binary(Op::bit_and, x, y); };
  const auto inside = [&](Var at, Var count) { return both(le(0, at), lt(at, count)); };
  const Var is_whole = both(both(le(0, row0), le(row0 + size, n_.window_h)),
                            both(le(0, column0), le(column0 + size, n_.window_w)));
  const Var whole = b.select(is_whole, n_.channels / t_.lanes * t_.lanes, b.i64(0));
  const auto vector = [&](Var c, const std::function<Var(int, int)>& mask) {
    const auto one_axis = [&](const Vars& x) {
      return is_gradient ? transform_.result_gradient(b, x) : transform_.window(b, x);
    };
    const auto element = [&](int i, int j) {
      const Var at = from + c * n_.window_channel + i * n_.window_row + j * n_.window_column;
      return (is_gradient ? spec_.conv.second_contiguous : spec_.conv.first_contiguous)
                 ? b.load(image_, at, t_.lanes, mask(i, j))
                 : b.load_strided(image_, at, n_.window_channel, t_.lanes, mask(i, j));
    };
    const Var place = to(c);
    transform_square(one_axis, size, element,
                     [&](int i, const Vars& row) { store_points(row, i, out, place, point); });
  };
  b.loop(b.i64(0), whole, b.i64(t_.lanes),
         [&](Var c) { vector(c, [](int, int) { return Var(); }); });
  Vars columns;
  for (int j = 0; j < size; ++j)
    columns.push_back(first_lanes(
        b, b.select(inside(column0 + j, n_.window_w), b.i64(t_.lanes), b.i64(0)), t_.lanes));
  b.loop(whole, n_.channels, b.i64(t_.lanes), [&](Var c) {
    Vars rows;
    for (int i = 0; i < size; ++i)
      rows.push_back(first_lanes(
          b, b.select(inside(row0 + i, n_.window_h), n_.channels - c, b.i64(0)), t_.lanes));
    vector(c, [&](int i, int j) {
      return both(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]);
    });
  });
}

void WinogradWriter::image_item() {
  const Var first = b.item() * n_.row_block;
  b.loop(first, min(first + n_.row_block, n_.tiles), b.i64(1), [&](Var t) {
    if (kernel_ == WinogradKernel::window)
      return transform_tile(
          n_.tile0 + t, transform_.points(), window_, [&](Var c) { return t * t_.pitch + c; },
          window_point_);
    transform_tile(
        n_.tile0 + t, spec_.side, weight_,
        [&](Var c) { return c / columns() * n_.weight_panel + t * columns() + c % columns(); },
        weight_point_);
  });
}

void WinogradWriter::weight_item() {
  const Var lane0 = b.item() % n_.lane_blocks * columns();
  const Var channel0 = b.item() / n_.lane_blocks * n_.row_block;
  transform_weight(lane0, channel0, min(n_.row_block, n_.channels - channel0),
                   lane0 / columns() * n_.weight_panel + channel0 * columns(), weight_point_);
}

void WinogradWriter::turn_weight(Var lane, Var channel, Var count) {
  const Var is_whole =
      b.binary(Op::bit_and, le(lane + t_.lanes, n_.lane_channels), eq(count, t_.lanes));
  const auto turn = [&](bool masked) {
    b.loop(b.i64(0), count * 9, b.i64(t_.lanes), [&](Var i) {
      Vars rows;
      for (int r = 0; r < t_.lanes; ++r) {
        Var mask;
        if (masked)
          mask = first_lanes(b, b.select(lt(lane + r, n_.lane_channels), count * 9 - i, b.i64(0)),
                             t_.lanes);
        const Var at = n_.weight_at + (lane + r) * n_.weight_lane + channel * 9 + i;
        rows.push_back(b.load(kernels_, at, t_.lanes, mask));
      }
      rows = b.transpose(rows);
      for (int r = 0; r < t_.lanes; ++r)
        b.store(square_, (i + r) * t_.lanes, rows[static_cast<std::size_t>(r)]);
    });
    return std::vector<Var>{};
  };
  b.branch(is_whole, [&] { return turn(false); }, [&] { return turn(true); });
}

// A vector along each lane's kernel; squares of them are transposed.
WinogradWriter::Vars WinogradWriter::kernel_elements(Var lane, Var channel, const Vars& masks) {
  const bool is_turned = spec_.conv.direction == ConvDirection::input_grad;
  const Var from =
      n_.weight_at + lane * n_.weight_lane + channel * n_.weight_channel - (is_turned ? 8 : 0);
  Vars elements;
  for (int k = 0; k < 9; k += t_.lanes) {
    if (k == 8) {
      const Var last = first_lanes(b, n_.lane_channels - lane, t_.lanes);
      elements.push_back(b.load_strided(kernels_, from + k, n_.weight_lane, t_.lanes, last));
      break;
    }
    Vars rows;
    for (int r = 0; r < t_.lanes; ++r)
      rows.push_back(b.load(kernels_, from + r * n_.weight_lane + k, t_.lanes,
                            masks[static_cast<std::size_t>(r)]));
    for (const Var& row : b.transpose(rows)) elements.push_back(row);
  }
  elements.resize(9);
  if (is_turned) std::ranges::reverse(elements);
  return elements;
}

void WinogradWriter::transform_weight(Var lane0, Var channel0, Var count, Var to, Var point) {
  const auto one_axis = [&](const Vars& x) { return transform_.kernel(b, x); };
  const auto write = [&](const std::function<Var(int, int)>& element, Var place) {
    transform_square(one_axis, 3, element,
                     [&](int i, const Vars& row) { store_points(row, i, weight_, place, point); });
  };
  const auto by_rows = [&](Var lane, Var place) {
    b.loop(b.i64(0), count, b.i64(t_.lanes), [&](Var c0) {
      const Var here = min(count - c0, t_.lanes);
      turn_weight(lane, channel0 + c0, here);
      each(here, [&](Var c) {
        const auto element = [&](int i, int j) {
          return b.load(square_, (c * 9 + (i * 3 + j)) * t_.lanes, t_.lanes);
        };
        write(element, place + (c0 + c) * columns());
      });
    });
  };
  const auto by_kernels = [&](Var lane, Var place) {
    Vars masks;
    for (int r = 0; r < t_.lanes; ++r)
      masks.push_back(
          first_lanes(b, b.select(lt(lane + r, n_.lane_channels), b.i64(9), b.i64(0)), t_.lanes));
    each(count, [&](Var c) {
      const Vars elements = kernel_elements(lane, channel0 + c, masks);
      write([&](int i, int j) { return elements[static_cast<std::size_t>(i * 3 + j)]; },
            place + c * columns());
    });
  };
  const auto by_elements = [&](Var lane, Var place) {
    const Var mask = first_lanes(b, n_.lane_channels - lane, t_.lanes);
    each(count, [&](Var c) {
      const Var from = n_.weight_at + lane * n_.weight_lane + (channel0 + c) * n_.weight_channel;
      const auto element = [&](int i, int j) {
        const Var at = from + i * n_.weight_row + j * n_.weight_column;
        return spec_.weights == WinogradWeights::lanes
                   ? b.load(kernels_, at, t_.lanes, mask)
                   : b.load_strided(kernels_, at, n_.weight_lane, t_.lanes, mask);
      };
      write(element, place + c * columns());
    });
  };
  b.loop(b.i64(0), b.i64(columns()), b.i64(t_.lanes), [&](Var v) {
    if (spec_.weights == WinogradWeights::rows)
      by_rows(lane0 + v, to + v);
    else if (spec_.weights == WinogradWeights::kernels)
      by_kernels(lane0 + v, to + v);
    else
      by_elements(lane0 + v, to + v);
  });
}

}  // namespace pantala::schedule::cpu
