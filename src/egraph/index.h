// What a round of matching sees of an e-graph: its nodes by class and op, fresh ones first. Made
// anew each round in time linear in the nodes, which costs little beside matching them and leaves
// nothing to keep up to date while rules add nodes: a round sees the e-graph as it began.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "egraph/egraph.h"

namespace pantala::egraph {

class Index {
 public:
  using Raw = std::uint32_t;
  // The e-graph must be rebuilt. A node is fresh if it changed in round `since` or later.
  Index(const EGraph& graph, Raw since);

  // The nodes of one op and number of children in one class: fresh ones, then the others. Each is a
  // row: the node, then its children.
  struct Group {
    Raw op = 0, arity = 0;
    Raw begin = 0, fresh_end = 0, end = 0;  // in rows()
  };
  std::span<const Group> groups(Raw class_id) const {
    return {groups_.data() + first_group_[class_id], groups_.data() + first_group_[class_id + 1]};
  }
  const Group* group(Raw class_id, Raw op, Raw arity) const {
    for (const Group& group : groups(class_id))
      if (group.op == op && group.arity == arity) return &group;
    return nullptr;
  }
  bool is_fresh(const EGraph& graph, Raw node) const {
    return graph.nodes_[node].changed_in >= since_;
  }
  const Raw* rows() const { return rows_.data(); }
  // All classes with a node of that op, in order.
  std::span<const Raw> classes_with(Raw op) const {
    return {with_op_.data() + first_with_op_[op], with_op_.data() + first_with_op_[op + 1]};
  }

 private:
  void add_row(const EGraph& graph, Raw class_id, Raw node);
  void list_classes(std::size_t classes, std::size_t ops);

  Raw since_;
  LargeArray<Raw> rows_;
  LargeArray<Group> groups_;
  LargeArray<Raw> first_group_;  // by class
  LargeArray<Raw> with_op_;      // classes, by op
  std::vector<Raw> first_with_op_;
};

}  // namespace pantala::egraph
