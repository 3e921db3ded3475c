// Joint: a graph as an e-graph. A node is an op with its attributes over the classes of its inputs;
// an op with several results is one node whose results are taken from it by projections. Types and
// known constants are facts about classes, found when a node is added and never by rules.
//
// Right sides of rules are written with the ops of the library, on tensors of a graph on the side
// (`tensor()`, `add()`): shape rules, broadcasting and attributes are the library's own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "egraph/egraph.h"
#include "ir/graph_data.h"

namespace pantala::rewrite {

using egraph::ClassId;
using egraph::NodeId;

class Joint : private egraph::Analysis {
 public:
  explicit Joint(const Graph& graph);
  Joint(const Joint&) = delete;
  Joint& operator=(const Joint&) = delete;

  egraph::EGraph& equal() { return equal_; }
  const egraph::EGraph& equal() const { return equal_; }
  const Graph& graph() const { return graph_; }

  // The class of a value of the graph.
  ClassId class_of(ValueId value) const;
  // The nodes that the graph's own nodes became, and the projections of those with several results.
  const std::vector<NodeId>& given_nodes() const { return given_nodes_; }
  // The types of a class: one, or those of all results of a node.
  const std::vector<Type>& types(ClassId id) const { return types_[equal_.find(id).index()]; }
  const Type& type(ClassId id) const { return types(id).at(0); }
  // The number that every element of the class is known to have, however the graph says it.
  std::optional<double> splat(ClassId id) const { return splats_[equal_.find(id).index()]; }
  // Whether the host computes it (ops/host_scalars.h).
  bool is_host(ClassId id) const { return hosts_[equal_.find(id).index()]; }

  // What a node is, as the graph would say it. Projections have no op.
  const ir::OpDef* op(NodeId node) const;
  const ir::AttrValues& attrs(NodeId node) const;
  const ir::Provenance& where(NodeId node) const { return wheres_[node.index()]; }
  // Where in the graph the node belongs: its own place, or that of the node that a rule made it
  // for.
  std::size_t place(NodeId node) const { return places_[node.index()]; }
  // Of a projection: which result.
  bool is_projection(NodeId node) const;
  std::uint32_t projected_result(NodeId node) const;

  // A handle by which right sides speak of a class that is a value.
  Tensor tensor(ClassId id);
  Tensor constant(double value, const Type& type) {
    return side_.constant(value, type.shape, type.dtype);
  }
  // The class of a value that was computed from such handles, with all that it needs added.
  ClassId add(const Tensor& value);
  // Why add() makes nodes from now on: they take the place and label of the node at which the rule
  // fired, and note the rule.
  void speak_for(const egraph::Reason& reason, const std::string& rule);
  const std::string& rule_name(egraph::RuleId rule) const { return rule_names_.at(rule.index()); }
  // A node in a few words: "div f32[64] (net.cpp:41)".
  std::string describe(NodeId node) const;

 private:
  void make(const egraph::EGraph& graph, ClassId made, NodeId node) override;
  bool join(const egraph::EGraph& graph, ClassId into, NodeId node) override;
  Merged merge(const egraph::EGraph& graph, ClassId into, ClassId from) override;

  ClassId add_node(const ir::Node& node, const std::vector<ClassId>& inputs, bool is_host);
  ClassId project(ClassId tuple, std::uint32_t result, const ir::Provenance& where);
  // What is known about a node that is being made.
  struct Facts {
    std::vector<Type> types;
    std::optional<double> splat;
    bool is_host = false;
    ir::Provenance where;
  };
  ClassId insert(egraph::SymbolId symbol, const std::vector<ClassId>& inputs, Facts facts);
  bool is_host_scalar(const ir::Node& node, const std::vector<ClassId>& inputs) const;
  std::optional<double> splat_of(const ir::Node& node, const std::vector<ClassId>& inputs) const;
  std::uint64_t intern(const ir::Node& node);

  Graph graph_;
  egraph::EGraph equal_;
  egraph::OpId projection_;
  // Payloads: ops with their attributes.
  struct Content {
    const ir::OpDef* op = nullptr;
    ir::AttrValues attrs;
  };
  std::vector<Content> contents_;
  std::unordered_multimap<std::uint64_t, std::uint64_t> content_index_;
  // By class.
  std::vector<std::vector<Type>> types_;
  std::vector<std::optional<double>> splats_;
  std::vector<bool> hosts_;
  // By node.
  std::vector<ir::Provenance> wheres_;
  std::vector<std::size_t> places_;
  std::vector<ClassId> values_;  // by node of the graph: its class, of several results the tuple's
  std::vector<NodeId> given_nodes_;
  // The graph on the side: a leaf per class, and the classes of what was added.
  Graph side_;
  std::map<std::size_t, Tensor> leaves_;
  std::vector<ClassId> side_classes_;  // by node
  egraph::Reason reason_;
  std::vector<std::string> rule_names_;  // of those that have spoken
  ir::Provenance made_by_;               // of the nodes that add() makes
  Facts pending_;                        // of the node that insert() makes
};

}  // namespace pantala::rewrite
