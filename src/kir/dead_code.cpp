#include "kir/dead_code.h"

#include <unordered_map>
#include <unordered_set>

namespace pantala::kir {

namespace {

bool has_effect(const Inst& inst) {
  return inst.op == Op::store || inst.op == Op::store_strided || inst.op == Op::prefetch ||
         inst.op == Op::report || is_meeting(inst.op);
}

// Finds the live values and instructions, from the effects backwards.
class Liveness {
 public:
  explicit Liveness(const Kernel& kernel)
      : live_(kernel.types.size(), false), defined_by_(kernel.types.size(), nullptr) {
    index(kernel.body, nullptr);
    for (const Inst* inst : effects_) keep(inst);
    while (!pending_.empty()) {
      const Value v = pending_.back();
      pending_.pop_back();
      trace(v);
    }
  }
  bool live(Value v) const { return live_[v.id]; }
  bool live(const Inst& inst) const { return kept_.contains(&inst); }
  // Whether a loop still carries its k-th value, or an if still yields it.
  bool carried(const Inst& inst, std::size_t k) const {
    return live(inst.results[k]) || (inst.op == Op::loop && live(inst.blocks[0].params[k + 1]));
  }

 private:
  void index(const Block& block, const Inst* owner) {
    for (const Value v : block.params) defined_by_[v.id] = owner;
    for (const Inst& inst : block.body) {
      owner_[&inst] = owner;
      for (const Value v : inst.results) defined_by_[v.id] = &inst;
      if (has_effect(inst)) effects_.push_back(&inst);
      for (const Block& b : inst.blocks) index(b, &inst);
    }
  }

  void need(Value v) {
    if (live_[v.id]) return;
    live_[v.id] = true;
    pending_.push_back(v);
  }
  // An instruction that stays needs its operands and the instructions around it; carried values are
  // needed one by one, in trace().
  void keep(const Inst* inst) {
    if (!inst || !kept_.insert(inst).second) return;
    const std::size_t own = inst->op == Op::loop ? 3 : inst->args.size();
    for (std::size_t k = 0; k < own; ++k) need(inst->args[k]);
    keep(owner_[inst]);
  }
  void trace(Value v) {
    const Inst* inst = defined_by_[v.id];
    keep(inst);
    if (!inst) return;
    for (std::size_t k = 0; k < inst->results.size() && !inst->blocks.empty(); ++k) {
      const bool here =
          inst->results[k] == v || (inst->op == Op::loop && inst->blocks[0].params[k + 1] == v);
      if (!here) continue;
      for (const Block& block : inst->blocks) need(block.yields[k]);
      if (inst->op == Op::loop) need(inst->args[k + 3]);
    }
  }

  std::vector<bool> live_;
  std::vector<const Inst*> defined_by_;  // of a block's parameter: the owner of the block
  std::unordered_map<const Inst*, const Inst*> owner_;
  std::unordered_set<const Inst*> kept_;
  std::vector<const Inst*> effects_;
  std::vector<Value> pending_;
};

class Copier {
 public:
  Copier(const Kernel& kernel, const Liveness& liveness, Kernel& out)
      : kernel_(kernel), liveness_(liveness), out_(out), map_(kernel.types.size()) {}

  Value define(Value v) {
    out_.types.push_back(kernel_.type(v));
    return map_[v.id] = Value{static_cast<std::uint32_t>(out_.types.size() - 1)};
  }

  void copy(const Block& from, Block& to) {
    for (const Inst& inst : from.body)
      if (liveness_.live(inst)) to.body.push_back(copy(inst));
  }

 private:
  Inst copy(const Inst& from) {
    Inst to = from;
    to.args.clear(), to.results.clear(), to.blocks.clear();
    const bool structured = !from.blocks.empty();
    const std::size_t own = from.op == Op::loop ? 3 : from.args.size();
    for (std::size_t k = 0; k < from.args.size(); ++k)
      if (k < own || liveness_.carried(from, k - own)) to.args.push_back(map_[from.args[k].id]);
    for (const Block& block : from.blocks) {
      Block inner;
      for (std::size_t k = 0; k < block.params.size(); ++k)
        if (k == 0 || liveness_.carried(from, k - 1))
          inner.params.push_back(define(block.params[k]));
      copy(block, inner);
      for (std::size_t k = 0; k < block.yields.size(); ++k)
        if (liveness_.carried(from, k)) inner.yields.push_back(map_[block.yields[k].id]);
      to.blocks.push_back(std::move(inner));
    }
    for (std::size_t k = 0; k < from.results.size(); ++k)
      if (!structured || liveness_.carried(from, k)) to.results.push_back(define(from.results[k]));
    return to;
  }

  const Kernel& kernel_;
  const Liveness& liveness_;
  Kernel& out_;
  std::vector<Value> map_;
};

}  // namespace

Kernel remove_dead_code(const Kernel& kernel) {
  const Liveness liveness(kernel);
  Kernel out{.name = kernel.name,
             .buffers = kernel.buffers,
             .params = kernel.params,
             .types = {},
             .body = {},
             .threads = kernel.threads};
  Copier copier(kernel, liveness, out);
  for (const Value v : kernel.body.params) out.body.params.push_back(copier.define(v));
  copier.copy(kernel.body, out.body);
  return out;
}

}  // namespace pantala::kir
