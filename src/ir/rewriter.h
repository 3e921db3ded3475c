// Rewriter: the one way to copy a graph, or a part of one, into another while changing it.
// Differentiation, expansion, lowering, export and the host's part all go through it.
//
// Nodes are written in the order of their ids, each with its place and label, so a copy without
// changes has its nodes in the old order. A rule may give other values for a node's results; they
// must have the same types. Random ops keep their stream numbers, and none that the source gave out
// is given out again by the target.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph_data.h"

namespace pantala::ir {

class Rewriter {
 public:
  using Results = std::vector<Tensor>;
  // What stands in the target for a node's results, given what stands there for its inputs; an
  // empty list for a node that is copied as it is. Nodes that the rule makes take the place and
  // label of the node that it is asked about.
  using Rule = std::function<Results(Rewriter&, const Node&, const std::vector<Tensor>& inputs)>;

  // The source must outlive the rewriter; it may not be the target.
  Rewriter(const GraphData& source, std::shared_ptr<GraphData> target, Rule rule = {});

  // Says what stands for a value of the source, before anything that reads it is copied.
  void set(ValueId old, const Tensor& value);

  void copy(std::span<const ValueId> wanted);  // what these values need
  void copy_needed();                          // what outputs and updates need
  void copy_all();                             // every node, used or not

  // What stands for a value that was set or copied; InternalError for another.
  const Tensor& at(ValueId old) const;

  // Gives the target the source's outputs and updates; copied before. `is_kept` says by the leaf's
  // node whether an update is one of the target.
  void write_outputs();
  void write_updates();
  void write_updates(const std::function<bool(std::uint32_t leaf)>& is_kept);

  const std::shared_ptr<GraphData>& target() const { return target_; }
  const Rule& rule() const { return rule_; }

 private:
  bool is_known(ValueId old) const { return values_[old.node][old.result].valid(); }
  void write(std::uint32_t id);
  Results results_of(const Node& node, const std::vector<Tensor>& inputs);

  const GraphData& source_;
  std::shared_ptr<GraphData> target_;
  Rule rule_;
  std::vector<std::vector<Tensor>> values_;  // per node and result of the source; empty: unknown
};

// What the outputs and updates of a graph need, rewritten, with the same outputs and updates.
Graph rewrite(const Graph& graph, const Rewriter::Rule& rule);

}  // namespace pantala::ir
