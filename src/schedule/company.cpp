#include "schedule/company.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.h"

namespace pantala::schedule {

namespace {

// Of one kernel: the members, all of which are traced whenever another one asks to join; those of
// them that are no element-wise code and may take a pass each; and the values that there is code
// for.
constexpr std::size_t kMostMembers = 32;
constexpr std::size_t kMostAnchors = 8;
constexpr std::size_t kMostCode = 1024;

}  // namespace

Company::Company(const Context& context, const Pieces& pieces, std::vector<PieceId> members)
    : context_(context),
      pieces_(pieces),
      ids_(std::move(members)),
      archetype_(&context.archetypes.map()) {
  for (const PieceId id : ids_) {
    const Piece& piece = pieces[id];
    members_.push_back(&piece);
    for (std::uint32_t r = 0; r < context.node(piece.node).results.size(); ++r)
      outputs_.push_back({{piece.node, r}, kNoBuffer});
    if (!piece.is_anchor) continue;
    // One anchor a kernel; only some keep company.
    const bool fits = anchor_ == nullptr || (archetype_ == piece.archetype &&
                                             archetype_ != nullptr && archetype_->shares_kernel);
    archetype_ = fits ? piece.archetype : nullptr;
    anchor_ = &piece;
  }
}

bool Company::makes(ValueId value) const {
  const PieceId maker = pieces_.maker(value);
  return maker.valid() && std::binary_search(ids_.begin(), ids_.end(), maker);
}

bool Company::reads_inside(const Access& read) const { return makes(read.value); }

bool Company::is_identity(const Access& read, const Domain& domain) const {
  if (!read.offset_strides.empty() ||
      context_.type(read.value).shape.numel() != Shape(domain.sizes).numel())
    return false;
  return read.flat == element_number(Shape(domain.sizes));
}

bool Company::reads_members_in_place(const Piece& piece) const {
  return std::all_of(piece.reads.begin(), piece.reads.end(), [&](const Access& read) {
    return !reads_inside(read) || is_identity(read, piece.domain);
  });
}

bool Company::is_one_map() const {
  const Shape& shape = context_.node(members_[0]->node).results[0].shape;
  return std::all_of(members_.begin(), members_.end(), [&](const Piece* piece) {
    return context_.node(piece->node).results[0].shape == shape && reads_members_in_place(*piece);
  });
}

bool Company::is_small() const {
  std::size_t code = 0, anchors = 0;
  for (const Piece* piece : members_) {
    code += piece->size;
    anchors += piece->is_anchor;
  }
  return members_.size() <= kMostMembers && anchors <= kMostAnchors && code <= kMostCode &&
         repeats_little();
}

// A member that is read where only some elements need it has code of its own for that reader, and
// so has what it reads itself. A place is where such code stands: everywhere, or under the
// conditions of a chain of readers.
bool Company::repeats_little() const {
  const auto reads_under_condition = [&](const Piece* piece) {
    return std::any_of(piece->conditional.begin(), piece->conditional.end(),
                       [&](ValueId value) { return makes(value); });
  };
  if (std::none_of(members_.begin(), members_.end(), reads_under_condition)) return true;
  const std::size_t most = 2 * members_.size() + 16;
  std::map<PieceId, std::set<std::uint64_t>> places;
  std::size_t count = 0;
  for (std::size_t k = ids_.size(); k-- > 0;) {
    std::set<std::uint64_t>& here = places[ids_[k]];
    here.insert(0);
    if ((count += here.size()) > most) return false;
    const Piece& piece = *members_[k];
    for (const Access& read : piece.reads)
      if (makes(read.value)) places[pieces_.maker(read.value)].insert(here.begin(), here.end());
    for (std::size_t c = 0; c < piece.conditional.size(); ++c)
      if (makes(piece.conditional[c]))
        for (const std::uint64_t place : here)
          places[pieces_.maker(piece.conditional[c])].insert(
              hash_combine(hash_combine(place, ids_[k].index()), c));
  }
  return true;
}

bool Company::is_epilogue() const {
  return std::all_of(members_.begin(), members_.end(), [&](const Piece* piece) {
    // The anchor itself reads whole operands.
    if (piece == anchor_)
      return std::none_of(piece->reads.begin(), piece->reads.end(),
                          [&](const Access& read) { return reads_inside(read); });
    // The kernel keeps its sums in the memory of one of the results: all have the sums' type.
    return context_.node(piece->node).results[0] == context_.node(anchor_->node).results[0] &&
           reads_members_in_place(*piece);
  });
}

}  // namespace pantala::schedule
