#include "schedule/company.h"

#include <algorithm>

namespace pantala::schedule {

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

bool Company::reads_inside(const Access& read) const {
  const PieceId maker = pieces_.maker(read.value);
  return maker.valid() && std::find(ids_.begin(), ids_.end(), maker) != ids_.end();
}

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
