#include "ops/optimizers/update.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::ops {

namespace {
constexpr std::size_t kLeading = 2;  // weight and gradient

SampleInput sample_input(const Slot& slot, const Shape& shape,
                         const std::vector<SlotRange>& ranges) {
  double low = slot.scalar ? 0.3 : 0.5, high = slot.scalar ? 0.7 : 1;
  for (const SlotRange& range : ranges)
    if (range.name == slot.name) low = range.low, high = range.high;
  return slot.scalar ? SampleInput{{}, low, high, f64, false} : floats(shape, low, high);
}
}  // namespace

std::vector<Slot> slots_of(const OpDef& op, const std::function<bool(std::string_view)>& has) {
  std::vector<Slot> slots;
  for (std::size_t i = kLeading; i < op.inputs.size(); ++i) {
    const ir::ArgSpec& input = op.inputs[i];
    if (input.optional && !has(input.name)) continue;
    const bool is_state =
        std::find(op.results.begin(), op.results.end(), input.name) != op.results.end();
    slots.push_back({input.name, !is_state});
  }
  return slots;
}

void infer_update(InferContext& c, const std::vector<Slot>& slots) {
  c.require_float(0);
  if (c.in(1) != c.in(0))
    c.fail(fmt::format("gradient must be {} as the weight, got {}", c.in(0).str(), c.in(1).str()));
  const std::size_t count = kLeading + slots.size();
  if (c.count() != static_cast<int>(count))
    c.fail(fmt::format("takes {} inputs with these attributes, got {}: {}", count, c.count(),
                       c.describe_inputs()));
  c.result(c.in(0));
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const Slot& slot = slots[k];
    const Type& type = c.in(static_cast<int>(kLeading + k));
    if (slot.scalar) {
      if (type != Type{f64, {}})
        c.fail(fmt::format("{} must be a scalar f64[], got {}", slot.name, type.str()));
      continue;
    }
    if (type != c.in(0))
      c.fail(
          fmt::format("{} must be {} as the weight, got {}", slot.name, c.in(0).str(), type.str()));
    c.result(c.in(0));
  }
}

const Tensor& UpdateInputs::operator[](std::string_view name) const {
  const auto slot =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.name == name; });
  if (slot == slots_.end())
    throw InternalError(fmt::format("an update op has no input '{}'", name));
  return c_.in(static_cast<int>(kLeading) + static_cast<int>(slot - slots_.begin()));
}

Tensor UpdateInputs::mix(std::string_view rate, const Tensor& old, const Tensor& fresh) const {
  return rounded(rate) * old + round(1.0 - (*this)[rate]) * fresh;
}

Tensor UpdateInputs::decayed_gradient(bool decoupled) const {
  return decoupled ? gradient() : gradient() + rounded("weight_decay") * weight();
}

Tensor UpdateInputs::decayed_weight(bool decoupled) const {
  return decoupled ? weight() * round(1.0 - (*this)["lr"] * (*this)["weight_decay"]) : weight();
}

std::vector<Sample> update_samples(const std::vector<Slot>& slots, const AttrValues& attrs,
                                   const std::vector<SlotRange>& ranges) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 3}, Shape{2, 1, 5}, Shape{0, 4}}) {
    Sample one{{floats(shape), floats(shape, 0.2, 1)}, attrs};
    for (const Slot& slot : slots) one.inputs.push_back(sample_input(slot, shape, ranges));
    samples.push_back(std::move(one));
  }
  return samples;
}

UpdateResult apply_update(const OpDef& op, const UpdateVariant& variant, const Operand& weight,
                          const Operand& gradient, const UpdateStates& states,
                          const UpdateScalars& scalars) {
  const auto scalar_count = static_cast<std::size_t>(std::count_if(
      variant.slots.begin(), variant.slots.end(), [](const Slot& s) { return s.scalar; }));
  const std::size_t state_count = variant.slots.size() - scalar_count;
  if (scalars.size() != scalar_count || states.size() != state_count)
    throw TypeError(fmt::format("{}: takes {} states and {} scalars, got {} and {}", op.name,
                                state_count, scalar_count, states.size(), scalars.size()));
  std::vector<Operand> inputs{weight, gradient};
  auto next_state = states.begin(), next_scalar = scalars.begin();
  for (const Slot& slot : variant.slots)
    inputs.emplace_back(slot.scalar ? *next_scalar++ : *next_state++, weight.where());
  const std::vector<Tensor> results = apply(op, inputs, variant.attrs);
  return {results[0], {results.begin() + 1, results.end()}};
}

}  // namespace pantala::ops
