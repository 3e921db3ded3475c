// A company: pieces that might share a kernel, as the archetype of their anchor sees them when it
// is asked whether it can compute them all.
#pragma once

#include <vector>

#include "schedule/pieces.h"

namespace pantala::schedule {

class Company {
 public:
  // `members` in the order of the graph.
  Company(const Context& context, const Pieces& pieces, std::vector<PieceId> members);

  const Context& context() const { return context_; }
  const std::vector<const Piece*>& members() const { return members_; }
  // The last member that is not computed element by element; nullptr: all are.
  const Piece* anchor() const { return anchor_; }
  // The archetype of the kernel; nullptr: anchors meet that cannot share one.
  const Archetype* archetype() const { return archetype_; }
  // All that its members make, with no place yet.
  const std::vector<GroupOutput>& outputs() const { return outputs_; }

  // Whether a member makes the value.
  bool makes(ValueId value) const;
  // Whether a read is of something that a member makes.
  bool reads_inside(const Access& read) const;
  // Whether a value is read at the very element that is computed: of as many elements, the one with
  // the same number.
  bool is_identity(const Access& read, const Domain& domain) const;

  // Whether all results have one shape, and members read each other element by element.
  bool is_one_map() const;
  // Whether all others are computed from the anchor's result, element by element.
  bool is_epilogue() const;
  // Whether one kernel for all would be of a size that is reasonable, whoever computes it.
  bool is_small() const;

 private:
  bool reads_members_in_place(const Piece& piece) const;
  bool repeats_little() const;

  const Context& context_;
  const Pieces& pieces_;
  std::vector<PieceId> ids_;
  std::vector<const Piece*> members_;
  std::vector<GroupOutput> outputs_;
  const Piece* anchor_ = nullptr;
  const Archetype* archetype_ = nullptr;
};

}  // namespace pantala::schedule
