#include "egraph/index.h"

#include <algorithm>
#include <utility>

#include "pantala/error.h"

namespace pantala::egraph {

namespace {

using Raw = std::uint32_t;

// begins[k] becomes the sum of the counts before k; one more entry than counts.
template <class Counts>
void make_begins(Counts& counts) {
  Raw sum = 0;
  for (Raw& count : counts) sum += std::exchange(count, sum);
}

struct Key {
  std::uint64_t rank;  // op, number of children, 0 for fresh and 1 for others
  Raw node;
};
std::uint64_t rank(const Symbol& symbol, bool is_fresh) {
  return std::uint64_t{symbol.op.index()} << 32 | std::uint64_t{symbol.arity} << 1 |
         std::uint64_t{!is_fresh};
}

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
  const Raw nodes = static_cast<Raw>(graph.node_ids());
  const std::size_t classes = graph.class_ids();
  std::size_t row_size = 0;
  LargeArray<Raw> begin(classes + 1, 0);
  for (Raw node = 0; node < nodes; ++node) {
    EGraph::Node& at = graph.nodes_[node];
    if (!at.is_live()) continue;
    const Raw now = graph.root(at.in);
    if (now != at.in) {
      at.in = now;
      at.changed_in = graph.round_;
    }
    ++begin[now];
    row_size += 1 + graph.arity(NodeId(node));
  }
  make_begins(begin);
  // By class, then by rank; the order of ids is kept by both sorts.
  LargeArray<Key> keys(begin.back());
  {
    LargeArray<Raw> next(begin.begin(), begin.end() - 1);
    for (Raw node = 0; node < nodes; ++node) {
      const EGraph::Node& at = graph.nodes_[node];
      if (!at.is_live()) continue;
      keys[next[at.in]++] = {rank(graph.symbols()[SymbolId(at.symbol)], is_fresh(graph, node)),
                             node};
    }
  }
  rows_.reserve(row_size);
  first_group_.reserve(classes + 1);
  for (std::size_t id = 0; id < classes; ++id) {
    const std::span<Key> here = {keys.data() + begin[id], keys.data() + begin[id + 1]};
    sort_by_rank(here);
    first_group_.push_back(static_cast<Raw>(groups_.size()));
    for (const Key& key : here) add_row(graph, static_cast<Raw>(id), key.node);
  }
  first_group_.push_back(static_cast<Raw>(groups_.size()));
  list_classes(classes, graph.symbols().ops());
}

void Index::add_row(const EGraph& graph, Raw class_id, Raw node) {
  const EGraph::Node& at = graph.nodes_[node];
  const Symbol& symbol = graph.symbols()[SymbolId(at.symbol)];
  const Raw op = static_cast<Raw>(symbol.op.index());
  const bool is_first = groups_.size() == first_group_[class_id];
  if (is_first || groups_.back().op != op || groups_.back().arity != symbol.arity) {
    const Raw begin = static_cast<Raw>(rows_.size());
    groups_.push_back({op, symbol.arity, begin, begin, begin});
  }
  rows_.push_back(node);
  for (const Raw child : graph.raw_children(at)) rows_.push_back(child);
  groups_.back().end = static_cast<Raw>(rows_.size());
  if (is_fresh(graph, node)) groups_.back().fresh_end = groups_.back().end;
}

void Index::list_classes(std::size_t classes, std::size_t ops) {
  // Groups of one class that have the same op stand together.
  const auto each = [&](auto&& take) {
    for (Raw id = 0; id < classes; ++id) {
      const std::span<const Group> here = groups(id);
      for (std::size_t k = 0; k < here.size(); ++k)
        if (k == 0 || here[k].op != here[k - 1].op) take(here[k].op, id);
    }
  };
  first_with_op_.assign(ops + 1, 0);
  each([&](Raw op, Raw) { ++first_with_op_[op]; });
  make_begins(first_with_op_);
  with_op_.resize(first_with_op_.back());
  std::vector<Raw> next(first_with_op_.begin(), first_with_op_.end() - 1);
  each([&](Raw op, Raw id) { with_op_[next[op]++] = id; });
}

}  // namespace pantala::egraph
