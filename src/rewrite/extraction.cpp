#include "rewrite/extraction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>

#include "pantala/error.h"
#include "rewrite/saturation.h"

namespace pantala::rewrite {

namespace {

std::vector<ClassId> roots_of(const Joint& joint) {
  std::vector<ClassId> roots;
  const ir::GraphData& graph = *joint.graph().data();
  for (const auto& [name, value] : graph.outputs())
    roots.push_back(joint.equal().find(joint.class_of(value)));
  for (const auto& [leaf, value] : graph.updates())
    for (const ValueId needed : {ValueId{leaf, 0}, value})
      roots.push_back(joint.equal().find(joint.class_of(needed)));
  return roots;
}

std::vector<ClassId> operands_of(const Joint& joint, NodeId node) {
  std::vector<ClassId> operands;
  for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k)
    operands.push_back(joint.equal().find(joint.equal().child(node, k)));
  return operands;
}

// The classes that the roots need, operands first.
std::vector<ClassId> order_of(const Joint& joint, const Selection& selection) {
  std::vector<ClassId> order, work = roots_of(joint);
  std::reverse(work.begin(), work.end());
  enum class State : std::uint8_t { unseen, open, done };
  std::vector<State> states(joint.equal().class_ids(), State::unseen);
  while (!work.empty()) {
    const ClassId id = work.back();
    State& state = states[id.index()];
    if (state != State::unseen) {
      if (state == State::open) order.push_back(id), state = State::done;
      work.pop_back();
      continue;
    }
    state = State::open;
    const std::vector<ClassId> operands = operands_of(joint, selection.nodes[id.index()]);
    for (std::size_t k = operands.size(); k-- > 0;) {
      if (states[operands[k].index()] == State::open)
        throw InternalError("rewrite: a selection contains itself");
      if (states[operands[k].index()] == State::unseen) work.push_back(operands[k]);
    }
  }
  return order;
}

// Exchanges nodes one class at a time. How many nodes read each class is counted, so that the
// change of the whole sum is found by walking only what an exchange adds and removes. Every class
// that is read has a level above those of its operands: a class cannot need one of its own level or
// above.
class Search {
 public:
  Search(const Joint& joint, Selection selection, const NodeCost& cost)
      : joint_(joint),
        selection_(std::move(selection)),
        cost_(cost),
        members_(joint.equal().class_ids()),
        users_(joint.equal().class_ids()),
        readers_(joint.equal().class_ids(), 0),
        levels_(joint.equal().class_ids(), kNoLevel) {
    for (std::size_t k = 0; k < joint.equal().node_ids(); ++k) {
      const NodeId node(k);
      if (!joint.equal().is_live(node)) continue;
      members_[joint.equal().class_of(node).index()].push_back(node);
      for (const ClassId operand : operands_of(joint, node))
        users_[operand.index()].push_back(node);
    }
  }

  // Before anything is exchanged: the classes that have no node yet get the cheapest, if nothing
  // were shared, or the first that was made.
  void begin_with_cheapest() {
    select_cheapest();
    count_readers();
  }
  void begin_with_first() {
    for (std::size_t id = 0; id < members_.size(); ++id)
      if (!selection_.nodes[id].valid() && !members_[id].empty())
        selection_.nodes[id] = *std::ranges::min_element(members_[id], {}, &NodeId::index);
    count_readers();
  }

  // Lets a node compute its class, unless the class would need itself.
  bool exchange(ClassId id, NodeId node) {
    if (needs_itself(id, node)) return false;
    set_node(id, node);
    return true;
  }

  // Looks at every class once: at those that are read alone, and at those that are not as something
  // that several would read together. Returns whether anything changed.
  bool pass() {
    bool changed = false;
    for (const ClassId id : order_of(joint_, selection_))
      if (is_read(id)) changed |= improve(id) > 0;
    for (std::size_t k = 0; k < members_.size(); ++k)
      if (!members_[k].empty() && !is_read(ClassId(k))) changed |= improve_together(ClassId(k));
    return changed;
  }

  Selection take_selection() {
    for (std::size_t k = 0; k < readers_.size(); ++k)
      if (readers_[k] == 0) selection_.nodes[k] = {};
    return std::move(selection_);
  }

 private:
  static constexpr std::size_t kNoLevel = std::numeric_limits<std::size_t>::max();
  static constexpr double kWorthIt = 1e-12;  // of the whole: less is a matter of rounding

  NodeId selected(ClassId id) const { return selection_.nodes[id.index()]; }
  bool is_read(ClassId id) const { return readers_[id.index()] > 0; }

  // Operands first: graphs may be deeper than a stack is.
  void count_readers() {
    for (const ClassId root : roots_of(joint_)) ++readers_[root.index()];
    for (const ClassId id : order_of(joint_, selection_)) {
      for (const ClassId operand : operands_of(joint_, selected(id))) ++readers_[operand.index()];
      find_level(id);
      whole_ += cost_(selected(id));
    }
  }

  void select_cheapest() {
    // What is shared is counted for each that reads it: in deep graphs beyond all numbers.
    constexpr double kMost = 1e300;
    std::vector<bool> is_given(members_.size());
    for (std::size_t id = 0; id < members_.size(); ++id)
      is_given[id] = selection_.nodes[id].valid();
    std::vector<double> least(members_.size(), std::numeric_limits<double>::infinity());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t id = 0; id < members_.size(); ++id)
        for (const NodeId node : members_[id]) {
          double sum = cost_(node);
          for (const ClassId operand : operands_of(joint_, node)) sum += least[operand.index()];
          if (std::isfinite(sum)) sum = std::min(sum, kMost);
          if (!(sum < least[id])) continue;
          least[id] = sum;
          changed = true;
          if (!is_given[id]) selection_.nodes[id] = node;
        }
    }
  }

  // One more reader of a class: what that adds to the sum.
  double take(ClassId id) {
    if (readers_[id.index()]++ > 0) return 0;
    return cost_(selected(id)) + take_operands(selected(id));
  }
  double take_operands(NodeId node) {
    double sum = 0;
    for (const ClassId operand : operands_of(joint_, node)) sum += take(operand);
    return sum;
  }
  // One reader less: what that saves.
  double leave(ClassId id) {
    if (--readers_[id.index()] > 0) return 0;
    return cost_(selected(id)) + leave_operands(selected(id));
  }
  double leave_operands(NodeId node) {
    double sum = 0;
    for (const ClassId operand : operands_of(joint_, node)) sum += leave(operand);
    return sum;
  }

  // Whether the class would need itself if it were computed by this node.
  bool needs_itself(ClassId id, NodeId node) const {
    std::vector<ClassId> work = operands_of(joint_, node);
    std::set<ClassId> seen;
    while (!work.empty()) {
      const ClassId at = work.back();
      work.pop_back();
      if (at == id) return true;
      const bool is_below = is_read(at) && levels_[at.index()] <= levels_[id.index()];
      if (is_below || !seen.insert(at).second) continue;
      const std::vector<ClassId> operands = operands_of(joint_, selected(at));
      work.insert(work.end(), operands.begin(), operands.end());
    }
    return false;
  }

  void set_node(ClassId id, NodeId node) {
    if (is_read(id))
      replace(id, node);
    else
      selection_.nodes[id.index()] = node;
  }

  // What the sum would change by. What both nodes need is never left in between: only what one of
  // them alone needs is walked, however deep the graph is.
  struct Change {
    double added, saved;
    double sum() const { return added - saved; }
    bool is_better() const { return added < saved * (1 - 1e-9); }
  };
  Change change_of(NodeId before, NodeId node) {
    const double added = cost_(node) + take_operands(node),
                 saved = cost_(before) + leave_operands(before);
    take_operands(before);
    leave_operands(node);
    return {added, saved};
  }

  // Lets the best node compute a class that is read; what that saves.
  double improve(ClassId id) {
    const NodeId before = selected(id);
    NodeId best = before;
    double least = 0;
    for (const NodeId node : members_[id.index()]) {
      if (node == before || needs_itself(id, node)) continue;
      const Change change = change_of(before, node);
      if (change.is_better() && change.sum() < least) least = change.sum(), best = node;
    }
    if (best == before) return 0;
    replace(id, best);
    return -least;
  }

  // Exchanges that pay only together, since each needs a class that nothing reads yet: it is read
  // for a trial, which makes it free for all that may want it, and has to be worth its cost then.
  bool improve_together(ClassId shared) {
    const std::vector<ClassId> readers = possible_readers(shared);
    if (readers.size() < 2) return false;
    double saved = -take(shared);
    find_level(shared);
    std::vector<std::pair<ClassId, NodeId>> before;
    for (const ClassId id : readers) {
      if (!is_read(id)) continue;
      before.emplace_back(id, selected(id));
      saved += improve(id);
    }
    saved += leave(shared);
    forget_level(shared);
    if (saved > kWorthIt * whole_) return true;
    for (std::size_t k = before.size(); k-- > 0;) set_node(before[k].first, before[k].second);
    return false;
  }

  // Classes that are read and could be computed by a node that needs this one, which is not.
  std::vector<ClassId> possible_readers(ClassId unread) const {
    std::vector<ClassId> readers, work = {unread};
    std::set<ClassId> seen = {unread};
    while (!work.empty()) {
      const ClassId at = work.back();
      work.pop_back();
      for (const NodeId user : users_[at.index()]) {
        const ClassId id = joint_.equal().class_of(user);
        if (!is_read(id) && selected(id) != user) continue;
        if (seen.insert(id).second) (is_read(id) ? readers : work).push_back(id);
      }
    }
    return readers;
  }

  // Of a class that is read.
  void replace(ClassId id, NodeId node) {
    const NodeId before = selected(id);
    take_operands(node);
    leave_operands(before);
    selection_.nodes[id.index()] = node;
    settle_levels(id, before);
  }

  // After a class is computed by another node than before.
  void settle_levels(ClassId id, NodeId before) {
    for (const ClassId operand : operands_of(joint_, before)) forget_level(operand);
    for (const ClassId operand : operands_of(joint_, selected(id))) find_level(operand);
    raise_level(id);
  }

  void forget_level(ClassId id) {
    if (is_read(id) || levels_[id.index()] == kNoLevel) return;
    levels_[id.index()] = kNoLevel;
    for (const ClassId operand : operands_of(joint_, selected(id))) forget_level(operand);
  }
  void find_level(ClassId id) {
    if (levels_[id.index()] != kNoLevel) return;
    std::size_t level = 0;
    for (const ClassId operand : operands_of(joint_, selected(id))) {
      find_level(operand);
      level = std::max(level, levels_[operand.index()] + 1);
    }
    levels_[id.index()] = level;
  }
  // Levels only grow, which keeps them above those of operands.
  void raise_level(ClassId first) {
    std::vector<ClassId> work = {first};
    while (!work.empty()) {
      const ClassId id = work.back();
      work.pop_back();
      std::size_t level = levels_[id.index()];
      for (const ClassId operand : operands_of(joint_, selected(id)))
        level = std::max(level, levels_[operand.index()] + 1);
      if (level == levels_[id.index()]) continue;
      levels_[id.index()] = level;
      for (const NodeId user : users_[id.index()]) {
        const ClassId reader = joint_.equal().class_of(user);
        if (is_read(reader) && selected(reader) == user) work.push_back(reader);
      }
    }
  }

  const Joint& joint_;
  Selection selection_;
  const NodeCost& cost_;
  std::vector<std::vector<NodeId>> members_;  // by class
  std::vector<std::vector<NodeId>> users_;    // by class: the nodes that have it as an operand
  std::vector<std::size_t> readers_;          // selected nodes and roots, by class
  std::vector<std::size_t> levels_;
  double whole_ = 0;  // the sum before anything was exchanged
};

}  // namespace

double cost_of(const Joint& joint, const Selection& selection, const NodeCost& cost) {
  double sum = 0;
  for (const ClassId id : order_of(joint, selection)) sum += cost(selection.nodes[id.index()]);
  return sum;
}

Selection given_selection(const Joint& joint) {
  Selection selection;
  selection.nodes.resize(joint.equal().class_ids());
  // Of two nodes that have become equal the first: what it reads stands before it.
  for (std::size_t k = joint.given_nodes().size(); k-- > 0;) {
    const NodeId node = joint.given_nodes()[k];
    selection.nodes[joint.equal().class_of(node).index()] = node;
  }
  return selection;
}

Selection improved(const Joint& joint, const Selection& from, const NodeCost& cost, int passes) {
  Search search(joint, from, cost);
  search.begin_with_cheapest();
  for (int k = 0; k < passes && search.pass(); ++k) {}
  return search.take_selection();
}

Selection selection_with(const Joint& joint, std::span<const Application> applications,
                         const std::vector<bool>& wanted) {
  const NodeCost one = [](NodeId) { return 1.0; };
  Search search(joint, given_selection(joint), one);
  search.begin_with_first();
  std::vector<NodeId> chosen(joint.equal().class_ids());  // by class: what an application chose
  for (std::size_t k = 0; k < applications.size(); ++k) {
    const Application& application = applications[k];
    const ClassId id = joint.equal().class_of(application.left);
    NodeId& last = chosen[id.index()];
    const bool is_free = !last.valid() || last == application.left;
    if (wanted[k] && is_free && search.exchange(id, application.right)) last = application.right;
  }
  return search.take_selection();
}

namespace {

// Operands first, and else as the nodes' places say.
std::vector<ClassId> placed_order(const Joint& joint, const Selection& selection) {
  const std::vector<ClassId> needed = order_of(joint, selection);
  using Entry = std::pair<std::pair<std::size_t, std::size_t>, ClassId>;  // place, node; class
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> waits(joint.equal().class_ids(), 0);
  std::vector<std::vector<ClassId>> readers(joint.equal().class_ids());
  const auto enter = [&](ClassId id) {
    const NodeId node = selection.nodes[id.index()];
    ready.push({{joint.place(node), node.index()}, id});
  };
  for (const ClassId id : needed) {
    for (const ClassId operand : operands_of(joint, selection.nodes[id.index()])) {
      readers[operand.index()].push_back(id);
      ++waits[id.index()];
    }
    if (waits[id.index()] == 0) enter(id);
  }
  std::vector<ClassId> order;
  while (!ready.empty()) {
    const ClassId id = ready.top().second;
    ready.pop();
    order.push_back(id);
    for (const ClassId reader : readers[id.index()])
      if (--waits[reader.index()] == 0) enter(reader);
  }
  return order;
}

// Nodes of the given graph by class.
std::vector<std::vector<NodeId>> given_members(const Joint& joint) {
  std::vector<std::vector<NodeId>> members(joint.equal().class_ids());
  for (const NodeId node : joint.given_nodes())
    members[joint.equal().class_of(node).index()].push_back(node);
  return members;
}

// Where a node came from. A given one that also stands for others of the given graph, because rules
// say that they are equal, notes these rules; one that a rule made has noted them itself.
ir::Provenance provenance_of(const Joint& joint, NodeId node,
                             const std::vector<NodeId>& given_members) {
  ir::Provenance where = joint.where(node);
  if (given_members.size() < 2 || joint.equal().origin(node).rule.valid()) return where;
  std::vector<ir::Rewriting> rewrites;
  if (where.rewrites) rewrites = *where.rewrites;
  for (const NodeId other : given_members) {
    if (other == node) continue;
    for (const egraph::ProofStep& step : joint.equal().rules_between(other, node))
      rewrites.push_back({joint.rule_name(step.reason.rule), joint.describe(step.from)});
  }
  if (!rewrites.empty())
    where.rewrites = std::make_shared<const std::vector<ir::Rewriting>>(std::move(rewrites));
  return where;
}

}  // namespace

std::vector<RuleUse> uses_of(const Saturation& all, const Selection* selection) {
  std::vector<RuleUse> uses;
  for (std::size_t k = 0; k < all.rules().size(); ++k) {
    const egraph::RuleCount& count = all.run().rules[k];
    uses.push_back({.name = all.rules()[k].name,
                    .matches = static_cast<std::int64_t>(count.matches),
                    .fired = static_cast<std::int64_t>(count.fired),
                    .milliseconds = count.milliseconds,
                    .stays_finite = all.rules()[k].stays_finite});
  }
  if (selection != nullptr)
    for (const NodeId node : selection->nodes)
      if (node.valid())
        if (const egraph::RuleId rule = all.joint().equal().origin(node).rule; rule.valid())
          ++uses[rule.index()].reached;
  std::erase_if(uses, [](const RuleUse& use) { return use.matches == 0; });
  return uses;
}

Graph to_graph(const Joint& joint, const Selection& selection) {
  Graph result;
  ir::GraphData& target = *result.data();
  std::vector<std::vector<Tensor>> made(joint.equal().class_ids());
  const std::vector<std::vector<NodeId>> given_nodes = given_members(joint);
  for (const ClassId id : placed_order(joint, selection)) {
    const NodeId node = selection.nodes[id.index()];
    std::vector<Tensor> inputs;
    const std::vector<ClassId> operands = operands_of(joint, node);
    if (joint.is_projection(node)) {
      made[id.index()] = {made[operands[0].index()].at(joint.projected_result(node))};
      continue;
    }
    for (const ClassId operand : operands) inputs.push_back(made[operand.index()].at(0));
    made[id.index()] = target.append(*joint.op(node), inputs, joint.attrs(node),
                                     provenance_of(joint, node, given_nodes[id.index()]));
  }
  const ir::GraphData& given = *joint.graph().data();
  const auto value = [&](ValueId old) {
    return made[joint.equal().find(joint.class_of(old)).index()].at(0);
  };
  for (const auto& [name, old] : given.outputs()) result.output(name, value(old));
  for (const auto& [leaf, old] : given.updates()) result.update(value({leaf, 0}), value(old));
  return result;
}

}  // namespace pantala::rewrite
