// The faces of softmax and of the normalisations that others speak of.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct SoftmaxAttrs {
  std::int64_t axis = -1;
  static void fields(auto&& f, auto& a) {
    f("axis", a.axis, "the axis whose elements share a sum");
  }
};

struct Softmax : ir::Face<"softmax"> {
  using Attrs = SoftmaxAttrs;
};

struct LogSoftmax : ir::Face<"log_softmax"> {
  using Attrs = SoftmaxAttrs;
};

struct EpsAttrs {
  double eps = 1e-5;
  static void fields(auto&& f, auto& a) { f("eps", a.eps, "added to the variance"); }
};

struct LayerNorm : ir::Face<"layer_norm"> {
  using Attrs = EpsAttrs;
};

struct RmsNorm : ir::Face<"rms_norm"> {
  using Attrs = EpsAttrs;
};

struct GroupNorm : ir::Face<"group_norm"> {
  struct Attrs {
    std::int64_t groups = 1;
    double eps = 1e-5;
    static void fields(auto&& f, auto& a) {
      f("groups", a.groups, "number of groups of channels", ir::Field::required);
      f("eps", a.eps, "added to the variance");
    }
  };
};

struct BatchNormTrain : ir::Face<"batch_norm_train"> {
  struct Attrs {
    double momentum = 0.1, eps = 1e-5;
    static void fields(auto&& f, auto& a) {
      f("momentum", a.momentum, "the share of this batch in the new running statistics");
      f("eps", a.eps, "added to the variance");
    }
  };
};

struct BatchNormEval : ir::Face<"batch_norm_eval"> {
  using Attrs = EpsAttrs;
};

}  // namespace pantala::op
