// Fusion: pieces join the groups of what they read, where one kernel can compute both and no cycle
// between groups arises.
#include "schedule/groups.h"

#include <algorithm>

#include "schedule/cpu/product.h"
#include "schedule/cpu/reduce_parts.h"
#include "schedule/pieces.h"
#include "schedule/storage.h"

namespace pantala::schedule {

namespace {

class Fusion {
 public:
  Fusion(const Context& context, const Pieces& pieces) : c_(context), pieces_(pieces) {
    for (std::size_t k = 0; k < pieces.list.size(); ++k) {
      members_.push_back({static_cast<int>(k)});
      group_of_.push_back(static_cast<int>(k));
    }
    readers_.resize(pieces.list.size());
    for (std::size_t k = 0; k < pieces.list.size(); ++k)
      for (const Access& read : pieces.list[k].reads)
        if (const int maker = pieces.of_node[read.value.node]; maker >= 0)
          readers_[static_cast<std::size_t>(maker)].push_back(static_cast<int>(k));
  }

  std::vector<std::vector<int>> run() {
    if (c_.options.fuse)
      for (std::size_t k = 0; k < pieces_.list.size(); ++k) join(static_cast<int>(k));
    std::vector<std::vector<int>> groups;
    for (std::vector<int>& list : members_)
      if (!list.empty()) groups.push_back(std::move(list));
    return groups;
  }

 private:
  const Piece& piece(int k) const { return pieces_.list[static_cast<std::size_t>(k)]; }
  int group_of(int k) const { return group_of_[static_cast<std::size_t>(k)]; }
  const std::vector<int>& members(int group) const {
    return members_[static_cast<std::size_t>(group)];
  }
  // The group's first piece that is not element by element, or its first.
  const Piece& head(int group) const {
    for (const int k : members(group))
      if (piece(k).kind != Archetype::elemental) return piece(k);
    return piece(members(group)[0]);
  }

  // Joins a piece with the groups that it reads, the ones with anchors first.
  void join(int k) {
    std::vector<int> candidates;
    for (const Access& read : piece(k).reads)
      if (const int maker = pieces_.of_node[read.value.node]; maker >= 0)
        candidates.push_back(group_of(maker));
    // Reductions over the same elements share a pass.
    if (piece(k).kind == Archetype::reduce)
      for (int other = 0; other < k; ++other)
        if (piece(other).kind == Archetype::reduce && share_a_read(piece(k), piece(other)))
          candidates.push_back(group_of(other));
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) {
      return (head(a).kind != Archetype::elemental) > (head(b).kind != Archetype::elemental);
    });
    for (const int candidate : candidates) {
      const int mine = group_of(k);
      if (candidate == mine || members(candidate).empty()) continue;
      if (can_share_kernel(candidate, mine) && !makes_cycle(candidate, mine))
        merge(candidate, mine);
    }
  }

  static bool share_a_read(const Piece& a, const Piece& b) {
    return std::any_of(a.reads.begin(), a.reads.end(), [&](const Access& x) {
      return std::any_of(b.reads.begin(), b.reads.end(),
                         [&](const Access& y) { return x.value == y.value; });
    });
  }

  void merge(int into, int from) {
    std::vector<int>& list = members_[static_cast<std::size_t>(into)];
    for (const int k : members_[static_cast<std::size_t>(from)]) {
      list.push_back(k);
      group_of_[static_cast<std::size_t>(k)] = into;
    }
    std::sort(list.begin(), list.end());
    members_[static_cast<std::size_t>(from)].clear();
  }

  // Whether a path leads from one group to the other through a third.
  bool makes_cycle(int a, int b) const {
    return reaches_through_others(a, b) || reaches_through_others(b, a);
  }
  bool reaches_through_others(int from, int to) const {
    std::vector<bool> seen(members_.size());
    std::vector<int> work;
    const auto visit_readers = [&](int group, bool first) {
      for (const int member : members(group))
        for (const int k : readers_[static_cast<std::size_t>(member)]) {
          const int reader = group_of(k);
          if (seen[static_cast<std::size_t>(reader)] || reader == group) continue;
          if (first && reader == to) continue;
          seen[static_cast<std::size_t>(reader)] = true;
          work.push_back(reader);
        }
    };
    visit_readers(from, true);
    while (!work.empty()) {
      const int group = work.back();
      work.pop_back();
      if (group == to) return true;
      if (group != from) visit_readers(group, false);
    }
    return false;
  }

  bool can_share_kernel(int a, int b) const {
    std::vector<int> all = members(a);
    all.insert(all.end(), members(b).begin(), members(b).end());
    std::sort(all.begin(), all.end());
    const Piece* anchor = nullptr;
    for (const int k : all) {
      const Piece& p = piece(k);
      if (p.kind == Archetype::elemental) continue;
      // A kernel has one anchor; only reductions may stand together.
      if (anchor != nullptr && !(anchor->kind == Archetype::reduce && p.kind == Archetype::reduce))
        return false;
      anchor = &p;
    }
    if (anchor == nullptr) return fits_map(all);
    switch (anchor->kind) {
      case Archetype::reduce:
        return fits_reduce(all, *anchor);
      case Archetype::contract:
        return fits_result(all, *anchor) && fits_product(all, *anchor);
      case Archetype::convolution:
        return fits_result(all, *anchor);
      default:
        return false;
    }
  }

  std::vector<GroupOutput> outputs_of(const std::vector<int>& all) const {
    std::vector<GroupOutput> outputs;
    for (const int k : all)
      for (std::uint32_t r = 0; r < c_.node(piece(k).node).results.size(); ++r)
        outputs.push_back({{piece(k).node, r}, kNoBuffer});
    return outputs;
  }

  // Whether a value is read at the very element that is computed: of as many elements, the one with
  // the same number.
  bool is_identity(const Access& read, const Domain& domain) const {
    if (!read.offset_strides.empty() ||
        c_.type(read.value).shape.numel() != Shape(domain.sizes).numel())
      return false;
    Indices at = loop_indices(domain.rank());
    Affine flat = flatten(at, Shape(domain.sizes).strides()).affine;
    for (std::size_t d = 0; d < domain.sizes.size(); ++d)
      if (domain.sizes[d] == 1) flat.coef[d] = 0;
    return read.flat == flat;
  }
  bool reads_inside(const std::vector<int>& all, const Access& read) const {
    const int maker = pieces_.of_node[read.value.node];
    return maker >= 0 && std::find(all.begin(), all.end(), maker) != all.end();
  }

  bool fits_map(const std::vector<int>& all) const {
    for (const int k : all) {
      if (c_.node(piece(k).node).results[0].shape != c_.node(piece(all[0]).node).results[0].shape)
        return false;
      for (const Access& read : piece(k).reads)
        if (reads_inside(all, read) && !is_identity(read, piece(k).domain)) return false;
    }
    return true;
  }

  // Whether all others are computed from the anchor's result, element by element.
  bool fits_result(const std::vector<int>& all, const Piece& anchor) const {
    for (const int k : all) {
      if (piece(k).node == anchor.node) {
        // The anchor itself reads whole operands.
        for (const Access& read : piece(k).reads)
          if (reads_inside(all, read)) return false;
        continue;
      }
      // The kernel keeps its sums in the memory of one of the results: all have the sums' type.
      if (c_.node(piece(k).node).results[0] != c_.node(anchor.node).results[0]) return false;
      for (const Access& read : piece(k).reads)
        if (reads_inside(all, read) && !is_identity(read, piece(k).domain)) return false;
    }
    return true;
  }

  bool fits_product(const std::vector<int>& all, const Piece& anchor) const {
    const MakingScope making(c_, outputs_of(all));
    return fits_epilogue(c_, anchor.node, outputs_of(all));
  }

  bool fits_reduce(const std::vector<int>& all, const Piece& anchor) const {
    ReduceGroup group = reduce_group(c_, anchor.node);
    group.reductions.clear();
    bool passes = false;  // more than one pass over the rows
    for (const int k : all) {
      const Piece& p = piece(k);
      const ir::Node& n = c_.node(p.node);
      const bool reduces = p.kind == Archetype::reduce;
      if (reduces) {
        const ReduceGroup other = reduce_group(c_, p.node);
        if (!(other.full == group.full) || other.axes != group.axes) return false;
        group.reductions.push_back({p.node, 0});
      }
      const bool per_row = !reduces && is_row_shape(group, n.results[0].shape);
      if (!reduces && !per_row && !(n.results[0].shape == group.full)) return false;
      passes = passes || (!reduces && !per_row);
      for (const Access& read : p.reads) {
        if (!reads_inside(all, read)) continue;
        const Shape& read_shape = c_.type(read.value).shape;
        const bool row_value = is_row_shape(group, read_shape);
        if (per_row || !row_value) {
          if (!is_identity(read, p.domain)) return false;
        } else if (!is_row_read(group, read, read_shape)) {
          return false;
        }
        passes = passes || reduces;
      }
    }
    if (!passes) return true;
    const std::int64_t count = reduced_elements(group),
                       rows = group.full.numel() / std::max<std::int64_t>(count, 1);
    if (rows < 8 && group.full.numel() > 16384) return false;
    group.outputs = outputs_of(all);
    const MakingScope making(c_, group.outputs);
    return runs_by_rows(c_, group);
  }
  static std::int64_t reduced_elements(const ReduceGroup& group) {
    std::int64_t count = 1;
    for (const std::int64_t axis : group.axes) count *= group.full[static_cast<int>(axis)];
    return count;
  }
  // Whether a value with one element per row is read at the row of the element that is computed.
  static bool is_row_read(const ReduceGroup& group, const Access& read, const Shape& shape) {
    if (!read.offset_strides.empty()) return false;
    Affine flat = flatten(row_indices(group, shape), shape.strides()).affine;
    for (int d = 0; d < group.full.rank(); ++d)
      if (group.full[d] == 1) flat.coef[static_cast<std::size_t>(d)] = 0;
    return read.flat == flat;
  }

  const Context& c_;
  const Pieces& pieces_;
  std::vector<std::vector<int>> members_;  // of groups; empty: merged into another
  std::vector<int> group_of_;
  std::vector<std::vector<int>> readers_;  // of pieces: pieces, one entry a read
};

}  // namespace

std::vector<Group> make_groups(Context& context) {
  const Pieces pieces = find_pieces(context);
  context.plan_to_store(&pieces.stored);
  const std::vector<std::vector<int>> members = Fusion(context, pieces).run();
  context.plan_to_store(nullptr);
  return assign_storage(context, pieces, members);
}

}  // namespace pantala::schedule
