#include "egraph/index.h"

#include <algorithm>
#include <utility>

#include "pantala/error.h"

namespace pantala::egraph {

namespace {

using Raw = std::uint32_t;

// begins[k] becomes the sum of the counts before k; one more entry than counts.
void make_begins(std::vector<Raw>& counts) {
  Raw sum = 0;
  for (Raw& count : counts) sum += std::exchange(count, sum);
}

struct Key {
  Raw rank;  // op, then 0 for fresh and 1 for others
  Raw node;
};

// Most classes have few nodes, for which a stable sort of the library would allocate memory.
void sort_by_rank(std::span<Key> keys) {
  const auto before = [](const Key& a, const Key& b) { return a.rank < b.rank; };
  if (keys.size() > 32) return std::stable_sort(keys.begin(), keys.end(), before);
  for (std::size_t k = 1; k < keys.size(); ++k) {
    const Key key = keys[k];
    std::size_t at = k;
    for (; at > 0 && before(key, keys[at - 1]); --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

}  // namespace

Index::Index(const EGraph& graph, Raw since) : since_(since) {
  if (!graph.is_rebuilt()) throw InternalError("e-graph: matched before it was rebuilt");
  const std::size_t nodes = graph.node_ids(), classes = graph.class_ids();
  const std::size_t ops = graph.symbols().ops();
  // Keys sort by class, op, age and id; the order of ids is kept by the counting sort.
  std::vector<Raw> begin(classes + 1, 0);
  for (Raw node = 0; node < nodes; ++node) {
    if (graph.dead_[node]) continue;
    const Raw now = graph.root(graph.class_[node]);
    if (now != graph.class_[node]) {
      graph.class_[node] = now;
      graph.changed_in_[node] = graph.round_;
    }
    ++begin[now];
  }
  make_begins(begin);
  std::vector<Key> keys(begin.back());
  {
    std::vector<Raw> next(begin.begin(), begin.end() - 1);
    for (Raw node = 0; node < nodes; ++node) {
      if (graph.dead_[node]) continue;
      const Raw op = static_cast<Raw>(graph.op(NodeId(node)).index());
      keys[next[graph.class_[node]]++] = {2 * op + (graph.changed_in_[node] < since), node};
    }
  }
  entries_.resize(keys.size());
  first_group_.assign(classes + 1, 0);
  first_with_op_.assign(ops + 1, 0);
  for (std::size_t id = 0; id < classes; ++id) {
    first_group_[id] = static_cast<Raw>(groups_.size());
    sort_by_rank({keys.data() + begin[id], keys.data() + begin[id + 1]});
    for (Raw at = begin[id]; at < begin[id + 1]; ++at) {
      const Raw op = keys[at].rank / 2;
      if (at == begin[id] || groups_.back().op != op) {
        groups_.push_back({op, at, at, at});
        ++first_with_op_[op];
      }
      groups_.back().end = at + 1;
      if (keys[at].rank % 2 == 0) groups_.back().fresh_end = at + 1;
      entries_[at] = {keys[at].node, graph.first_child_[keys[at].node]};
    }
  }
  first_group_[classes] = static_cast<Raw>(groups_.size());
  make_begins(first_with_op_);
  with_op_.resize(groups_.size());
  std::vector<Raw> next(first_with_op_.begin(), first_with_op_.end() - 1);
  for (Raw id = 0; id < classes; ++id)
    for (const Group& group : groups(id)) with_op_[next[group.op]++] = id;
}

}  // namespace pantala::egraph
