#include "egraph/egraph.h"

#include <algorithm>
#include <array>

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
  return ClassId(root(nodes_[node].in));
}

bool EGraph::is_same(Raw id, Raw symbol, std::span<const Raw> children) const {
  const Node& node = nodes_[id];
  if (node.symbol != symbol || !node.is_live()) return false;
  const Raw* others = children_.data() + node.first_child;
  for (std::size_t k = 0; k < children.size(); ++k)  // a call would take longer for so few
    if (others[k] != children[k]) return false;
  return true;
}

EGraph::Raw EGraph::add_raw(Raw symbol, std::span<const Raw> children, Raw into,
                            const Reason& reason) {
  return add_hashed(symbol, children, HashCons::hash(symbol, children), into, reason);
}

EGraph::Raw EGraph::add_hashed(Raw symbol, std::span<const Raw> children, std::uint64_t hash,
                               Raw into, const Reason& reason) {
  const Raw found = table_.find(hash, [&](Raw other) { return is_same(other, symbol, children); });
  if (found != kNone) {
    const Raw there = root(nodes_[found].in);
    if (into != kNone && there != into)
      unite_raw(there, into, found, static_cast<Raw>(reason.at.index()), reason);
    return there;
  }
  const Raw node = append_node(symbol, children, into, reason);
  enter(hash, node);
  return root(nodes_[node].in);
}

void EGraph::enter(std::uint64_t hash, Raw node) {
  if (table_.is_full()) return enlarge_table();
  table_.insert(hash, node);
}

// Enters all nodes, some at a time: their places are asked for before they are needed.
void EGraph::enlarge_table() {
  table_.clear_for(live_nodes_);
  constexpr std::size_t kTogether = 64;
  std::array<std::uint64_t, kTogether> hashes;
  for (std::size_t first = 0; first < nodes_.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, nodes_.size() - first);
    for (std::size_t k = 0; k < count; ++k) {
      const Node& node = nodes_[first + k];
      hashes[k] = HashCons::hash(node.symbol, raw_children(node));
      if (node.is_live()) table_.prefetch(hashes[k]);
    }
    for (std::size_t k = 0; k < count; ++k)
      if (nodes_[first + k].is_live()) table_.insert(hashes[k], static_cast<Raw>(first + k));
  }
}

EGraph::Raw EGraph::append_node(Raw symbol, std::span<const Raw> children, Raw into,
                                const Reason& reason) {
  const Raw node = static_cast<Raw>(nodes_.size());
  nodes_.push_back({symbol, static_cast<Raw>(children_.size()), into, round_});
  for (const Raw child : children) {
    Users& users = users_of_[child];
    uses_.push_back({node, users.first});
    users.first = static_cast<Raw>(children_.size());
    ++users.count;
    children_.push_back(child);
  }
  if (proofs_.enabled())
    first_children_.insert(first_children_.end(), children.begin(), children.end());
  origin_.push_back(reason);
  ++live_nodes_;
  ++version_;
  proofs_.add_node();
  if (into == kNone) {
    const Raw made = make_class(node);
    nodes_[node].in = made;
    if (options_.analysis) {
      options_.analysis->make(*this, ClassId(made), NodeId(node));
      value_changed(made);
    }
  } else {
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
  users_of_.push_back({});
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
  const Raw users_a = users_of_[a].count, users_b = users_of_[b].count;
  if (users_a < users_b || (users_a == users_b && b < a)) std::swap(into, from);
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
    while (!pending_.empty()) repair_users();
    renew_values();
  }
}

// Users of classes that have another name now are written with that name; those that turn out to be
// there already are dropped, which may unite further classes.
void EGraph::repair_users() {
  users_.clear();
  for (const Raw lost : pending_) hand_over_users(lost);
  pending_.clear();
  // Some at a time: what they need of the memory is asked for before it is needed.
  constexpr std::size_t kTogether = 64;
  for (std::size_t first = 0; first < users_.size(); first += kTogether) {
    const std::span<const Raw> some = {users_.data() + first,
                                       std::min(kTogether, users_.size() - first)};
    for (const Raw user : some) __builtin_prefetch(&nodes_[user]);
    for (const Raw user : some) prefetch_repair(nodes_[user]);
    for (const Raw user : some)
      if (nodes_[user].is_live()) repair_node(user);
  }
}

// They are users of the class's new name from now on, before any of them is repaired: if a repair
// takes that name away again, they are repaired again with the others.
void EGraph::hand_over_users(Raw lost) {
  Raw last = kNone;
  for (Raw use = users_of_[lost].first; use != kNone; use = uses_[use].next) {
    users_.push_back(uses_[use].node);
    last = use;
  }
  if (last == kNone) return;
  Users& into = users_of_[root(lost)];
  uses_[last].next = into.first;
  into.first = users_of_[lost].first;
  into.count += users_of_[lost].count;
  users_of_[lost].first = kNone;
}

void EGraph::prefetch_repair(const Node& node) {
  scratch_.clear();
  for (const Raw child : raw_children(node)) scratch_.push_back(root(child));
  table_.prefetch(HashCons::hash(node.symbol, scratch_));
}

void EGraph::repair_node(Raw id) {
  Node& node = nodes_[id];
  const std::span<Raw> children = {children_.data() + node.first_child, raw_children(node).size()};
  bool is_changed = false;
  for (Raw& child : children) {
    const Raw now = root(child);
    is_changed |= now != child;
    child = now;
  }
  if (!is_changed) return;  // repaired already, as a user of another class
  node.changed_in = round_;
  const std::uint64_t hash = HashCons::hash(node.symbol, children);
  const Raw found =
      table_.find(hash, [&](Raw other) { return is_same(other, node.symbol, children); });
  if (found != kNone) return kill(id, found);
  enter(hash, id);
}

void EGraph::kill(Raw node, Raw survivor) {
  nodes_[node].changed_in = Node::kDead;
  --live_nodes_;
  const Raw a = root(nodes_[survivor].in), b = root(nodes_[node].in);
  unite_raw(a, b, survivor, node, {}, true);
}

void EGraph::renew_values() {
  Analysis* analysis = options_.analysis;
  while (!stale_.empty() && pending_.empty()) {
    const Raw id = root(stale_.back());
    stale_.pop_back();
    analysis->modify(*this, ClassId(id));
    for (Raw use = users_of_[id].first; use != kNone; use = uses_[use].next) {
      const Raw node = uses_[use].node;
      if (!nodes_[node].is_live()) continue;
      const Raw user = root(nodes_[node].in);
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
        const Raw left = first_children_[nodes_[link.from.index()].first_child + k];
        const Raw right = first_children_[nodes_[link.to.index()].first_child + k];
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
