// Winograd's kernels of products: a register tile for every point, and the way of the sums to the
// result.
#include <fmt/format.h>

#include "pantala/error.h"
#include "schedule/cpu/conv/winograd_parts.h"

namespace pantala::schedule::cpu {

using kir::Var;

void WinogradWriter::result_item() {
  const Var lane0 = b.item() % n_.lane_blocks * n_.lane_block;
  const Var lanes = min(n_.lane_block, n_.lane_channels - lane0);
  const Var tile0 = b.item() / n_.lane_blocks * n_.row_block;
  const Var tiles = min(n_.row_block, n_.tiles - tile0);
  if (!t_.shared_window) {
    each(tiles, [&](Var t) {
      transform_tile(
          tile0 + t, transform_.points(), window_, [&](Var c) { return t * t_.pitch + c; },
          window_point_);
    });
    // Rows of the last register tile without a tile.
    const Var zero = b.constant({spec_.conv.dtype, t_.lanes}, 0.0);
    b.loop(tiles, round_up(tiles, t_.rows), b.i64(1), [&](Var t) {
      each(b.i64(points()), [&](Var p) {
        b.loop(b.i64(0), n_.channels, b.i64(t_.lanes),
               [&](Var c) { b.store(window_, p * window_point_ + t * t_.pitch + c, zero); });
      });
    });
  }
  b.loop(b.i64(0), lanes, b.i64(columns()),
         [&](Var lane) { result_panel(tile0, tiles, lane0 + lane, min(lanes - lane, columns())); });
}

void WinogradWriter::result_panel(Var tile0, Var tiles, Var lane0, Var lanes) {
  const Var window_at = t_.shared_window ? tile0 * t_.pitch : b.i64(0);
  const Var weight_at = t_.shared_weight ? lane0 / columns() * n_.weight_panel : b.i64(0);
  const auto block = [&](Var channel0) {
    const Var depth = min(n_.channel_block, n_.channels - channel0);
    if (!t_.shared_weight) transform_weight(lane0, channel0, depth, b.i64(0), weight_point_);
    each(b.i64(points()), [&](Var p) {
      b.loop(b.i64(0), tiles, b.i64(t_.rows), [&](Var row) {
        const Vars sums =
            multiply({.rows = window_,
                      .rows_at = window_at + p * window_point_ + row * t_.pitch + channel0,
                      .row_step = t_.pitch,
                      .step = 1,
                      .lanes = weight_,
                      .lanes_at = weight_at + p * weight_point_ +
                                  (t_.shared_weight ? channel0 * columns() : b.i64(0)),
                      .depth = depth});
        keep(sums, p * sums_point_ + row * columns(), eq(channel0, 0));
      });
    });
  };
  if (t_.single_block)
    block(b.i64(0));
  else
    b.loop(b.i64(0), n_.channels, n_.channel_block, block);
  each(tiles, [&](Var t) { finish_tile(tile0 + t, t * columns(), lane0, lanes); });
}

void WinogradWriter::weight_gradient_item() {
  const Var lane0 = b.item() % n_.lane_blocks * n_.lane_block;
  const Var lanes = min(n_.lane_block, n_.lane_channels - lane0);
  const Var channel0 = b.item() / n_.lane_blocks * n_.row_block;
  const Var channels = min(n_.row_block, n_.channels - channel0);
  each(b.i64(points()), [&](Var p) {
    b.loop(b.i64(0), lanes, b.i64(columns()), [&](Var lane) {
      const Var panel_at = p * weight_point_ + (lane0 + lane) / columns() * n_.weight_panel;
      b.loop(b.i64(0), channels, b.i64(t_.rows), [&](Var row) {
        const Var rows_at = p * window_point_ + channel0 + row;
        const auto block = [&](Var tile) {
          const Vars sums = multiply({.rows = window_,
                                      .rows_at = rows_at + tile * t_.pitch,
                                      .row_step = 1,
                                      .step = t_.pitch,
                                      .lanes = weight_,
                                      .lanes_at = panel_at + tile * columns(),
                                      .depth = min(n_.channel_block, n_.tiles - tile)});
          keep(sums, p * sums_point_ + lane * t_.row_block + row * columns(), eq(tile, 0));
        };
        if (t_.single_block)
          block(b.i64(0));
        else
          b.loop(b.i64(0), n_.tiles, n_.channel_block, block);
      });
    });
  });
  if (spec_.result_rows) return finish_rows(channel0, channels, lane0, lanes);
  each(channels, [&](Var c) {
    b.loop(b.i64(0), lanes, b.i64(columns()), [&](Var lane) {
      finish_weight(channel0 + c, lane * t_.row_block + c * columns(), lane0 + lane,
                    min(lanes - lane, columns()));
    });
  });
}

WinogradWriter::Vars WinogradWriter::multiply(const Product& x) {
  const auto body = [&](int unroll) {
    return [&, unroll](Var k, std::span<const Var> before) {
      Vars sums(before.begin(), before.end());
      for (int u = 0; u < unroll; ++u) {
        Vars lanes;
        for (int v = 0; v < t_.vectors; ++v)
          lanes.push_back(b.load(
              x.lanes, x.lanes_at + k * columns() + (u * columns() + v * t_.lanes), t_.lanes));
        for (int r = 0; r < t_.rows; ++r) {
          const Var at = x.rows_at + k * x.step + (r * x.row_step + u * x.step);
          const Var many = b.splat(b.load(x.rows, at), t_.lanes);
          for (int v = 0; v < t_.vectors; ++v) {
            Var& sum = sums[static_cast<std::size_t>(r * t_.vectors + v)];
            sum = b.fma(many, lanes[static_cast<std::size_t>(v)], sum);
          }
        }
      }
      return sums;
    };
  };
  const Vars zeros(static_cast<std::size_t>(t_.rows * t_.vectors),
                   b.constant({spec_.conv.dtype, t_.lanes}, 0.0));
  const Var whole = x.depth / t_.unroll * t_.unroll;
  const Vars sums = b.loop(b.i64(0), whole, b.i64(t_.unroll), zeros, body(t_.unroll));
  return b.loop(whole, x.depth, b.i64(1), sums, body(1));
}

void WinogradWriter::emit(ResultSite site, Var lane_stride) {
  site.c = result_;
  Var value = site.value;
  if (hook_.apply) {
    value = hook_.apply(b, site);
    if (!value.valid()) return;
  }
  if (result_contiguous_)
    b.store(result_, site.c_at, value, site.mask);
  else
    b.store_strided(result_, site.c_at, lane_stride, value, site.mask);
}

// The whole tile first, so that the epilogue is written out once and not for every result.
void WinogradWriter::finish_tile(Var number, Var at, Var lane0, Var lanes) {
  const int side = spec_.side, n = transform_.points();
  b.loop(b.i64(0), b.i64(columns()), b.i64(t_.lanes), [&](Var v) {
    transform_square(
        [&](const Vars& x) { return transform_.result(b, x); }, n,
        [&](int i, int j) { return b.load(sums_, at + v + (i * n + j) * sums_point_, t_.lanes); },
        [&](int i, const Vars& row) {
          for (int j = 0; j < side; ++j)
            b.store(finished_, v + (i * side + j) * columns(), row[static_cast<std::size_t>(j)]);
        });
  });
  const Tile tile = tile_at(number);
  each(min(n_.result_h - tile.row, side), [&](Var i) {
    each(min(n_.result_w - tile.column, side), [&](Var j) {
      const Var row = tile.row + i, column = tile.column + j;
      const Var to = n_.result_at + tile.image * n_.result_outer + row * n_.result_row +
                     column * n_.result_column;
      vectors(lanes, [&](Var lane, Var mask) {
        const Var channel = lane0 + lane;
        emit({.value = b.load(finished_, (i * side + j) * columns() + lane, t_.lanes),
              .batch = tile.image,
              .m = row * n_.result_w + column,
              .n = channel,
              .mask = mask,
              .c_at = to + channel * n_.result_channel,
              .c = {},
              .lanes_along_n = true,
              .coordinates = {tile.image, channel, row, column},
              .lane_dim = 1},
             n_.result_channel);
      });
    });
  });
}

void WinogradWriter::transform_sums(Var at, Var to, int step) {
  const int n = transform_.points();
  transform_square(
      [&](const Vars& x) { return transform_.kernel_gradient(b, x); }, n,
      [&](int i, int j) { return b.load(sums_, at + (i * n + j) * sums_point_, t_.lanes); },
      [&](int i, const Vars& row) {
        for (int j = 0; j < 3; ++j)
          b.store(finished_, to + (i * 3 + j) * step, row[static_cast<std::size_t>(j)]);
      });
}

void WinogradWriter::finish_rows(Var channel0, Var channels, Var lane0, Var lanes) {
  const int square = t_.lanes;
  const auto finish = [&](Var c0, Var lane) {
    const Var here = min(channels - c0, square);
    const Var panel = lane / columns() * columns();
    each(here, [&](Var c) {
      transform_sums(panel * t_.row_block + (c0 + c) * columns() + (lane - panel), c * (9 * square),
                     square);
    });
    b.loop(b.i64(0), here * 9, b.i64(square), [&](Var i) {
      Vars rows;
      for (int r = 0; r < square; ++r)
        rows.push_back(b.load(finished_, min(i + r, here * 9 - 1) * square, square));
      rows = b.transpose(rows);
      for (int r = 0; r < square; ++r)
        b.store(turned_, i + r * 9 * square, rows[static_cast<std::size_t>(r)]);
    });
    each(min(lanes - lane, square), [&](Var r) {
      const Var out = lane0 + lane + r, first = (channel0 + c0) * 9;
      vectors(here * 9, [&](Var i, Var mask) {
        emit({.value = b.load(turned_, r * (9 * square) + i, square),
              .batch = b.i64(0),
              .m = first + i,
              .n = out,
              .mask = mask,
              .c_at = n_.result_at + out * n_.result_outer + first + i,
              .c = {},
              .lanes_along_n = false,
              .coordinates = {out, {}, {}, first + i},
              .lane_dim = 3},
             b.i64(1));
      });
    });
  };
  b.loop(b.i64(0), channels, b.i64(square), [&](Var c0) {
    b.loop(b.i64(0), lanes, b.i64(square), [&](Var lane) { finish(c0, lane); });
  });
}

void WinogradWriter::finish_weight(Var channel, Var at, Var lane0, Var lanes) {
  b.loop(b.i64(0), b.i64(columns()), b.i64(t_.lanes),
         [&](Var v) { transform_sums(at + v, v, columns()); });
  each(b.i64(3), [&](Var i) {
    each(b.i64(3), [&](Var j) {
      const Var to =
          n_.result_at + channel * n_.result_channel + i * n_.result_row + j * n_.result_column;
      vectors(lanes, [&](Var lane, Var mask) {
        const Var out = lane0 + lane;
        emit({.value = b.load(finished_, (i * 3 + j) * columns() + lane, t_.lanes),
              .batch = b.i64(0),
              .m = channel * 9 + i * 3 + j,
              .n = out,
              .mask = mask,
              .c_at = to + out * n_.result_outer,
              .c = {},
              .lanes_along_n = true,
              .coordinates = {out, channel, i, j},
              .lane_dim = 0},
             n_.result_outer);
      });
    });
  });
}

kir::Kernel build_winograd(std::string name, WinogradKernel kernel, const WinogradSpec& spec,
                           const WinogradOrder& order, const WinogradTiling& tiling,
                           const Epilogue& result) {
  if (order.slices > 1 && result.apply)
    throw InternalError(fmt::format(
        "conv kernel '{}': the epilogue of slices belongs to the kernel that combines them", name));
  return WinogradWriter(std::move(name), kernel, spec, order, tiling, result).build();
}

}  // namespace pantala::schedule::cpu
