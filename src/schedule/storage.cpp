#include "schedule/storage.h"

#include <algorithm>
#include <map>
#include <queue>

#include "pantala/error.h"
#include "schedule/layout.h"

namespace pantala::schedule {

namespace {

// A group whose outputs are still being collected.
struct Draft {
  Group group;
  std::vector<Access> reads = {};  // of what other groups and leaves hold
  std::set<Id<Draft>> after = {};  // groups that must run before it
  std::vector<PieceId> pieces = {};
};
using DraftId = Id<Draft>;

class Assignment {
 public:
  Assignment(Context& context, const Pieces& pieces, const Members& members)
      : c_(context),
        pieces_(pieces),
        layouts_(context, pieces, members),
        group_of_(pieces.list.size()) {
    for (const std::vector<PieceId>& list : members) add_group(list);
    for (const DraftId g : groups_.ids())
      for (const Access& read : groups_[g].reads) add_read(g, read.value);
  }

  std::vector<Group> run() {
    add_outputs();
    add_updates();
    add_temporaries();
    std::vector<Group> ordered;
    for (const DraftId g : order())
      if (!groups_[g].group.outputs.empty()) ordered.push_back(std::move(groups_[g].group));
    return ordered;
  }

 private:
  void add_group(const std::vector<PieceId>& list) {
    Draft draft{{.archetype = &c_.archetypes.map()}};
    for (const PieceId id : list) {
      const Piece& piece = pieces_[id];
      if (piece.is_anchor) {
        draft.group.archetype = piece.archetype;
        draft.group.anchors.push_back(piece.node);
      }
      draft.reads.insert(draft.reads.end(), piece.reads.begin(), piece.reads.end());
    }
    draft.pieces = list;
    const DraftId id = groups_.push_back(std::move(draft));
    for (const PieceId piece : list) group_of_[piece] = id;
  }

  // The group that computes a value; none: a leaf, a constant, a number of the host.
  DraftId maker(ValueId value) const {
    const PieceId piece = pieces_.maker(value);
    return piece.valid() ? group_of_[piece] : DraftId();
  }

  void add_read(DraftId g, ValueId value) {
    readers_[value].insert(g);
    if (const DraftId made = maker(value); made.valid() && made != g) groups_[g].after.insert(made);
  }

  // A group that stores a value which stands already.
  DraftId add_copy(ValueId value, std::uint32_t buffer) {
    const DraftId id = groups_.push_back(
        {{.archetype = &c_.archetypes.map(), .outputs = {{value, buffer}}, .is_copy = true}});
    add_read(id, value);
    return id;
  }

  void add_outputs() {
    for (const auto& [name, value] : c_.graph().outputs()) {
      if (c_.is_host(value)) continue;
      ProgramBuffer buffer;
      buffer.name = name;
      buffer.dtype = c_.type(value).dtype;
      buffer.shape = c_.type(value).shape;
      buffer.role = Role::output;
      const std::uint32_t id = c_.add_buffer(std::move(buffer));
      const DraftId made = maker(value);
      if (!made.valid() || (stores_once(made) && place_.contains(value))) {
        add_copy(value, id);
        continue;
      }
      groups_[made].group.outputs.push_back({value, id});
      place_.emplace(value, id);
    }
  }

  bool stores_once(DraftId g) const { return groups_[g].group.archetype->stores_once; }

  bool reaches(DraftId from, DraftId to) const {
    IdVector<DraftId, char> seen(groups_.size());
    std::vector<DraftId> work{to};
    while (!work.empty()) {
      const DraftId g = work.back();
      work.pop_back();
      if (g == from) return true;
      for (const DraftId before : groups_[g].after)
        if (!seen[before]) {
          seen[before] = true;
          work.push_back(before);
        }
    }
    return false;
  }

  // Whether the group reads the leaf only at the element for which it writes the new value.
  bool reads_in_place(DraftId g, ValueId leaf, ValueId value) const {
    const Shape& shape = c_.type(value).shape;
    for (const PieceId id : groups_[g].pieces) {
      const Piece& piece = pieces_[id];
      for (const Access& read : piece.reads) {
        if (read.value != leaf) continue;
        if (piece.is_anchor || piece.domain.sizes != shape.vec() || !read.offset_strides.empty() ||
            read.flat != element_number(shape))
          return false;
      }
    }
    return true;
  }

  // Writes to the leaf's buffer must come after all reads of its old value.
  bool wait_for_readers(DraftId g, ValueId leaf) {
    const std::set<DraftId> readers = readers_[leaf];
    for (const DraftId reader : readers)
      if (reader != g && reaches(g, reader)) return false;
    for (const DraftId reader : readers)
      if (reader != g) groups_[g].after.insert(reader);
    return true;
  }

  // Several passes over a row may read the old value after the new one was stored.
  bool makes_in_one_pass(DraftId g, ValueId value) const {
    const Group& group = groups_[g].group;
    return group.archetype->makes_in_one_pass == nullptr ||
           group.archetype->makes_in_one_pass(c_, group, value);
  }

  void add_updates() {
    for (const auto& [leaf_node, value] : c_.graph().updates()) {
      c_.check();
      const ValueId leaf{leaf_node, 0};
      if (c_.is_host(leaf)) continue;
      const std::uint32_t buffer = c_.buffer_of(leaf);
      const DraftId made = maker(value);
      if (made.valid() && !(stores_once(made) && place_.contains(value)) &&
          !in_place_.contains(value) && reads_in_place(made, leaf, value) &&
          makes_in_one_pass(made, value) && wait_for_readers(made, leaf)) {
        groups_[made].group.outputs.push_back({value, buffer});
        place_.insert_or_assign(value, buffer);
        in_place_.insert(value);
        continue;
      }
      const DraftId copy = add_copy(value, buffer);
      if (!wait_for_readers(copy, leaf))
        throw InternalError("schedule: an update waits for itself");
    }
  }

  // Whatever other groups read and nothing has given a place yet.
  void add_temporaries() {
    for (const Piece& piece : pieces_.list) {
      for (std::uint32_t r = 0; r < c_.node(piece.node).results.size(); ++r) {
        const ValueId value{piece.node, r};
        const DraftId made = maker(value);
        const std::set<DraftId>& readers = readers_[value];
        const bool read_elsewhere =
            std::any_of(readers.begin(), readers.end(), [&](DraftId g) { return g != made; });
        if (read_elsewhere && !place_.contains(value)) {
          const std::uint32_t buffer = c_.add_temporary(value, layouts_.order_of(value));
          groups_[made].group.outputs.push_back({value, buffer});
          place_.emplace(value, buffer);
        }
      }
    }
    for (const auto& [value, buffer] : place_) c_.store(value, buffer);
  }

  // Kahn's algorithm; of several groups that could run, the first.
  std::vector<DraftId> order() const {
    IdVector<DraftId, std::size_t> waits(groups_.size());
    IdVector<DraftId, std::vector<DraftId>> next(groups_.size());
    std::priority_queue<DraftId, std::vector<DraftId>, std::greater<>> ready;
    for (const DraftId g : groups_.ids()) {
      waits[g] = groups_[g].after.size();
      for (const DraftId before : groups_[g].after) next[before].push_back(g);
      if (waits[g] == 0) ready.push(g);
    }
    std::vector<DraftId> sorted;
    while (!ready.empty()) {
      const DraftId g = ready.top();
      ready.pop();
      sorted.push_back(g);
      for (const DraftId reader : next[g])
        if (--waits[reader] == 0) ready.push(reader);
    }
    if (sorted.size() != groups_.size())
      throw InternalError("schedule: groups wait for each other");
    return sorted;
  }

  Context& c_;
  const Pieces& pieces_;
  Layouts layouts_;
  IdVector<DraftId, Draft> groups_;
  IdVector<PieceId, DraftId> group_of_;
  std::map<ValueId, std::set<DraftId>> readers_;
  std::map<ValueId, std::uint32_t> place_;
  std::set<ValueId> in_place_;
};

}  // namespace

std::vector<Group> assign_storage(Context& context, const Pieces& pieces, const Members& members) {
  return Assignment(context, pieces, members).run();
}

}  // namespace pantala::schedule
