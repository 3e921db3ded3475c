#include "egraph/instantiation.h"

namespace pantala::egraph {

Instantiation::Instantiation(Symbols& symbols, const Rule& rule, RuleId id,
                             const MatchLayout& layout)
    : id_(id), stride_(layout.nodes + layout.registers.size()), nodes_of_match_(layout.nodes) {
  const Pattern& right = *rule.right;
  std::vector<Raw> sources;  // by term
  for (const Term& term : right.terms) {
    if (term.variable.valid()) {
      sources.push_back(static_cast<Raw>(term.variable.index()));
      continue;
    }
    Node node;
    const auto arity = static_cast<std::uint32_t>(term.children.size());
    node.symbol =
        static_cast<Raw>(symbols.intern(term.op, arity, term.payload.value_or(0)).index());
    for (const TermId child : term.children) node.sources.push_back(sources[child.index()]);
    sources.push_back(kMade | static_cast<Raw>(nodes_.size()));
    nodes_.push_back(std::move(node));
  }
  if (nodes_.empty()) root_variable_ = sources.back();
}

std::uint32_t Instantiation::source(Raw source, const Raw* match, std::size_t place) const {
  if (source & kMade) return made_[place * nodes_.size() + (source & ~kMade)];
  return match[nodes_of_match_ + source];
}

std::size_t Instantiation::apply(EGraph& graph, std::span<const std::uint32_t> matches) {
  count_ = matches.size() / stride_;
  std::size_t fired = 0;
  if (nodes_.empty()) {
    for (std::size_t k = 0; k < count_; ++k) {
      const Raw* match = matches.data() + k * stride_;
      const Raw left = graph.root(graph.nodes_[match[0]].in);
      const Raw variable = match[nodes_of_match_ + root_variable_];
      fired += graph.unite_raw(left, graph.root(variable), match[0], graph.first_node_[variable],
                               {id_, NodeId(match[0])});
    }
    return fired;
  }
  made_.resize(count_ * nodes_.size());
  // Whoever makes a new operand makes a new root too: the last count is that of all.
  for (std::size_t n = 0; n < nodes_.size(); ++n) fired = make_nodes(graph, n, matches);
  return fired;
}

// One node of the right side for all matches: first all places in the table are computed and asked
// for, then the nodes that stand there, then they are looked at. Returns for how many there was
// something new.
std::size_t Instantiation::make_nodes(EGraph& graph, std::size_t number,
                                      std::span<const Raw> matches) {
  const Node& node = nodes_[number];
  const std::size_t arity = node.sources.size();
  arguments_.resize(count_ * arity);
  hashes_.resize(count_);
  for (std::size_t k = 0; k < count_; ++k) {
    Raw* arguments = arguments_.data() + k * arity;
    for (std::size_t a = 0; a < arity; ++a)
      arguments[a] = graph.root(source(node.sources[a], matches.data() + k * stride_, k));
    hashes_[k] = HashCons::hash(node.symbol, {arguments, arity});
    graph.table_.prefetch(hashes_[k]);
  }
  for (std::size_t k = 0; k < count_; ++k) graph.prefetch_node(graph.table_.candidate(hashes_[k]));
  const bool is_root = number + 1 == nodes_.size();
  std::size_t fired = 0;
  for (std::size_t k = 0; k < count_; ++k) {
    const Raw at = matches[k * stride_];
    const Raw into = is_root ? graph.root(graph.nodes_[at].in) : EGraph::kNone;
    const std::uint64_t version = graph.version();
    made_[k * nodes_.size() + number] = graph.add_hashed(
        node.symbol, {arguments_.data() + k * arity, arity}, hashes_[k], into, {id_, NodeId(at)});
    fired += graph.version() != version;
  }
  return fired;
}

}  // namespace pantala::egraph
