// What the losses share: how elements or rows are reduced, and the attribute that says so.
#pragma once

#include <optional>
#include <vector>

#include "ops/define.h"

namespace pantala::ir {
template <>
struct EnumNames<Reduction> {
  static constexpr const char* names[] = {"mean", "sum", "none"};
};
}  // namespace pantala::ir

namespace pantala::ops {

struct LossFamily {
  static constexpr std::string_view kFamily = "loss";
};

void reduction_field(auto&& f, auto& a) {
  f("reduction", a.reduction,
    "mean, sum, or none: the elements (rows for class losses) as they are");
}

struct LossAttrs {
  Reduction reduction = Reduction::mean;
  static void fields(auto&& f, auto& a) { reduction_field(f, a); }
};

inline Type reduced_type(DType dtype, const Shape& elements, Reduction reduction) {
  return {dtype, reduction == Reduction::none ? elements : Shape{}};
}

// The mean is over `count` things: elements, or rows of classes.
inline Tensor reduced(const Tensor& x, Reduction reduction, std::int64_t count) {
  if (reduction == Reduction::none) return x;
  return reduction == Reduction::sum ? sum(x) : sum(x) / static_cast<double>(count);
}

// An optional last input.
inline std::vector<Operand> with_weight(std::vector<Operand> inputs,
                                        const std::optional<Tensor>& weight) {
  if (weight) inputs.emplace_back(*weight);
  return inputs;
}

// The losses of several classes, in a file of their own.
std::vector<const OpDef*> class_loss_ops();

}  // namespace pantala::ops
