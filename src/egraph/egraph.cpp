#include "egraph/egraph.h"

#include <algorithm>

#include "pantala/error.h"

namespace pantala::egraph {

void Analysis::modify(EGraph&, ClassId) {}

ClassId EGraph::add(SymbolId symbol, std::span<const ClassId> children, const Reason& reason) {
  scratch_.clear();
  for (const ClassId child : children) scratch_.push_back(root(raw(child)));
  return ClassId(add_raw(static_cast<Raw>(symbol.index()), scratch_, kNone, reason));
}

std::optional<ClassId> EGraph::lookup(SymbolId symbol, std::span<const ClassId> children) const {
  std::vector<Raw> key;
  for (const ClassId child : children) key.push_back(root(raw(child)));
  const Raw wanted = static_cast<Raw>(symbol.index());
  const Raw node = table_.find(HashCons::hash(wanted, key),
                               [&](Raw other) { return is_same(other, wanted, key); });
  if (node == kNone) return std::nullopt;
  return ClassId(root(class_[node]));
}

bool EGraph::is_same(Raw node, Raw symbol, std::span<const Raw> children) const {
  return symbol_[node] == symbol && !dead_[node] &&
         std::equal(children.begin(), children.end(), children_.data() + first_child_[node]);
}

EGraph::Raw EGraph::add_raw(Raw symbol, std::span<const Raw> children, Raw into,
                            const Reason& reason) {
  return add_hashed(symbol, children, HashCons::hash(symbol, children), into, reason);
}

EGraph::Raw EGraph::add_hashed(Raw symbol, std::span<const Raw> children, std::uint64_t hash,
                               Raw into, const Reason& reason) {
  const Raw found = table_.find(hash, [&](Raw other) { return is_same(other, symbol, children); });
  if (found != kNone) {
    const Raw there = root(class_[found]);
    if (into != kNone && there != into)
      unite_raw(there, into, found, static_cast<Raw>(reason.at.index()), reason);
    return there;
  }
  const Raw node = append_node(symbol, children, into, reason);
  enter(hash, node);
  return root(class_[node]);
}

void EGraph::enter(std::uint64_t hash, Raw node) {
  if (!table_.is_full()) return table_.insert(hash, node);
  table_.clear_for(live_nodes_);
  for (Raw other = 0; other < symbol_.size(); ++other)
    if (!dead_[other]) table_.insert(HashCons::hash(symbol_[other], raw_children(other)), other);
}

EGraph::Raw EGraph::append_node(Raw symbol, std::span<const Raw> children, Raw into,
                                const Reason& reason) {
  const Raw node = static_cast<Raw>(symbol_.size());
  symbol_.push_back(symbol);
  for (const Raw child : children) {
    uses_.push_back({node, first_use_[child]});
    first_use_[child] = static_cast<Raw>(children_.size());
    ++use_count_[child];
    children_.push_back(child);
  }
  if (proofs_.enabled())
    first_children_.insert(first_children_.end(), children.begin(), children.end());
  first_child_.push_back(static_cast<Raw>(children_.size()));
  changed_in_.push_back(round_);
  dead_.push_back(0);
  origin_.push_back(reason);
  ++live_nodes_;
  ++version_;
  proofs_.add_node();
  if (into == kNone) {
    class_.push_back(make_class(node));
    if (options_.analysis) {
      options_.analysis->make(*this, ClassId(class_[node]), NodeId(node));
      value_changed(class_[node]);
    }
  } else {
    class_.push_back(into);
    proofs_.connect(NodeId(node), reason.at.valid() ? reason.at : representative(ClassId(into)),
                    reason, false);
    if (options_.analysis && options_.analysis->join(*this, ClassId(into), NodeId(node)))
      value_changed(into);
  }
  return node;
}

EGraph::Raw EGraph::make_class(Raw node) {
  const Raw id = static_cast<Raw>(parent_.size());
  parent_.push_back(id);
  first_use_.push_back(kNone);
  use_count_.push_back(0);
  first_node_.push_back(node);
  ++live_classes_;
  return id;
}

bool EGraph::unite(ClassId a, ClassId b, Reason reason) {
  return unite_raw(root(raw(a)), root(raw(b)), first_node_[raw(a)], first_node_[raw(b)], reason);
}

bool EGraph::unite_raw(Raw a, Raw b, Raw node_a, Raw node_b, const Reason& reason,
                       bool is_congruence) {
  if (a == b) return false;
  proofs_.connect(NodeId(node_a), NodeId(node_b), reason, is_congruence);
  // The one with more users keeps its name, since the users of the other are written anew.
  Raw into = a, from = b;
  if (use_count_[a] < use_count_[b] || (use_count_[a] == use_count_[b] && b < a))
    std::swap(into, from);
  parent_[from] = into;
  --live_classes_;
  ++version_;
  pending_.push_back(from);
  if (options_.analysis) {
    const Analysis::Merged merged = options_.analysis->merge(*this, ClassId(into), ClassId(from));
    if (merged.into_changed || merged.from_changed) value_changed(into);
  }
  return true;
}

void EGraph::value_changed(Raw id) { stale_.push_back(id); }

void EGraph::rebuild() {
  while (!pending_.empty() || !stale_.empty()) {
    while (!pending_.empty()) {
      const Raw lost = pending_.back();
      pending_.pop_back();
      repair_uses(lost);
    }
    renew_values();
  }
}

// Users of a class that has another name now are written with that name; those that turn out to be
// there already are dropped, which may unite further classes.
void EGraph::repair_uses(Raw lost) {
  Raw last = kNone;
  for (Raw use = first_use_[lost]; use != kNone; use = uses_[use].next) {
    last = use;
    if (!dead_[uses_[use].node]) repair_node(uses_[use].node);
  }
  if (last == kNone) return;
  const Raw into = root(lost);
  uses_[last].next = first_use_[into];
  first_use_[into] = first_use_[lost];
  use_count_[into] += use_count_[lost];
  first_use_[lost] = kNone;
}

void EGraph::repair_node(Raw node) {
  Raw* children = children_.data() + first_child_[node];
  const std::size_t arity = first_child_[node + 1] - first_child_[node];
  for (std::size_t k = 0; k < arity; ++k) children[k] = root(children[k]);
  changed_in_[node] = round_;
  const std::span<const Raw> key = {children, arity};
  const std::uint64_t hash = HashCons::hash(symbol_[node], key);
  const Raw found =
      table_.find(hash, [&](Raw other) { return is_same(other, symbol_[node], key); });
  if (found == node) return;
  if (found != kNone) return kill(node, found);
  enter(hash, node);
}

void EGraph::kill(Raw node, Raw survivor) {
  dead_[node] = 1;
  --live_nodes_;
  const Raw a = root(class_[survivor]), b = root(class_[node]);
  unite_raw(a, b, survivor, node, {}, true);
}

void EGraph::renew_values() {
  Analysis* analysis = options_.analysis;
  while (!stale_.empty() && pending_.empty()) {
    const Raw id = root(stale_.back());
    stale_.pop_back();
    analysis->modify(*this, ClassId(id));
    for (Raw use = first_use_[id]; use != kNone; use = uses_[use].next) {
      const Raw node = uses_[use].node;
      if (dead_[node]) continue;
      const Raw user = root(class_[node]);
      if (analysis->join(*this, ClassId(user), NodeId(node))) value_changed(user);
    }
  }
}

std::vector<ProofStep> EGraph::explain(NodeId a, NodeId b) const {
  if (!proofs_.enabled()) throw InternalError("egraph: explain() needs Options::proofs");
  if (class_of(a) != class_of(b)) throw InternalError("egraph: these nodes are not equal");
  std::vector<ProofStep> steps;
  for (const Proofs::Link& link : proofs_.path(a, b)) {
    ProofStep step = {ProofStep::Kind::given, link.from, link.to, link.reason, {}};
    if (link.reason.rule.valid()) step.kind = ProofStep::Kind::rule;
    if (link.is_congruence) {
      step.kind = ProofStep::Kind::congruence;
      for (std::uint32_t k = 0; k < arity(link.from); ++k) {
        const Raw left = first_children_[first_child_[link.from.index()] + k];
        const Raw right = first_children_[first_child_[link.to.index()] + k];
        step.children.push_back(explain(NodeId(first_node_[left]), NodeId(first_node_[right])));
      }
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<ProofStep> EGraph::rules_between(NodeId a, NodeId b) const {
  if (!proofs_.enabled()) throw InternalError("egraph: rules_between() needs Options::proofs");
  if (class_of(a) != class_of(b)) throw InternalError("egraph: these nodes are not equal");
  std::vector<ProofStep> steps;
  for (const Proofs::Link& link : proofs_.path(a, b))
    if (link.reason.rule.valid() && !link.is_congruence)
      steps.push_back({ProofStep::Kind::rule, link.from, link.to, link.reason, {}});
  return steps;
}

}  // namespace pantala::egraph
