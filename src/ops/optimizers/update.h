// What update ops share. An update op is a composite: one step of one parameter, expanded into
// ordinary ops. Its signature says everything about its inputs: weight and gradient come first;
// what is also a result is a state, what is not is a scalar; what only some variants have is
// optional, stands at the end, and `has(name, attributes)` says which variants those are.
//
// Arithmetic between scalars is done in f64 and rounded once, when a scalar meets a tensor: 1 -
// beta2 taken in f32 would be wrong in the fifth digit.
#pragma once

#include <functional>

#include "ops/define.h"
#include "ops/optimizers/table.h"

namespace pantala::ops {

struct UpdateOp {
  static constexpr std::string_view kFamily = "update";
};

// For ops whose only variant is this one.
struct DecayAttrs {
  bool decoupled = false;
  static void fields(auto&& f, auto& a) {
    f("decoupled", a.decoupled, "weight decay acts on the weight, not on the gradient");
  }
};

std::vector<Slot> slots_of(const OpDef& op, const std::function<bool(std::string_view)>& has);

// The inputs that the op has with these attributes, after weight and gradient.
template <class Op>
std::vector<Slot> slots_of(const attrs_t<Op>& attrs = {}) {
  return slots_of(op_def<Op>(), [&]([[maybe_unused]] std::string_view name) {
    if constexpr (requires { Op::has(name, attrs); })
      return Op::has(name, attrs);
    else
      return false;
  });
}

void infer_update(InferContext& c, const std::vector<Slot>& slots);
// The shape rule.
template <class Op>
void infer_update(InferContext& c, const attrs_t<Op>& attrs = {}) {
  infer_update(c, slots_of<Op>(attrs));
}

// The inputs of an expansion by name.
class UpdateInputs {
 public:
  UpdateInputs(const ExpandContext& c, std::vector<Slot> slots) : c_(c), slots_(std::move(slots)) {}
  const Tensor& weight() const { return c_.in(0); }
  const Tensor& gradient() const { return c_.in(1); }
  const Tensor& operator[](std::string_view name) const;
  // An f64 value, rounded to the weight's dtype.
  Tensor round(const Tensor& value) const { return cast(value, weight().dtype()); }
  Tensor rounded(std::string_view name) const { return round((*this)[name]); }
  // rate * old + (1 - rate) * fresh.
  Tensor mix(std::string_view rate, const Tensor& old, const Tensor& fresh) const;
  // The gradient of the loss with the L2 penalty; without it where the decay is decoupled.
  Tensor decayed_gradient(bool decoupled = false) const;
  // The weight that the step starts from.
  Tensor decayed_weight(bool decoupled) const;

 private:
  const ExpandContext& c_;
  std::vector<Slot> slots_;
};
template <class Op>
UpdateInputs inputs_of(const ExpandContext& c, const attrs_t<Op>& attrs = {}) {
  return {c, slots_of<Op>(attrs)};
}

// Ranges of sample values. Gradients are positive and all scalars lie in [0.3, 0.7), so that no
// sample is near a kink, unless a range says otherwise.
struct SlotRange {
  std::string_view name;
  double low, high;
};
std::vector<Sample> update_samples(const std::vector<Slot>& slots, const AttrValues& attrs,
                                   const std::vector<SlotRange>& ranges);
template <class Op>
void add_samples(std::vector<Sample>& all, const attrs_t<Op>& attrs = {},
                 const std::vector<SlotRange>& ranges = {}) {
  for (Sample& one : update_samples(slots_of<Op>(attrs), ir::to_values(attrs), ranges))
    all.push_back(std::move(one));
}

// A node of the op.
template <class Op>
UpdateResult make_update(const Operand& weight, const Operand& gradient, const UpdateStates& states,
                         const UpdateScalars& scalars, const attrs_t<Op>& attrs = {}) {
  return apply_update(op_def<Op>(), {ir::to_values(attrs), slots_of<Op>(attrs)}, weight, gradient,
                      states, scalars);
}

}  // namespace pantala::ops
