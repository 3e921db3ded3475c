// GraphData: the storage behind Graph and Tensor. append() is the only way to make a node: it
// applies the shape rule, expands sugar, and returns the existing node when one with equal op,
// attributes and inputs is there. Source places and labels are kept for messages and are no part of
// a node's identity.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"

namespace pantala::ir {

// A rewrite on the way from a graph as it was given to a node.
struct Rewriting {
  std::string rule;
  std::string from;  // what the node, or the one before it, stands for: "div f32[64] (net.cpp:41)"
};

// Where a node came from: the user's source line (or a text's line), the label of the surrounding
// named block, and the rules that made it.
struct Provenance {
  std::string file;  // base name only
  std::uint32_t line = 0;
  std::string label;
  std::shared_ptr<const std::vector<Rewriting>> rewrites = nullptr;  // in order; null: none
};
Provenance provenance(const Where& where);

struct Node {
  const OpDef* op = nullptr;
  AttrValues attrs;
  std::vector<ValueId> inputs;
  std::vector<Type> results;
  Provenance where;
};

class GraphData : public std::enable_shared_from_this<GraphData> {
 public:
  static std::shared_ptr<GraphData> make() { return std::make_shared<GraphData>(); }
  std::shared_ptr<GraphData> clone() const;

  const std::deque<Node>& nodes() const { return nodes_; }
  const Node& node(std::uint32_t id) const { return nodes_[id]; }
  const Type& type(ValueId id) const { return nodes_[id.node].results[id.result]; }
  Tensor tensor(ValueId id) { return {shared_from_this(), id}; }

  // Makes (or finds) a node; returns all its results. TypeErrors name the op and `where`.
  std::vector<Tensor> append(const OpDef& op, std::span<const Tensor> inputs, AttrValues attrs,
                             const Provenance& where);

  // Leaves by name, in order of creation.
  const std::vector<std::uint32_t>& leaves() const { return leaves_; }
  std::optional<std::uint32_t> find_leaf(std::string_view name) const;
  const std::string& leaf_name(std::uint32_t node) const;
  // The stream numbers of the random ops: all from streams() on are free.
  std::int64_t streams() const { return streams_; }
  std::int64_t next_stream() { return streams_++; }
  void reserve_stream(std::int64_t stream) {
    if (stream >= streams_) streams_ = stream < INT64_MAX ? stream + 1 : stream;
  }

  // Results: values by name, and new values of leaf nodes. What is added is not checked here:
  // Graph::output() and Graph::update() do that.
  using Outputs = std::vector<std::pair<std::string, ValueId>>;
  using Updates = std::vector<std::pair<std::uint32_t, ValueId>>;
  const Outputs& outputs() const { return outputs_; }
  const Updates& updates() const { return updates_; }
  void add_output(std::string name, ValueId value) {
    outputs_.emplace_back(std::move(name), value);
  }
  void add_update(std::uint32_t leaf, ValueId value) { updates_.emplace_back(leaf, value); }
  void clear_outputs() { outputs_.clear(); }
  void clear_updates() { updates_.clear(); }

  // While one of these lives, nodes take its label and, if it has one, its place instead of their
  // own.
  class Scope {
   public:
    Scope(GraphData& graph, Provenance where) : graph_(graph) {
      graph_.scopes_.push_back(std::move(where));
    }
    ~Scope() { graph_.scopes_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphData& graph_;
  };
  Provenance effective(const Provenance& where) const;

 private:
  std::uint32_t intern(Node node);

  std::deque<Node> nodes_;  // stable addresses: handles return references to types
  std::unordered_multimap<std::uint64_t, std::uint32_t> index_;
  std::vector<std::uint32_t> leaves_;
  std::map<std::string, std::uint32_t, std::less<>> leaf_names_;
  Outputs outputs_;
  Updates updates_;
  std::vector<Provenance> scopes_;
  std::int64_t streams_ = 0;
};

// "matmul "fc2" (net.cpp:41): " in front of a message.
std::string message_prefix(std::string_view op, const Provenance& where);
[[noreturn]] void throw_type_error(std::string_view op, const Provenance& where,
                                   const std::string& message);

bool same_node(const Node& a, const Node& b);
std::uint64_t hash_node(const Node& node);

// The leaf ops; part of the op table. Their faces are in ir/leaves.h.
std::span<const OpDef* const> leaf_ops();
const OpDef& input_op();
const OpDef& parameter_op();
const OpDef& state_op();
const OpDef& scalar_op();
const OpDef& constant_op();
const OpDef& data_op();
std::optional<LeafKind> leaf_kind(const OpDef& op);
const std::string& leaf_name(const Node& leaf);  // only leaves of a kind have one
// The value of a splat constant node, if it is one.
std::optional<double> splat_value(const Node& node);

}  // namespace pantala::ir
