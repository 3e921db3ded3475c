// The largest or smallest elements along an axis.
#pragma once

#include "pantala/tensor.h"

namespace pantala {

struct TopkOptions {
  std::int64_t axis = -1;
  bool largest = true;  // or the smallest
};
struct Topk {
  Tensor values, indices;  // indices are i64
};
// The k largest elements, the largest first; of equals the first come first. NaN is larger than
// every number. The gradient goes to the elements that were taken.
Topk topk(Operand x, std::int64_t k, const TopkOptions& options = {});

}  // namespace pantala
