#include "schedule/gpu/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

constexpr std::int64_t kShortSlice = 128;  // of k: shorter is not worth another kernel
// Of k: what no thread has alone, since devices lose patience, and sums digits.
constexpr std::int64_t kLongSlice = 1 << 16;
constexpr int kCombineThreads = 64;

std::int64_t tiles_of(const ProductSizes& sizes, const TileShape& tile) {
  return sizes.batch * ceil_div(sizes.m, tile.m) * ceil_div(sizes.n, tile.n);
}

// The outputs, given the sum of an element.
class Finisher {
 public:
  Finisher(kir::Builder& b, const Context& context, const Product& product, Arguments& arguments)
      : b_(b), product_(product), emitter_(b, context, product.body, arguments) {}

  void run(Var batch, Var m, Var n, Var sum) {
    const Site site = product_.site(b_, batch, m, n);
    Emitter& emitter = emitter_.emitter();
    emitter.forget_provided();
    emitter.provide({product_.node, 0}, product_.body.at, sum);
    emitter_.run(site);
  }

 private:
  kir::Builder& b_;
  const Product& product_;
  BodyEmitter emitter_;
};

// The tile of an item.
struct Place {
  Var batch, slice, first_m, first_n;
};
Place place_of(kir::Builder& b, const ProductTiling& tiling, Var m, Var n, Var slices) {
  const auto tiles = [](Var size, int tile) { return over(size + (tile - 1), tile); };
  const Var across = tiles(n, tiling.tile.n), down = tiles(m, tiling.tile.m);
  const Var rest = b.item() / across, first_n = (b.item() - rest * across) * tiling.tile.n;
  const Var outer = rest / down, first_m = (rest - outer * down) * tiling.tile.m;
  if (tiling.slices == 1) return {outer, b.i64(0), first_m, first_n};
  const Var batch = outer / slices;
  return {batch, outer - batch * slices, first_m, first_n};
}

// All tiles of all slices. One slice alone is finished here, several go to `partials`.
KernelDraft build_tiles(Building& building, const Product& product, const ProductTiling& tiling,
                        std::uint32_t partials) {
  const Context& context = building.context();
  const bool is_whole = tiling.slices == 1;
  Arguments arguments = building.arguments();
  product.announce(arguments);
  if (is_whole)
    announce(context, product.body, arguments);
  else
    arguments.will_write(partials, product.dtype);
  kir::Builder b("product", tiling.tile.threads());
  arguments.declare_buffers(b);
  const ProductSizes& sizes = product.sizes;
  const Var m = arguments.integer(b, "m", sizes.m), n = arguments.integer(b, "n", sizes.n),
            k = arguments.integer(b, "k", sizes.k),
            slices = arguments.integer(b, "slices", tiling.slices),
            slice = arguments.integer(b, "slice", tiling.slice),
            batches = arguments.integer(b, "batches", sizes.batch);
  product.declare(b, arguments);
  std::optional<Finisher> finisher;
  if (is_whole) {
    product.declare_site(b, arguments);
    finisher.emplace(b, context, product, arguments);
  }
  TileProduct tiles(b, product.dtype, tiling.tile);
  const Place at = place_of(b, tiling, m, n, slices);
  const Var begin = at.slice * slice, end = is_whole ? k : min(begin + slice, k);
  tiles.run({at.first_m, m, at.first_n, n, begin, end}, product.a(at.batch), product.b(at.batch),
            product.n_inner, [&](Var row, Var column, Var sum) {
              if (is_whole) return finisher->run(at.batch, row, column, sum);
              const Var matrix = at.slice * batches + at.batch;
              b.store(arguments.id(partials), (matrix * m + row) * n + column, sum);
            });
  KernelDraft draft;
  draft.name = product.name;
  draft.flops = sizes.flops();
  draft.set.items = product_items(sizes, tiling);
  return finished(std::move(draft), b, arguments);
}

// A thread per element adds its slices up and makes the outputs.
KernelDraft build_combine(Building& building, const Product& product, const ProductTiling& tiling,
                          std::uint32_t partials) {
  const Context& context = building.context();
  const int threads = std::min(kCombineThreads, context.target.group_threads);
  Arguments arguments = building.arguments();
  arguments.will_read(partials, product.dtype);
  announce(context, product.body, arguments);
  kir::Builder b("combine", threads);
  arguments.declare_buffers(b);
  const ProductSizes& sizes = product.sizes;
  const std::int64_t count = sizes.batch * sizes.m * sizes.n;
  const Var m = arguments.integer(b, "m", sizes.m), n = arguments.integer(b, "n", sizes.n),
            slices = arguments.integer(b, "slices", tiling.slices),
            elements = arguments.integer(b, "elements", count);
  product.declare_site(b, arguments);
  Finisher finisher(b, context, product, arguments);
  const Var number = b.item() * threads + b.thread();
  b.branch(lt(number, elements), [&] {
    const Var fast_size = product.n_inner ? n : m, slow_size = product.n_inner ? m : n;
    const Var rest = number / fast_size, fast = number - rest * fast_size;
    const Var batch = rest / slow_size, slow = rest - batch * slow_size;
    const Var row = product.n_inner ? slow : fast, column = product.n_inner ? fast : slow;
    const Var at = (batch * m + row) * n + column;
    const Var zero = b.constant({product.dtype, 1}, 0.0);
    const Var sum =
        b.loop(b.i64(0), slices, b.i64(1), {zero}, [&](Var slice, std::span<const Var> before) {
          return std::vector{before[0] + b.load(arguments.id(partials), slice * elements + at)};
        })[0];
    finisher.run(batch, row, column, sum);
  });
  KernelDraft draft;
  draft.name = product.name + ".combine";
  draft.set.items = ceil_div(count, threads);
  return finished(std::move(draft), b, arguments);
}

}  // namespace

ProductTiling choose_tiling(const ProductSizes& sizes, const Target& target) {
  ProductTiling tiling{
      choose_tile(sizes.m, sizes.n, sizes.batch * ceil_div(sizes.k, kShortSlice), target), 1,
      std::max<std::int64_t>(sizes.k, 1)};
  const std::int64_t tiles = std::max<std::int64_t>(tiles_of(sizes, tiling.tile), 1);
  const std::int64_t enough_groups = target.is_software() ? 2 : 32;  // less leave a device idle
  const std::int64_t slices =
      std::max(std::min(ceil_div(enough_groups, tiles), sizes.k / kShortSlice),
               ceil_div(sizes.k, kLongSlice));
  if (slices < 2) {
    tiling.tile = choose_tile(sizes.m, sizes.n, sizes.batch, target);
    return tiling;
  }
  tiling.slice = ceil_div(ceil_div(sizes.k, slices), tiling.tile.k) * tiling.tile.k;
  tiling.slices = ceil_div(sizes.k, tiling.slice);
  return tiling;
}

std::int64_t product_items(const ProductSizes& sizes, const ProductTiling& tiling) {
  return tiles_of(sizes, tiling.tile) * tiling.slices;
}

std::vector<KernelDraft> build_product(Building& building, const Product& product) {
  const ProductTiling tiling = choose_tiling(product.sizes, building.context().target);
  if (tiling.slices == 1) return {build_tiles(building, product, tiling, kNoBuffer)};
  const ProductSizes& sizes = product.sizes;
  const std::uint32_t partials =
      building.add_scratch_tensor(fmt::format("partial.{}", product.node), product.dtype,
                                  {tiling.slices, sizes.batch, sizes.m, sizes.n});
  return {build_tiles(building, product, tiling, partials),
          build_combine(building, product, tiling, partials)};
}

std::vector<Effort> efforts_of_product(const ProductSizes& sizes, const EffortSite& at,
                                       double per_product, double finish) {
  const ProductTiling tiling = choose_tiling(sizes, at.context.target);
  const double items = static_cast<double>(product_items(sizes, tiling));
  // Whole tiles are computed, whatever lies beyond the end.
  const double products =
      items * tiling.tile.m * tiling.tile.n * static_cast<double>(std::min(tiling.slice, sizes.k));
  Effort effort{.cycles = products * per_product * at.table.vector_op, .items = items};
  if (tiling.slices == 1) {
    effort.cycles += finish;
    return {effort};
  }
  const double results = static_cast<double>(sizes.batch * sizes.m * sizes.n);
  return {effort,
          {.cycles = finish + results * static_cast<double>(tiling.slices) * at.table.vector_access,
           .items = results / kCombineThreads}};
}

}  // namespace pantala::schedule::gpu
