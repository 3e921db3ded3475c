#include "schedule/pieces.h"

#include <algorithm>

#include "base/hash.h"
#include "ops/face.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/slicing.h"
#include "pantala/error.h"
#include "schedule/archetype.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

namespace {

// Recomputing a value that several kernels read is worth it only if it costs no more than this, in
// additions.
constexpr double kRecomputed = 5;
// Code for several elements of a value, or for one element at several places, is written out each
// time if it has no more values than this. Otherwise the value is stored: what is repeated would
// multiply from level to level.
constexpr double kMostRepeated = 32;
// No code is larger than this, in values.
constexpr double kMostCode = 1024;
// A concat computes all its operands for each of its elements: one that is joined itself and larger
// than this, in values, is stored.
constexpr double kMostJoined = 16;

class Finder {
 public:
  Finder(const Context& context, DecisionMemo& memo)
      : c_(context),
        graph_(context.graph()),
        memo_(memo),
        walker_(context, [this](ValueId v) { return load(v); }) {
    pieces_.of_node.resize(graph_.nodes().size());
    stored_.assign(graph_.nodes().size(), false);
    users_.resize(graph_.nodes().size());
    cost_.assign(graph_.nodes().size(), 0);
    size_.assign(graph_.nodes().size(), 1);
    times_read_.assign(graph_.nodes().size(), 0);
  }

  Pieces run() {
    find_users();
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) decide(id);
    // Operands are stored before the pieces read them, so that one look decides.
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) lay_out_operands(id);
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) {
      c_.check();
      if (stored_[id]) add(id);
    }
    return std::move(pieces_);
  }

 private:
  bool skip(std::uint32_t id) const {
    const ir::Node& n = graph_.node(id);
    return is_leaf(*n.op) || c_.is_host({id, 0});
  }

  void find_users() {
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id)
      if (!skip(id)) {
        add_user(id);
        has_apart_ |= ops::is<op::Apart>(graph_.node(id));
      }
    for (const auto& [name, value] : graph_.outputs()) results_.insert(value.node);
    for (const auto& [leaf, value] : graph_.updates()) results_.insert(value.node);
    for (auto& list : users_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  void add_user(std::uint32_t id) {
    const ir::Node& n = graph_.node(id);
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      users_[n.inputs[k].node].push_back(id);
      times_read_[n.inputs[k].node] += elements_read(graph_, n, k);
    }
  }

  // The values that the code of one element computes or loads, if nothing of it is shared.
  double code_size(const ir::Node& n) const {
    double size = 1;
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const std::uint32_t input = n.inputs[k].node;
      size += static_cast<double>(elements_read(graph_, n, k)) *
              (skip(input) || stored_[input] ? 1 : size_[input]);
    }
    return size;
  }

  // Stores a value, or what it is moved from if that is no larger: then the moves cost nothing.
  void store_smallest(std::uint32_t id) {
    std::vector<std::uint32_t> moved;  // from the value to what is stored
    std::size_t chosen = 0;
    for (std::uint32_t at = id;; at = graph_.node(at).inputs[0].node) {
      moved.push_back(at);
      if (numel(at) <= numel(moved[chosen])) chosen = moved.size() - 1;
      const ir::Node& n = graph_.node(at);
      if (!is_movement(*n.op) || skip(n.inputs[0].node) || stored_[n.inputs[0].node]) break;
    }
    stored_[moved[chosen]] = true;
    for (std::size_t k = chosen; k-- > 0;) {
      size_[moved[k]] = static_cast<double>(chosen - k + 1);
      cost_[moved[k]] = 1;
    }
  }
  std::int64_t numel(std::uint32_t id) const { return graph_.node(id).results[0].shape.numel(); }

  void decide(std::uint32_t id) {
    if (skip(id)) return;
    const ir::Node& n = graph_.node(id);
    if (ops::is<op::UpdateSlice>(n)) store_update(n);
    if (ops::is<op::Concat>(n)) store_joined(n);
    if (is_anchor(n) || results_.contains(id) || ops::is<op::Kept>(n) || !c_.options.fuse) {
      stored_[id] = true;
      return;
    }
    double cost = is_scalar_op(*n.op) ? scalar_op_cost(*n.op) : 0;
    if (!is_movement(*n.op) && !is_scalar_op(*n.op)) cost = 4;
    for (const ValueId input : n.inputs)
      if (!skip(input.node) || is_leaf(*graph_.node(input.node).op))
        cost += stored_[input.node] || is_leaf(*graph_.node(input.node).op) ? 1 : cost_[input.node];
    cost_[id] = cost;
    stored_[id] = users_[id].size() > 1 && cost > kRecomputed && !is_movement(*n.op);
    size_[id] = code_size(n);
    const bool repeats = times_read_[id] > 1 && size_[id] > kMostRepeated;
    if (!stored_[id] && (repeats || size_[id] > kMostCode)) store_smallest(id);
  }

  // What is written into a part of a tensor would be computed, and thrown away, for all of it.
  void store_update(const ir::Node& n) {
    const ValueId update = n.inputs[1];
    if (!skip(update.node) && cost_[update.node] > kRecomputed &&
        c_.type(update).shape != n.results[0].shape)
      stored_[update.node] = true;
  }

  void store_joined(const ir::Node& n) {
    for (const ValueId input : n.inputs)
      if (!skip(input.node) && ops::is<op::Concat>(graph_.node(input.node)) &&
          size_[input.node] > kMostJoined)
        stored_[input.node] = true;
  }

  void lay_out_operands(std::uint32_t id) {
    if (skip(id)) return;
    const ir::Node& n = graph_.node(id);
    const Archetype& archetype = archetype_of(n);
    if (archetype.must_store == nullptr) return;
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      if (must_store(archetype, id, k) && !store_source(archetype, id, k))
        stored_[n.inputs[k].node] = true;
  }
  // What an operand is moved from, if the node can read it there; whether it was stored.
  bool store_source(const Archetype& archetype, std::uint32_t id, std::size_t operand) {
    if (!archetype.reads_moved) return false;
    const std::uint32_t given = graph_.node(id).inputs[operand].node;
    std::uint32_t source = given;
    while (!stored_[source] && is_movement(*graph_.node(source).op) &&
           !skip(graph_.node(source).inputs[0].node))
      source = graph_.node(source).inputs[0].node;
    if (source == given || stored_[source] || numel(source) > numel(given)) return false;
    stored_[source] = true;
    if (!must_store(archetype, id, operand)) return true;
    stored_[source] = false;
    return false;
  }
  bool must_store(const Archetype& archetype, std::uint32_t id, std::size_t operand) {
    walk(archetype, id);
    walker_.word(operand);
    if (const auto known = memo_.must_store.find(walker_.words()); known != memo_.must_store.end())
      return known->second;
    const FormWords form = walker_.words();
    const std::uint64_t checks = c_.index_checks();
    const bool answer = archetype.must_store(c_, id, operand, [&](ValueId v) { return held(v); });
    if (checks == c_.index_checks()) memo_.must_store.emplace(form, answer);
    return answer;
  }

  bool held(ValueId v) const {
    if (stored_[v.node]) return true;
    const ir::Node& n = graph_.node(v.node);
    return is_leaf(*n.op) && !c_.is_host(v) && !ir::splat_value(n);
  }

  // A leaf that must be stored (a constant, a number of the host) is written by a map.
  const Archetype& archetype_of(const ir::Node& n) const {
    return is_leaf(*n.op) ? c_.archetypes.map() : *c_.archetypes.find(*n.op);
  }
  bool is_anchor(const ir::Node& n) const { return &archetype_of(n) != &c_.archetypes.map(); }

  void add(std::uint32_t id) {
    const ir::Node& n = graph_.node(id);
    for (std::uint32_t k = 0; k < n.results.size(); ++k) pieces_.stored.insert({id, k});
    const Archetype& archetype = archetype_of(n);
    Found found = reads_of(archetype, id);
    pieces_.of_node[id] =
        pieces_.list.push_back({id, &archetype, is_anchor(n), std::move(found.reads.domain),
                                std::move(found.reads.accesses), found.reads.size, found.form,
                                std::move(loads_), std::move(found.reads.conditional), apart(id)});
  }

  // Writes the form of a node's code, and what that loads.
  void walk(const Archetype& archetype, std::uint32_t id) {
    loads_.clear();
    walked_ = id;
    walker_.begin();
    walker_.word(fnv1a(archetype.name));
    walker_.node(id);
  }
  bool load(ValueId v) {
    if (v.node == walked_ || !held(v)) return false;
    const auto known = std::ranges::find(loads_, v);
    walker_.word(static_cast<std::uint64_t>(known - loads_.begin()));
    if (known != loads_.end()) return true;
    loads_.push_back(v);
    walker_.word(static_cast<std::uint64_t>(c_.type(v).dtype));
    walker_.words(c_.type(v).shape.vec());
    walker_.words(c_.order_of(v));
    return true;
  }

  // What the code of a node reads, by its form.
  struct Found {
    Reads reads;
    std::uint32_t form = 0;
  };
  Found reads_of(const Archetype& archetype, std::uint32_t id) {
    walk(archetype, id);
    const auto known = memo_.reads.find(walker_.words());
    if (known != memo_.reads.end())
      return {with_values(known->second.reads, [&](ValueId v) { return loads_[v.node]; }),
              known->second.number};
    ValueInfo info = c_.info();
    info.strides = [&](ValueId v) { return c_.type(v).shape.strides(); };
    info.is_stored = [&](ValueId v) { return v.node != id && held(v); };
    const std::uint64_t checks = c_.index_checks();
    Found found{archetype.reads(c_, info, id), memo_.forms++};
    // What is said about indices belongs to a node, and is said anew each time.
    if (checks == c_.index_checks())
      memo_.reads.emplace(
          walker_.words(),
          DecisionMemo::KnownReads{
              found.form, with_values(found.reads, [&](ValueId v) { return numbered(v); })});
    return found;
  }
  template <class Change>
  static Reads with_values(Reads reads, const Change& change) {
    for (Access& access : reads.accesses) access.value = change(access.value);
    for (ValueId& value : reads.conditional) value = change(value);
    return reads;
  }
  ValueId numbered(ValueId v) const {
    const auto at = std::ranges::find(loads_, v);
    if (at == loads_.end()) throw InternalError("schedule: the form of a piece lacks a value");
    return {static_cast<std::uint32_t>(at - loads_.begin()), 0};
  }

  // Found among what the code of a node computes.
  std::vector<ValueId> apart(std::uint32_t id) const {
    std::vector<ValueId> found;
    if (has_apart_) add_apart(id, false, found);
    return found;
  }
  void add_apart(std::uint32_t id, bool is_apart, std::vector<ValueId>& found) const {
    is_apart = is_apart || ops::is<op::Apart>(graph_.node(id));
    for (const ValueId input : graph_.node(id).inputs) {
      if (!skip(input.node) && !stored_[input.node])
        add_apart(input.node, is_apart, found);
      else if (is_apart)
        found.push_back(input);
    }
  }

  const Context& c_;
  const ir::GraphData& graph_;
  DecisionMemo& memo_;
  CodeWalker walker_;
  std::uint32_t walked_ = 0;    // the node whose code is walked
  std::vector<ValueId> loads_;  // of that code
  Pieces pieces_;
  std::vector<bool> stored_;
  std::vector<std::vector<std::uint32_t>> users_;
  std::set<std::uint32_t> results_;
  bool has_apart_ = false;
  std::vector<double> cost_;
  std::vector<double> size_;              // of the code of an element that is not stored
  std::vector<std::int64_t> times_read_;  // elements that the code of its readers asks for
};

}  // namespace

Pieces find_pieces(const Context& context, DecisionMemo& memo) {
  return Finder(context, memo).run();
}

}  // namespace pantala::schedule
