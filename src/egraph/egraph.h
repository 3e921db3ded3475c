// The e-graph: a set of nodes, shared as far as possible, whose classes hold everything that is
// known to be equal. It knows nothing of tensors: a node is a symbol over classes, and what can be
// said about a class beyond that is an Analysis.
//
// Nodes stand in arrays that only grow; nothing is allocated per node. Uniting classes is deferred
// work: until rebuild() has run, two nodes that have become equal may both be there, and a lookup
// may miss one. All results are functions of the sequence of calls: no address, hash of a pointer
// or clock decides anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "egraph/hash_cons.h"
#include "egraph/ids.h"
#include "egraph/proof.h"
#include "egraph/symbols.h"

namespace pantala::egraph {

class EGraph;

// What is known about a class (a type, a constant, a range), kept by whoever knows what it means. A
// value is made for each new class, merged when classes are united, and made again where a child's
// value has changed; it may only become more precise.
class Analysis {
 public:
  virtual ~Analysis() = default;
  // A class of its own for `node`, whose id is the number of classes that were made before it.
  virtual void make(const EGraph& graph, ClassId made, NodeId node) = 0;
  // What the node adds to the knowledge about its class, as a member or since a child's value
  // changed. Returns whether the class's value changed.
  virtual bool join(const EGraph& graph, ClassId into, NodeId node) = 0;
  // Returns which of the two values changed; both classes are one from now on and known as `into`.
  struct Merged {
    bool into_changed = false, from_changed = false;
  };
  virtual Merged merge(const EGraph& graph, ClassId into, ClassId from) = 0;
  // Called by rebuild() once a value has been made or changed: may add nodes and unite the class
  // with another (a class whose value is a known constant with that constant).
  virtual void modify(EGraph& graph, ClassId changed);
};

class EGraph {
 public:
  // With `proofs`, every equality can be explained (explain()); costs about a tenth of the time.
  struct Options {
    bool proofs = false;
    Analysis* analysis = nullptr;  // outlives the e-graph
  };
  EGraph() = default;
  explicit EGraph(Options options) : options_(options), proofs_(options.proofs) {}

  Symbols& symbols() { return symbols_; }
  const Symbols& symbols() const { return symbols_; }

  // The class of a node, which is made if there is none, for the reason that is given; children may
  // be any names of classes.
  ClassId add(SymbolId symbol, std::span<const ClassId> children, const Reason& reason = {});
  // The class that has such a node.
  std::optional<ClassId> lookup(SymbolId symbol, std::span<const ClassId> children) const;

  // The name by which a class is known now.
  ClassId find(ClassId id) const { return ClassId(root(raw(id))); }
  // What says that two things are equal: an input of the e-graph's user, or a rule at a node.
  // Returns whether they were two classes before.
  bool unite(ClassId a, ClassId b, Reason reason = {});
  // Makes congruent nodes one and brings the analysis up to date.
  void rebuild();
  bool is_rebuilt() const { return pending_.empty() && stale_.empty(); }

  // Nodes that are no duplicates, and classes, of a rebuilt e-graph.
  std::size_t nodes() const { return live_nodes_; }
  std::size_t classes() const { return live_classes_; }
  // Grows with every node that is made and every two classes that are united.
  std::uint64_t version() const { return version_; }
  // All that were ever made; ids are below these.
  std::size_t node_ids() const { return nodes_.size(); }
  std::size_t class_ids() const { return parent_.size(); }

  bool is_live(NodeId node) const { return nodes_[node.index()].is_live(); }
  SymbolId symbol(NodeId node) const { return SymbolId(nodes_[node.index()].symbol); }
  OpId op(NodeId node) const { return symbols_[symbol(node)].op; }
  ClassId class_of(NodeId node) const { return ClassId(root(nodes_[node.index()].in)); }
  std::uint32_t arity(NodeId node) const { return symbols_[symbol(node)].arity; }
  // As of the last rebuild().
  ClassId child(NodeId node, std::size_t index) const {
    return ClassId(children_[nodes_[node.index()].first_child + index]);
  }
  // The first node of a class when it was made: what stands for it in explanations.
  NodeId representative(ClassId id) const { return NodeId(first_node_[id.index()]); }

  // Rounds of matching: a node is fresh if it was made or changed (in its own or a child's name)
  // since the last call of begin_round().
  void begin_round() { ++round_; }
  std::uint32_t round() const { return round_; }

  // How two nodes of one class came to be equal; needs Options::proofs (InternalError).
  std::vector<ProofStep> explain(NodeId a, NodeId b) const;
  // Of these steps the ones that rules made, with nothing said about congruences: cheap.
  std::vector<ProofStep> rules_between(NodeId a, NodeId b) const;
  // The rule that made the node and the node at which it fired; none for what the user added.
  const Reason& origin(NodeId node) const { return origin_[node.index()]; }
  const Options& options() const { return options_; }

 private:
  friend class Index;
  friend class Matcher;
  friend class Instantiation;
  using Raw = std::uint32_t;
  static constexpr Raw kNone = 0xFFFFFFFF;
  static Raw raw(ClassId id) { return static_cast<Raw>(id.index()); }

  // What is looked at together stands together: a node is found with one access to memory, and
  // compared with one more.
  struct Node {
    Raw symbol;
    Raw first_child;  // where its children begin
    Raw in;           // its class, by some name
    Raw changed_in;   // the round in which it last changed; kDead: a duplicate of another
    static constexpr Raw kDead = 0xFFFFFFFF;
    bool is_live() const { return changed_in != kDead; }
  };
  struct Use {
    Raw node;
    Raw next;
  };
  struct Users {
    Raw first = kNone;
    Raw count = 0;
  };

  Raw root(Raw id) const {
    while (parent_[id] != id) {
      parent_[id] = parent_[parent_[id]];
      id = parent_[id];
    }
    return id;
  }
  void prefetch_node(Raw node) const {
    if (node != kNone) __builtin_prefetch(&nodes_[node]);
  }
  std::span<const Raw> raw_children(const Node& node) const {
    return {children_.data() + node.first_child, symbols_[SymbolId(node.symbol)].arity};
  }
  // A node over canonical children in class `into`, or, if that is kNone, in a class of its own.
  // Returns the class in which it is.
  Raw add_raw(Raw symbol, std::span<const Raw> children, Raw into, const Reason& reason);
  Raw add_hashed(Raw symbol, std::span<const Raw> children, std::uint64_t hash, Raw into,
                 const Reason& reason);
  Raw append_node(Raw symbol, std::span<const Raw> children, Raw into, const Reason& reason);
  Raw make_class(Raw node);
  bool unite_raw(Raw a, Raw b, Raw node_a, Raw node_b, const Reason& reason,
                 bool is_congruence = false);
  void enter(std::uint64_t hash, Raw node);
  void enlarge_table();
  void repair_users();
  void hand_over_users(Raw lost);
  void prefetch_repair(const Node& node);
  void repair_node(Raw node);
  void renew_values();
  bool is_same(Raw node, Raw symbol, std::span<const Raw> children) const;
  void kill(Raw node, Raw survivor);
  void value_changed(Raw id);

  Options options_;
  Symbols symbols_;
  // By node.
  mutable LargeArray<Node> nodes_;
  LargeArray<Reason> origin_;
  // By child.
  LargeArray<Raw> children_;
  LargeArray<Raw> first_children_;  // as they were when the node was made; for proofs
  LargeArray<Use> uses_;
  // By class.
  mutable LargeArray<Raw> parent_;
  LargeArray<Users> users_of_;
  LargeArray<Raw> first_node_;

  HashCons table_;
  std::vector<Raw> pending_;  // classes that were united into others, whose users are not repaired
  std::vector<Raw> stale_;    // classes whose value changed, whose users' values are not renewed
  std::vector<Raw> scratch_;
  std::vector<Raw> users_;  // of rebuild(): nodes to repair
  std::size_t live_nodes_ = 0, live_classes_ = 0;
  std::uint64_t version_ = 0;
  Raw round_ = 0;
  Proofs proofs_;
};

}  // namespace pantala::egraph
