// How an attention is cut, and the face of its kernels: checks, parameters, items.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "pantala/error.h"
#include "schedule/cpu/attention/kernels.h"
#include "schedule/cpu/attention/parts.h"

namespace pantala::schedule::cpu {

namespace {

// Positions are counted in 32 bits where they are compared in lanes.
constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::string_view part_name(AttentionPart part) {
  constexpr std::string_view kNames[] = {"forward", "row_dots", "query_grad", "key_grad",
                                         "all_grads"};
  return kNames[static_cast<std::size_t>(part)];
}

bool lanes_are_keys(AttentionPart part) {
  return part == AttentionPart::key_grad || part == AttentionPart::all_grads;
}
std::int64_t lane_positions(AttentionPart part, const AttentionSizes& sizes) {
  return lanes_are_keys(part) ? sizes.keys : sizes.queries;
}

// Room for head_dim in eighths of powers of two, so that neighbours are the same code.
std::int64_t head_dim_room(std::int64_t head_dim) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(head_dim)));
  const std::int64_t step = std::max<std::int64_t>(power / 8, 1);
  return ceil_div(head_dim, step) * step;
}

// The tile along head_dim that wastes least; whole tiles need no clamped positions.
void choose_dims(AttentionTiling& t, std::int64_t head_dim, int most) {
  double least = INFINITY;
  for (int dims = 1; dims <= most; ++dims) {
    const bool whole = head_dim % dims == 0;
    // Few sums do not hide the latency of an fma.
    const double step = std::max(dims, 5) + (whole ? 0.0 : 0.5);
    const double cost = static_cast<double>(ceil_div(head_dim, dims)) * (step + 0.3);
    if (cost < least) least = cost, t.dims = dims, t.whole_dims = whole;
  }
}

std::string broken_tiling(AttentionPart part, const AttentionSpec& spec, const AttentionTiling& t) {
  if (spec.dtype != DType::f32 && spec.dtype != DType::f64)
    return fmt::format("{} is not a type of computation", dtype_name(spec.dtype));
  if (spec.windowed && !spec.causal) return "a window needs causal";
  if (part != AttentionPart::forward && spec.length != AttentionLength::keys)
    return "only forward counts its keys at run time";
  if (!kir::valid_lanes(t.lanes) || t.lanes < 2)
    return fmt::format("{} lanes are no vector", t.lanes);
  if (t.block < 1) return "an item has no positions";
  if (part == AttentionPart::row_dots) return "";
  if (t.vectors < 1 || t.rows < 1 || t.dims < 1 || t.head_dim < 1) return "a tile is empty";
  if (t.block % t.columns() != 0)
    return fmt::format("a block of {} is no multiple of a panel of {}", t.block, t.columns());
  return "";
}

}  // namespace

std::string broken_rule(AttentionPart part, const AttentionSpec& spec, const AttentionSizes& sizes,
                        const AttentionTiling& tiling) {
  if (std::string wrong = broken_tiling(part, spec, tiling); !wrong.empty()) return wrong;
  if (sizes.key_heads < 1 || sizes.heads % sizes.key_heads != 0)
    return fmt::format("{} heads do not share {} heads of keys", sizes.heads, sizes.key_heads);
  if (sizes.head_dim < 1) return "head_dim is 0";
  if (std::max(sizes.queries, sizes.keys) > kMostPositions)
    return fmt::format("{} queries and {} keys are more than {}", sizes.queries, sizes.keys,
                       kMostPositions);
  if (part == AttentionPart::row_dots) return "";
  if (sizes.head_dim > tiling.head_dim)
    return fmt::format("head_dim {} has no room in {}", sizes.head_dim, tiling.head_dim);
  if (tiling.whole_dims && sizes.head_dim % tiling.dims != 0)
    return fmt::format("head_dim {} is no multiple of {}", sizes.head_dim, tiling.dims);
  return "";
}

// Of whole heads the slowest worker may have one more than the others; 5 products instead of 7 must
// make up for it.
std::vector<AttentionPart> choose_grad_parts(const AttentionSizes& sizes, int workers) {
  const std::int64_t heads = sizes.batch * sizes.key_heads;
  if (5 * ceil_div(heads, workers) * workers <= 7 * heads)
    return {AttentionPart::row_dots, AttentionPart::all_grads};
  return {AttentionPart::row_dots, AttentionPart::query_grad, AttentionPart::key_grad};
}

AttentionTiling choose_tiling(AttentionPart part, const AttentionSpec& spec,
                              const AttentionSizes& sizes, const Target& target, int workers) {
  AttentionTiling t;
  t.lanes = target.lanes(spec.dtype);
  const std::int64_t positions = std::max<std::int64_t>(lane_positions(part, sizes), 1);
  const std::int64_t heads = sizes.batch * (lanes_are_keys(part) ? sizes.key_heads : sizes.heads);
  if (part == AttentionPart::row_dots) {
    t.block = std::clamp<std::int64_t>(positions, 1, 256);
    return t;
  }
  // Few positions (a step of generation) would leave most lanes of wide panels idle.
  while (t.lanes > 2 && positions <= t.lanes / 2) t.lanes /= 2;
  t.vectors = positions <= t.lanes ? 1 : 2;
  const int most = (target.vector_registers - 4) / 2;
  t.rows = std::min(most, 12);
  t.head_dim = head_dim_room(sizes.head_dim);
  choose_dims(t, sizes.head_dim, most);
  // Panels of an item share the rows while they are near; but every worker wants several items.
  const std::int64_t panels = ceil_div(positions, t.columns());
  const std::int64_t share = part == AttentionPart::all_grads
                                 ? panels
                                 : ceil_div(panels * std::max<std::int64_t>(heads, 1), 4 * workers);
  t.block = std::clamp<std::int64_t>(share, 1, std::min<std::int64_t>(panels, 4)) * t.columns();
  // Rows of several heads lie far apart, and share few sets of the first cache; for a single panel
  // a copy would cost more than it spares.
  t.copy_rows = part == AttentionPart::forward && t.block > t.columns();
  return t;
}

kir::Kernel build_attention(std::string name, AttentionPart part, const AttentionSpec& spec,
                            const AttentionTiling& tiling) {
  if (const std::string wrong = broken_tiling(part, spec, tiling); !wrong.empty())
    throw InternalError(
        fmt::format("attention kernel '{}' ({}): {}", name, part_name(part), wrong));
  switch (part) {
    case AttentionPart::forward:
      return build_attention_forward(std::move(name), spec, tiling);
    case AttentionPart::row_dots:
      return build_attention_row_dots(std::move(name), spec, tiling);
    case AttentionPart::query_grad:
    case AttentionPart::key_grad:
    case AttentionPart::all_grads:
      break;
  }
  return build_attention_grad(std::move(name), part, spec, tiling);
}

std::vector<std::int64_t> attention_params(AttentionPart part, const AttentionSpec& spec,
                                           const AttentionSizes& sizes,
                                           const AttentionStrides& strides, std::int64_t window,
                                           const AttentionTiling& tiling) {
  std::string wrong = broken_rule(part, spec, sizes, tiling);
  if (wrong.empty() && spec.windowed && window < 1) wrong = fmt::format("a window of {}", window);
  if (!wrong.empty())
    throw InternalError(fmt::format("attention kernel ({}): {}", part_name(part), wrong));
  return schedule::attention_params(part, spec, sizes, strides, window, tiling.block);
}

std::int64_t attention_items(AttentionPart part, const AttentionSizes& sizes,
                             const AttentionTiling& tiling) {
  const std::int64_t heads = lanes_are_keys(part) ? sizes.key_heads : sizes.heads;
  if (part == AttentionPart::all_grads) return sizes.batch * heads;
  return sizes.batch * heads * ceil_div(lane_positions(part, sizes), tiling.block);
}

}  // namespace pantala::schedule::cpu
