// The face of top_indices, which finds what topk takes.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct TopkAttrs {
  std::int64_t k = 1, axis = -1;
  bool largest = true;
  static void fields(auto&& f, auto& a) {
    f("k", a.k, "how many elements are taken", ir::Field::required);
    f("axis", a.axis, "the axis");
    f("largest", a.largest, "the largest, or else the smallest");
  }
};

struct TopIndices : ir::Face<"top_indices"> {
  using Attrs = TopkAttrs;
};

}  // namespace pantala::op
