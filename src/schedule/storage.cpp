#include "schedule/storage.h"

#include <algorithm>
#include <map>
#include <queue>

#include "pantala/error.h"
#include "schedule/layout.h"

namespace pantala::schedule {

namespace {

class Assignment {
 public:
  Assignment(Context& context, const Pieces& pieces, const std::vector<std::vector<int>>& members)
      : c_(context), pieces_(pieces), layouts_(context, pieces, members) {
    group_of_.assign(pieces.list.size(), -1);
    for (const std::vector<int>& list : members) add_group(list);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Access& read : groups_[g].reads) add_read(static_cast<int>(g), read.value);
  }

  std::vector<Group> run() {
    add_outputs();
    add_updates();
    add_temporaries();
    std::vector<Group> ordered;
    for (const int g : order()) {
      if (!groups_[static_cast<std::size_t>(g)].group.outputs.empty())
        ordered.push_back(std::move(groups_[static_cast<std::size_t>(g)].group));
    }
    return ordered;
  }

 private:
  struct Draft {
    Group group;
    std::vector<Access> reads;  // of what other groups and leaves hold
    std::set<int> after;        // groups that must run before it
  };

  Draft& draft(int g) { return groups_[static_cast<std::size_t>(g)]; }

  void add_group(const std::vector<int>& list) {
    const int id = static_cast<int>(groups_.size());
    for (const int k : list) group_of_[static_cast<std::size_t>(k)] = id;
    Draft d;
    for (const int k : list) {
      const Piece& piece = pieces_.list[static_cast<std::size_t>(k)];
      if (piece.kind != Archetype::elemental) {
        d.group.kind = piece.kind;
        d.group.anchors.push_back(piece.node);
      }
      for (const Access& read : piece.reads) d.reads.push_back(read);
    }
    groups_.push_back(std::move(d));
  }

  int maker(ValueId value) const {
    const int k = pieces_.of_node[value.node];
    return k < 0 ? -1 : group_of_[static_cast<std::size_t>(k)];
  }

  void add_read(int g, ValueId value) {
    readers_[value].insert(g);
    if (const int made = maker(value); made >= 0 && made != g) draft(g).after.insert(made);
  }

  // A group that stores a value which nothing makes: a leaf, a constant, a number of the host.
  int add_copy(ValueId value, std::uint32_t buffer) {
    const int id = static_cast<int>(groups_.size());
    Draft d;
    d.group.is_copy = true;
    d.group.outputs.push_back({value, buffer});
    groups_.push_back(std::move(d));
    add_read(id, value);
    return id;
  }

  void add_outputs() {
    for (const auto& [name, value] : c_.graph().outputs) {
      if (c_.is_host(value)) continue;
      ProgramBuffer buffer;
      buffer.name = name;
      buffer.dtype = c_.type(value).dtype;
      buffer.shape = c_.type(value).shape;
      buffer.role = Role::output;
      const std::uint32_t id = c_.add_buffer(std::move(buffer));
      const int made = maker(value);
      if (made < 0 || (stores_once(made) && place_.contains(value))) {
        add_copy(value, id);
        continue;
      }
      draft(made).group.outputs.push_back({value, id});
      place_.emplace(value, id);
    }
  }

  // Kernels without an epilogue leave each result in one place.
  bool stores_once(int g) { return draft(g).group.kind == Archetype::attention; }

  bool reaches(int from, int to) const {
    std::vector<bool> seen(groups_.size());
    std::vector<int> work{to};
    while (!work.empty()) {
      const int g = work.back();
      work.pop_back();
      if (g == from) return true;
      for (const int before : groups_[static_cast<std::size_t>(g)].after)
        if (!seen[static_cast<std::size_t>(before)]) {
          seen[static_cast<std::size_t>(before)] = true;
          work.push_back(before);
        }
    }
    return false;
  }

  // Whether the group reads the leaf only at the element for which it writes the new value.
  bool reads_in_place(int g, ValueId leaf, ValueId value) const {
    const Shape& shape = c_.type(value).shape;
    for (std::size_t k = 0; k < pieces_.list.size(); ++k) {
      const Piece& piece = pieces_.list[k];
      if (group_of_[k] != g) continue;
      for (const Access& read : piece.reads) {
        if (read.value != leaf) continue;
        Affine flat = flatten(loop_indices(shape.rank()), shape.strides()).affine;
        for (int d = 0; d < shape.rank(); ++d)
          if (shape[d] == 1) flat.coef[static_cast<std::size_t>(d)] = 0;
        if (piece.kind != Archetype::elemental || piece.domain.sizes != shape.vec() ||
            !read.offset_strides.empty() || read.flat != flat)
          return false;
      }
    }
    return true;
  }

  // Writes to the leaf's buffer must come after all reads of its old value.
  bool wait_for_readers(int g, ValueId leaf) {
    const std::set<int> readers = readers_[leaf];
    for (const int reader : readers)
      if (reader != g && reaches(g, reader)) return false;
    for (const int reader : readers)
      if (reader != g) draft(g).after.insert(reader);
    return true;
  }

  // Several passes over a row may read the old value after the new one was stored.
  bool makes_in_one_pass(int g, ValueId value) {
    const Group& group = draft(g).group;
    if (group.kind != Archetype::reduce) return true;
    const Shape& full = c_.type(c_.node(group.anchors[0]).inputs[0]).shape;
    return c_.type(value).shape.numel() < full.numel();
  }

  void add_updates() {
    for (const auto& [leaf_node, value] : c_.graph().updates) {
      const ValueId leaf{leaf_node, 0};
      if (c_.is_host(leaf)) continue;
      const std::uint32_t buffer = c_.buffer_of(leaf);
      const int made = maker(value);
      if (made >= 0 && !(stores_once(made) && place_.contains(value)) &&
          !in_place_.contains(value) && reads_in_place(made, leaf, value) &&
          makes_in_one_pass(made, value) && wait_for_readers(made, leaf)) {
        draft(made).group.outputs.push_back({value, buffer});
        place_.insert_or_assign(value, buffer);
        in_place_.insert(value);
        continue;
      }
      const int copy = add_copy(value, buffer);
      if (!wait_for_readers(copy, leaf))
        throw InternalError("schedule: an update waits for itself");
    }
  }

  // Whatever other groups read and nothing has given a place yet.
  void add_temporaries() {
    for (const Piece& piece : pieces_.list) {
      for (std::uint32_t r = 0; r < c_.node(piece.node).results.size(); ++r) {
        const ValueId value{piece.node, r};
        const int made = maker(value);
        const std::set<int>& readers = readers_[value];
        const bool read_elsewhere =
            std::any_of(readers.begin(), readers.end(), [&](int g) { return g != made; });
        if (read_elsewhere && !place_.contains(value)) {
          const std::uint32_t buffer = c_.add_temporary(value, layouts_.order_of(value));
          draft(made).group.outputs.push_back({value, buffer});
          place_.emplace(value, buffer);
        }
      }
    }
    for (const auto& [value, buffer] : place_) c_.store(value, buffer);
  }

  // Kahn's algorithm; of several groups that could run, the first.
  std::vector<int> order() const {
    std::vector<std::size_t> waits(groups_.size());
    std::vector<std::vector<int>> next(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      waits[g] = groups_[g].after.size();
      for (const int before : groups_[g].after)
        next[static_cast<std::size_t>(before)].push_back(static_cast<int>(g));
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (waits[g] == 0) ready.push(static_cast<int>(g));
    std::vector<int> sorted;
    while (!ready.empty()) {
      const int g = ready.top();
      ready.pop();
      sorted.push_back(g);
      for (const int reader : next[static_cast<std::size_t>(g)])
        if (--waits[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
    if (sorted.size() != groups_.size())
      throw InternalError("schedule: groups wait for each other");
    return sorted;
  }

  Context& c_;
  const Pieces& pieces_;
  Layouts layouts_;
  std::vector<Draft> groups_;
  std::vector<int> group_of_;  // per piece
  std::map<ValueId, std::set<int>> readers_;
  std::map<ValueId, std::uint32_t> place_;
  std::set<ValueId> in_place_;
};

}  // namespace

std::vector<Group> assign_storage(Context& context, const Pieces& pieces,
                                  const std::vector<std::vector<int>>& members) {
  return Assignment(context, pieces, members).run();
}

}  // namespace pantala::schedule
