#include "kir/uniform.h"

#include <algorithm>

namespace pantala::kir {

namespace {

class Uniformity {
 public:
  explicit Uniformity(const Kernel& kernel) : varies_(kernel.types.size(), false) {
    for (std::size_t k = 1; k < kernel.body.params.size(); ++k) mark(kernel.body.params[k]);
    // Carried values are thought to be uniform until a yield says otherwise, so it is gone through
    // until nothing changes; every round marks a value at least.
    do {
      changed_ = false;
      visit(kernel.body);
    } while (changed_);
  }

  const Inst* divergent_meeting(const Block& block, bool together) const {
    for (const Inst& inst : block.body) {
      if (is_meeting(inst.op) && !together) return &inst;
      for (const Block& inner : inst.blocks)
        if (const Inst* found = divergent_meeting(inner, together && !varies_control(inst)))
          return found;
    }
    return nullptr;
  }

 private:
  bool varies(Value v) const { return varies_[v.id]; }
  void mark(Value v) {
    changed_ = changed_ || !varies_[v.id];
    varies_[v.id] = true;
  }
  bool any_varies(const std::vector<Value>& values) const {
    return std::ranges::any_of(values, [&](Value v) { return varies(v); });
  }
  // Whether threads may take different ways through a loop or branch.
  bool varies_control(const Inst& inst) const {
    const std::size_t own = inst.op == Op::loop ? 3 : 1;
    for (std::size_t k = 0; k < own; ++k)
      if (varies(inst.args[k])) return true;
    return false;
  }

  void visit(const Block& block) {
    for (const Inst& inst : block.body) visit(inst);
  }
  void visit(const Inst& inst) {
    if (!inst.blocks.empty()) return structure(inst);
    if (is_meeting(inst.op) || !any_varies(inst.args)) return;
    for (const Value v : inst.results) mark(v);
  }
  void structure(const Inst& inst) {
    const bool apart = varies_control(inst);
    const bool loops = inst.op == Op::loop;
    if (loops && apart) mark(inst.blocks[0].params[0]);
    for (std::size_t k = 0; k < inst.results.size(); ++k)
      if (loops && (apart || varies(inst.args[k + 3]))) mark(inst.blocks[0].params[k + 1]);
    for (const Block& block : inst.blocks) visit(block);
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      const bool differs = apart || std::ranges::any_of(inst.blocks, [&](const Block& b) {
                             return k < b.yields.size() && varies(b.yields[k]);
                           });
      if (differs || (loops && varies(inst.blocks[0].params[k + 1]))) mark(inst.results[k]);
      if (differs && loops) mark(inst.blocks[0].params[k + 1]);
    }
  }

  std::vector<bool> varies_;
  bool changed_ = false;
};

}  // namespace

const Inst* divergent_meeting(const Kernel& kernel) {
  if (kernel.threads == 1) return nullptr;
  return Uniformity(kernel).divergent_meeting(kernel.body, true);
}

}  // namespace pantala::kir
