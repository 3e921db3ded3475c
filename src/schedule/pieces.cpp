#include "schedule/pieces.h"

#include <algorithm>

#include "schedule/cpu/product.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

namespace {

// Recomputing a value that several kernels read is worth it only if it costs no more than this, in
// additions.
constexpr double kRecomputed = 5;

class Finder {
 public:
  explicit Finder(const Context& context) : c_(context), graph_(context.graph()) {
    pieces_.of_node.assign(graph_.nodes().size(), -1);
    stored_.assign(graph_.nodes().size(), false);
    users_.resize(graph_.nodes().size());
    cost_.assign(graph_.nodes().size(), 0);
  }

  Pieces run() {
    find_users();
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) decide(id);
    // Operands are stored before the pieces read them, so that one look decides.
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id) lay_out_operands(id);
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id)
      if (stored_[id]) add(id);
    return std::move(pieces_);
  }

 private:
  bool skip(std::uint32_t id) const {
    const ir::Node& n = graph_.node(id);
    return is_leaf(*n.op) || c_.is_host({id, 0});
  }

  void find_users() {
    for (std::uint32_t id = 0; id < graph_.nodes().size(); ++id)
      if (!skip(id))
        for (const ValueId input : graph_.node(id).inputs) users_[input.node].push_back(id);
    for (const auto& [name, value] : graph_.outputs) results_.insert(value.node);
    for (const auto& [leaf, value] : graph_.updates) results_.insert(value.node);
    for (auto& list : users_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  void decide(std::uint32_t id) {
    if (skip(id)) return;
    const ir::Node& n = graph_.node(id);
    if (n.op->name == "update_slice") store_update(n);
    const Archetype kind = archetype(*n.op);
    if (kind != Archetype::elemental || results_.contains(id) || !c_.options.fuse) {
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
  }

  // What is written into a part of a tensor would be computed, and thrown away, for all of it.
  void store_update(const ir::Node& n) {
    const ValueId update = n.inputs[1];
    if (!skip(update.node) && cost_[update.node] > kRecomputed &&
        c_.type(update).shape != n.results[0].shape)
      stored_[update.node] = true;
  }

  // Products read their operands where they lie, through movement; other anchors need them stored
  // as they are.
  void lay_out_operands(std::uint32_t id) {
    if (skip(id)) return;
    const ir::Node& n = graph_.node(id);
    const Archetype kind = archetype(*n.op);
    if (kind != Archetype::contract && kind != Archetype::convolution &&
        kind != Archetype::attention)
      return;
    for (std::size_t side = 0; side < n.inputs.size(); ++side) {
      const ValueId input = n.inputs[side];
      if (kind == Archetype::contract &&
          operand_of(c_, id, static_cast<int>(side), [&](ValueId v) { return held(v); }))
        continue;
      // A number of the host, such as the length of a cache, is a parameter.
      if (!held(input) && !(c_.is_host(input) && kind == Archetype::attention))
        stored_[input.node] = true;
    }
  }

  bool held(ValueId v) const {
    if (stored_[v.node]) return true;
    const ir::Node& n = graph_.node(v.node);
    return is_leaf(*n.op) && !c_.is_host(v) && !ir::splat_value(n);
  }

  void add(std::uint32_t id) {
    const ir::Node& n = graph_.node(id);
    Piece piece;
    piece.node = id;
    piece.kind = is_leaf(*n.op) ? Archetype::elemental : archetype(*n.op);
    for (std::uint32_t k = 0; k < n.results.size(); ++k) pieces_.stored.insert({id, k});
    ValueInfo info = c_.info();
    info.strides = [&](ValueId v) { return c_.type(v).shape.strides(); };
    info.is_stored = [&](ValueId v) { return v.node != id && held(v); };
    const auto read = [&](ValueId value, const Shape& shape) {
      piece.domain.sizes = shape.vec();
      return trace(info, piece.domain, {value}, loop_indices(shape.rank())).accesses;
    };
    switch (piece.kind) {
      case Archetype::elemental:
        piece.reads = read({id, 0}, n.results[0].shape);
        break;
      case Archetype::reduce:
      case Archetype::search:
      case Archetype::scan:
        piece.reads = read(n.inputs[0], c_.type(n.inputs[0]).shape);
        break;
      case Archetype::scatter:
        piece.domain.sizes = n.results[0].shape.vec();
        for (const ValueId input : n.inputs)
          for (const Access& access : elements_read(info, input))
            piece.reads.push_back({access.value, {}, {}});
        break;
      case Archetype::contract:
        piece.domain.sizes = n.results[0].shape.vec();
        for (int side = 0; side < 2; ++side)
          piece.reads.push_back(
              {operand_of(c_, id, side, [&](ValueId v) { return held(v); })->source, {}, {}});
        break;
      default:
        piece.domain.sizes = n.results[0].shape.vec();
        for (const ValueId input : n.inputs)
          if (held(input)) piece.reads.push_back({input, {}, {}});
    }
    pieces_.of_node[id] = static_cast<int>(pieces_.list.size());
    pieces_.list.push_back(std::move(piece));
  }

  std::vector<Access> elements_read(const ValueInfo& info, ValueId value) const {
    const Shape& shape = c_.type(value).shape;
    return trace(info, {shape.vec()}, {value}, loop_indices(shape.rank())).accesses;
  }

  const Context& c_;
  const ir::GraphData& graph_;
  Pieces pieces_;
  std::vector<bool> stored_;
  std::vector<std::vector<std::uint32_t>> users_;
  std::set<std::uint32_t> results_;
  std::vector<double> cost_;
};

}  // namespace

Pieces find_pieces(const Context& context) { return Finder(context).run(); }

}  // namespace pantala::schedule
