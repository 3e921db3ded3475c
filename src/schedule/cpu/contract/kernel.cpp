#include "schedule/cpu/contract/kernel.h"

#include <fmt/format.h>

#include "pantala/error.h"
#include "schedule/cpu/contract/parts.h"

namespace pantala::schedule::cpu {

using kir::Builder;
using kir::Var;

namespace {

std::int64_t round_up_to(std::int64_t a, std::int64_t b) { return (a + b - 1) / b * b; }

// Writes the kernel of one tiling. Names: a *tile* is `rows` neighbours of the rows operand, a
// *panel* a few vectors of neighbours of the lanes operand.
class TileKernel {
 public:
  TileKernel(std::string name, const ContractSpec& spec, const ContractOrder& order,
             const ContractTiling& tiling, const ContractHooks& hooks)
      : b(std::move(name)), spec_(spec), order_(order), t_(tiling), hooks_(hooks) {}

  kir::Kernel build() {
    args_ = declare_arguments(b, spec_, hooks_);
    open_item();
    make_scratch();
    if (t_.single_block) {
      block(b.i64(0), args_.k);
    } else {
      // Also once for k == 0: the sums must be written.
      b.loop(b.i64(0), max(args_.k, 1), args_.k_block,
             [&](Var k0) { block(k0, min(args_.k_block, args_.k - k0)); });
    }
    if (!t_.direct) t_.lanes_along_m == spec_.c_n_inner ? finish_transposed() : finish();
    return b.finish();
  }

 private:
  int columns() const { return t_.vectors * t_.lanes; }
  Panel tile_panel() const {
    const auto padded = static_cast<int>(round_up_to(t_.rows, t_.lanes));
    return {t_.rows, t_.rows <= t_.lanes ? t_.rows : padded, t_.lanes};
  }
  Panel lane_panel() const { return {columns(), columns(), t_.lanes, t_.whole_lanes}; }

  // Which part of c this item makes.
  void open_item() {
    const Var rows = t_.lanes_along_m ? args_.n : args_.m,
              lanes = t_.lanes_along_m ? args_.m : args_.n;
    const Var row_blocks = ceil_div(rows, args_.row_block),
              lane_blocks = ceil_div(lanes, args_.lane_block);
    const Var per_batch = row_blocks * lane_blocks;
    const Var batch = b.item() / per_batch, rest = b.item() % per_batch;
    const Operand a{args_.a, spec_.a_k_inner,       args_.m,  args_.a_ld,
                    batch,   batch * args_.a_batch, &hooks_.a};
    const Operand other{args_.b, spec_.b_k_inner,       args_.n,  args_.b_ld,
                        batch,   batch * args_.b_batch, &hooks_.b};
    rows_ = t_.lanes_along_m ? other : a;
    lanes_ = t_.lanes_along_m ? a : other;
    result_ = {args_.c, spec_.c_n_inner, args_.c_ld, batch, batch * args_.c_batch, &hooks_.result};
    row0_ = rest / lane_blocks * args_.row_block;
    lane0_ = rest % lane_blocks * args_.lane_block;
    row_count_ = min(args_.row_block, rows - row0_);
    lane_count_ = min(args_.lane_block, lanes - lane0_);
    tiles_ = ceil_div(row_count_, t_.rows);
    panels_ = ceil_div(lane_count_, columns());
    padded_rows_ = tiles_ * t_.rows;
  }

  void make_scratch() {
    const std::int64_t depth = round_up_to(order_.k_block, t_.lanes);
    const std::int64_t row_block = round_up_to(t_.row_block, t_.rows),
                       lane_block = round_up_to(t_.lane_block, columns());
    const std::int64_t tile = depth * tile_panel().padded + t_.lanes,
                       panel = depth * columns() + t_.lanes;
    if (t_.pack_rows)
      packed_rows_ = b.scratch("packed_rows", spec_.dtype,
                               scratch_size(t_.rows_outer ? tile : row_block / t_.rows * tile));
    if (t_.pack_lanes)
      packed_lanes_ =
          b.scratch("packed_lanes", spec_.dtype,
                    scratch_size(t_.rows_outer ? lane_block / columns() * panel : panel));
    if (t_.direct) return;
    sums_ = b.scratch("sums", spec_.dtype, scratch_size(row_block * lane_block));
    if (t_.lanes_along_m == spec_.c_n_inner)
      square_ = b.scratch("square", spec_.dtype, t_.lanes * t_.lanes);
  }

  void pack_tiles(Var first, Var count, Var tile_size) {
    pack(b, rows_, tile_panel(), {row0_ + first * t_.rows, count, k0_, depth_}, packed_rows_,
         tile_size);
  }
  void pack_panels(Var first, Var count, Var panel_size) {
    pack(b, lanes_, lane_panel(), {lane0_ + first * columns(), count, k0_, depth_}, packed_lanes_,
         panel_size);
  }
  void each(Var count, const std::function<void(Var)>& body) {
    b.loop(b.i64(0), count, b.i64(1), body);
  }

  // Adds the products of one block of k to the sums.
  void block(Var k0, Var depth) {
    k0_ = k0;
    depth_ = depth;
    const Var zero = b.i64(0), one = b.i64(1);
    const Var padded = round_up(depth, t_.lanes);
    // Neighbours start a line apart from a multiple of the cache's sets: they are written in turns.
    const Var tile_size = padded * tile_panel().padded + t_.lanes,
              panel_size = padded * columns() + t_.lanes;
    if (t_.rows_outer) {
      if (t_.pack_lanes) pack_panels(zero, panels_, panel_size);
      each(tiles_, [&](Var tile) {
        if (t_.pack_rows) pack_tiles(tile, one, tile_size);
        each(panels_, [&](Var panel) { product(tile, panel, zero, panel * panel_size); });
      });
      return;
    }
    if (t_.pack_rows) pack_tiles(zero, tiles_, tile_size);
    each(panels_, [&](Var panel) {
      if (t_.pack_lanes) pack_panels(panel, one, panel_size);
      each(tiles_, [&](Var tile) { product(tile, panel, tile * tile_size, zero); });
    });
  }

  // One register tile. A packed panel is whole; one that is read in place needs masks at the end of
  // its axis.
  void product(Var tile, Var panel, Var tile_at, Var panel_at) {
    const Var lane = lane0_ + panel * columns();
    const auto part = [&](bool whole) {
      const std::vector<Var> sums = register_tile(tile, lane, tile_at, panel_at, whole);
      if (t_.direct)
        store_direct(sums, row0_ + tile * t_.rows, lane, whole);
      else
        keep(sums, tile, panel);
    };
    if (t_.whole_lanes || (t_.pack_lanes && !t_.direct)) return part(true);
    b.branch(
        le(lane + columns(), lanes_.size),
        [&] {
          part(true);
          return std::vector<Var>{};
        },
        [&] {
          part(false);
          return std::vector<Var>{};
        });
  }

  Var inside(Var row) const { return t_.whole_rows ? row : min(row, rows_.size - 1); }

  std::vector<Var> register_tile(Var tile, Var lane, Var tile_at, Var panel_at, bool whole) {
    std::vector<Var> row_at;
    if (!t_.pack_rows)
      for (int r = 0; r < t_.rows; ++r)
        row_at.push_back(rows_.index(inside(row0_ + tile * t_.rows + r), k0_));
    std::vector<Var> masks(static_cast<std::size_t>(t_.vectors));
    if (!whole && !t_.pack_lanes)
      for (int v = 0; v < t_.vectors; ++v)
        masks[static_cast<std::size_t>(v)] =
            first_lanes(b, lanes_.size - lane - v * t_.lanes, t_.lanes);
    const Var lanes_at = t_.pack_lanes ? panel_at : lanes_.index(lane, k0_);
    const Var lanes_step = t_.pack_lanes ? b.i64(columns()) : lanes_.ld;
    const int rows_step = tile_panel().padded;

    const auto step = [&](Var k, int u, std::vector<Var>& sums) {
      std::vector<Var> vectors(static_cast<std::size_t>(t_.vectors));
      for (int v = 0; v < t_.vectors; ++v)
        vectors[static_cast<std::size_t>(v)] =
            b.load(t_.pack_lanes ? packed_lanes_ : lanes_.buffer,
                   lanes_at + (k + u) * lanes_step + v * t_.lanes, t_.lanes,
                   masks[static_cast<std::size_t>(v)]);
      for (int r = 0; r < t_.rows; ++r) {
        const Var x = t_.pack_rows
                          ? b.load(packed_rows_, tile_at + k * rows_step + (u * rows_step + r))
                          : b.load(rows_.buffer, row_at[static_cast<std::size_t>(r)] + k + u);
        const Var many = b.splat(x, t_.lanes);
        for (int v = 0; v < t_.vectors; ++v) {
          Var& sum = sums[static_cast<std::size_t>(r * t_.vectors + v)];
          sum = b.fma(many, vectors[static_cast<std::size_t>(v)], sum);
        }
      }
    };
    const auto body = [&](int unroll) {
      return [&, unroll](Var k, std::span<const Var> carried) {
        std::vector<Var> sums(carried.begin(), carried.end());
        for (int u = 0; u < unroll; ++u) step(k, u, sums);
        return sums;
      };
    };
    const std::vector<Var> zeros(static_cast<std::size_t>(t_.rows * t_.vectors),
                                 b.constant({spec_.dtype, t_.lanes}, 0.0));
    const Var unrolled = t_.whole_steps ? depth_ : depth_ / kContractUnroll * kContractUnroll;
    const std::vector<Var> sums =
        b.loop(b.i64(0), unrolled, b.i64(kContractUnroll), zeros, body(kContractUnroll));
    if (t_.whole_steps) return sums;
    return b.loop(unrolled, depth_, b.i64(1), sums, body(1));
  }

  Var sums_at(Var panel, Var row) { return (panel * padded_rows_ + row) * columns(); }

  // The first block writes the item's sums, later ones are added.
  void keep(const std::vector<Var>& sums, Var tile, Var panel) {
    const Var at = sums_at(panel, tile * t_.rows);
    const auto write = [&](bool add) {
      for (int i = 0; i < t_.rows * t_.vectors; ++i) {
        const Var to = at + i * t_.lanes;
        const Var sum = sums[static_cast<std::size_t>(i)];
        b.store(sums_, to, add ? b.load(sums_, to, t_.lanes) + sum : sum);
      }
      return std::vector<Var>{};
    };
    if (t_.single_block)
      write(false);
    else
      b.branch(eq(k0_, 0), [&] { return write(false); }, [&] { return write(true); });
  }

  void store(Var value, Var row, Var lane, Var mask) {
    if (t_.lanes_along_m)
      result_.store(b, value, lane, row, mask);
    else
      result_.store(b, value, row, lane, mask);
  }

  void store_direct(const std::vector<Var>& sums, Var row, Var lane, bool whole) {
    std::vector<Var> masks(static_cast<std::size_t>(t_.vectors));
    if (!whole)
      for (int v = 0; v < t_.vectors; ++v)
        masks[static_cast<std::size_t>(v)] =
            first_lanes(b, lanes_.size - lane - v * t_.lanes, t_.lanes);
    for (int r = 0; r < t_.rows; ++r) {
      const auto store_row = [&] {
        for (int v = 0; v < t_.vectors; ++v)
          store(sums[static_cast<std::size_t>(r * t_.vectors + v)], row + r, lane + v * t_.lanes,
                masks[static_cast<std::size_t>(v)]);
      };
      if (t_.whole_rows)
        store_row();
      else
        b.branch(lt(row + r, rows_.size), store_row);
    }
  }

  // `body(i, mask)` for every vector of `count` elements; i counts elements, full vectors have no
  // mask.
  void vectors(Var count, const std::function<void(Var, Var)>& body) {
    const Var whole = t_.whole_lanes ? count : count / t_.lanes * t_.lanes;
    b.loop(b.i64(0), whole, b.i64(t_.lanes), [&](Var i) { body(i, {}); });
    if (t_.whole_lanes) return;
    b.branch(lt(whole, count), [&] { body(whole, first_lanes(b, count - whole, t_.lanes)); });
  }
  Var sums_vector_at(Var lane, Var row) {
    return sums_at(lane / columns(), row) + lane % columns();
  }

  // From the sums through the epilogue to c, whose contiguous axis the lanes are.
  void finish() {
    each(row_count_, [&](Var row) {
      vectors(lane_count_, [&](Var lane, Var mask) {
        store(b.load(sums_, sums_vector_at(lane, row), t_.lanes), row0_ + row, lane0_ + lane, mask);
      });
    });
  }

  // c's contiguous axis is that of the rows: squares are transposed. They pass through scratch, so
  // that the epilogue stands in a loop.
  void finish_transposed() {
    b.loop(b.i64(0), lane_count_, b.i64(t_.lanes), [&](Var lane) {
      const Var here = t_.whole_lanes ? b.i64(t_.lanes) : min(lane_count_ - lane, t_.lanes);
      b.loop(b.i64(0), row_count_, b.i64(t_.lanes), [&](Var row) {
        std::vector<Var> square;
        for (int r = 0; r < t_.lanes; ++r)
          square.push_back(
              b.load(sums_, sums_vector_at(lane, min(row + r, row_count_ - 1)), t_.lanes));
        square = b.transpose(square);
        for (int r = 0; r < t_.lanes; ++r)
          b.store(square_, b.i64(r * t_.lanes), square[static_cast<std::size_t>(r)]);
        const auto store_all = [&](Var mask) {
          each(here, [&](Var l) {
            store(b.load(square_, l * t_.lanes, t_.lanes), row0_ + row, lane0_ + lane + l, mask);
          });
          return std::vector<Var>{};
        };
        const Var left = row_count_ - row;
        b.branch(
            le(t_.lanes, left), [&] { return store_all({}); },
            [&] { return store_all(first_lanes(b, left, t_.lanes)); });
      });
    });
  }

  Builder b;
  const ContractSpec spec_;
  const ContractOrder order_;
  const ContractTiling t_;
  const ContractHooks& hooks_;
  ContractArguments args_;
  Operand rows_, lanes_;
  Result result_;
  Var row0_, lane0_, row_count_, lane_count_, tiles_, panels_, padded_rows_;
  Var k0_, depth_;  // of the block at hand
  kir::BufferId packed_rows_, packed_lanes_, sums_, square_;
};

}  // namespace

ContractStrides ContractStrides::dense(const ContractSpec& spec, const ContractSizes& sizes) {
  return {.a_batch = sizes.m * sizes.k,
          .a_ld = spec.a_k_inner ? sizes.k : sizes.m,
          .b_batch = sizes.n * sizes.k,
          .b_ld = spec.b_k_inner ? sizes.k : sizes.n,
          .c_batch = sizes.m * sizes.n,
          .c_ld = spec.c_n_inner ? sizes.n : sizes.m};
}

ContractTiling with_whole_parts(ContractTiling t, const ContractSizes& sizes,
                                const ContractOrder& order) {
  const std::int64_t columns = std::int64_t{t.vectors} * t.lanes;
  const std::int64_t rows = t.lanes_along_m ? sizes.n : sizes.m,
                     lanes = t.lanes_along_m ? sizes.m : sizes.n;
  t.whole_lanes = lanes % columns == 0 && t.lane_block % columns == 0;
  t.whole_rows = rows % t.rows == 0 && t.row_block % t.rows == 0;
  t.whole_steps = sizes.k % kContractUnroll == 0 && order.k_block % kContractUnroll == 0;
  return t;
}

std::string broken_rule(const ContractSpec& spec, const ContractSizes& sizes,
                        const ContractOrder& order, const ContractTiling& tiling) {
  const bool rows_k_inner = tiling.lanes_along_m ? spec.b_k_inner : spec.a_k_inner;
  const bool lanes_k_inner = tiling.lanes_along_m ? spec.a_k_inner : spec.b_k_inner;
  if (spec.dtype != DType::f32 && spec.dtype != DType::f64)
    return fmt::format("{} is not a type of computation", dtype_name(spec.dtype));
  if (order.k_block < 1 || order.slices != 1)
    return fmt::format("no kernel has k_block {} and {} slices", order.k_block, order.slices);
  if (tiling.rows < 1 || tiling.vectors < 1 || tiling.row_block < 1 || tiling.lane_block < 1)
    return "a tile or block is empty";
  if (!kir::valid_lanes(tiling.lanes) || tiling.lanes < 2)
    return fmt::format("{} lanes are no vector", tiling.lanes);
  const ContractTiling able = with_whole_parts(tiling, sizes, order);
  if ((tiling.whole_lanes && !able.whole_lanes) || (tiling.whole_rows && !able.whole_rows) ||
      (tiling.whole_steps && !able.whole_steps))
    return "a size is no multiple of what the tiling says";
  if (order.lanes > 1) return "";
  if (!tiling.pack_rows && !rows_k_inner) return "rows are broadcast in place only from [.., k]";
  if (!tiling.pack_lanes && lanes_k_inner) return "lanes are read in place only from [k, ..]";
  if (tiling.single_block && sizes.k > order.k_block)
    return fmt::format("k {} is more than one block of {}", sizes.k, order.k_block);
  if (tiling.direct && (!tiling.single_block || tiling.lanes_along_m == spec.c_n_inner))
    return "the tile cannot go straight to c";
  return "";
}

kir::Kernel build_contract(std::string name, const ContractSpec& spec, const ContractOrder& order,
                           const ContractTiling& tiling, const ContractHooks& hooks) {
  if (const std::string wrong = broken_rule(spec, {}, order, tiling); !wrong.empty())
    throw InternalError(fmt::format("contract kernel '{}': {}", name, wrong));
  if (order.lanes > 1) return build_dot(std::move(name), spec, order, tiling, hooks);
  const bool a_packed = tiling.lanes_along_m ? tiling.pack_lanes : tiling.pack_rows;
  const bool b_packed = tiling.lanes_along_m ? tiling.pack_rows : tiling.pack_lanes;
  if ((hooks.a.apply && !a_packed) || (hooks.b.apply && !b_packed))
    throw InternalError(
        fmt::format("contract kernel '{}': an operand with a prologue is read in place", name));
  return TileKernel(std::move(name), spec, order, tiling, hooks).build();
}

std::int64_t contract_items(const ContractSizes& sizes, const ContractTiling& tiling) {
  const std::int64_t rows = tiling.lanes_along_m ? sizes.n : sizes.m,
                     lanes = tiling.lanes_along_m ? sizes.m : sizes.n;
  return sizes.batch * ((rows + tiling.row_block - 1) / tiling.row_block) *
         ((lanes + tiling.lane_block - 1) / tiling.lane_block);
}

}  // namespace pantala::schedule::cpu
