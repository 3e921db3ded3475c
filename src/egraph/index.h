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

  struct Entry {
    Raw node;
    Raw first_child;  // position in the e-graph's list of children
  };
  // The nodes of one op in one class: fresh ones, then the others.
  struct Group {
    Raw op = 0;
    Raw begin = 0, fresh_end = 0, end = 0;
  };
  std::span<const Group> groups(Raw class_id) const {
    return {groups_.data() + first_group_[class_id], groups_.data() + first_group_[class_id + 1]};
  }
  const Group* group(Raw class_id, Raw op) const {
    for (const Group& group : groups(class_id))
      if (group.op == op) return &group;
    return nullptr;
  }
  bool is_fresh(const EGraph& graph, Raw node) const { return graph.changed_in_[node] >= since_; }
  const Entry* entries() const { return entries_.data(); }
  // All groups of an op, in the order of their classes.
  std::span<const Raw> classes_with(Raw op) const {
    return {with_op_.data() + first_with_op_[op], with_op_.data() + first_with_op_[op + 1]};
  }

 private:
  Raw since_;
  std::vector<Entry> entries_;
  std::vector<Group> groups_;
  std::vector<Raw> first_group_;  // by class
  std::vector<Raw> with_op_;      // classes, by op
  std::vector<Raw> first_with_op_;
};

}  // namespace pantala::egraph
