// Why nodes are equal. A forest over nodes: each edge is one reason, and the path between two nodes
// of a class is a proof of their equality.
#pragma once

#include <cstdint>
#include <vector>

#include "egraph/ids.h"

namespace pantala::egraph {

// What made two nodes equal: a rule that fired at a node, or neither, which means that the user
// said so.
struct Reason {
  RuleId rule;
  NodeId at;  // the node that the rule's left side matched
};

struct ProofStep {
  enum class Kind : std::uint8_t {
    given,       // the user united them
    rule,        // `reason` says which
    congruence,  // same symbol; `children` explain why each pair of children is equal
  } kind = Kind::given;
  NodeId from, to;
  Reason reason = {};
  // Of a congruence, a list per child; empty where the children were the same.
  std::vector<std::vector<ProofStep>> children = {};
};

// The forest. Edges carry a reason, or are congruences.
class Proofs {
 public:
  explicit Proofs(bool enabled = false) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }

  void add_node() {
    if (enabled_) edges_.push_back({});
  }
  void connect(NodeId a, NodeId b, const Reason& reason, bool is_congruence);

  struct Link {
    NodeId from, to;
    Reason reason;
    bool is_congruence = false;
  };
  // The edges between two nodes of one tree, in order.
  std::vector<Link> path(NodeId a, NodeId b) const;

 private:
  struct Edge {
    NodeId up;  // none at a root
    Reason reason;
    bool is_congruence = false;
  };
  std::vector<NodeId> way_up(NodeId from) const;

  bool enabled_;
  std::vector<Edge> edges_;  // by node
};

}  // namespace pantala::egraph
