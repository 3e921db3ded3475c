// The faces of attention, of its gradient, and of attention to cached keys.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct AttentionAttrs {
  bool causal = false;
  std::int64_t window = 0;
  double scale = 0;
  static void fields(auto&& f, auto& a) {
    f("causal", a.causal, "query i sees keys up to i");
    f("window", a.window, "with causal: how many of the last keys are seen; 0: all");
    f("scale", a.scale, "factor of the scores; 0: 1 / sqrt(head_dim)");
  }
};

struct Attention : ir::Face<"attention"> {
  using Attrs = AttentionAttrs;
};

struct AttentionGrad : ir::Face<"attention_grad"> {
  using Attrs = AttentionAttrs;
};

struct AttentionCached : ir::Face<"attention_cached"> {
  using Attrs = AttentionAttrs;
};

}  // namespace pantala::op
