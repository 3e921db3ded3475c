// The faces of the activations that others speak of.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct LeakyRelu : ir::Face<"leaky_relu"> {
  struct Attrs {
    double slope = 0.01;
    static void fields(auto&& f, auto& a) { f("slope", a.slope, "slope below 0"); }
  };
};

struct Elu : ir::Face<"elu"> {
  struct Attrs {
    double alpha = 1;
    static void fields(auto&& f, auto& a) { f("alpha", a.alpha, "limit below 0, negated"); }
  };
};

struct Sigmoid : ir::Face<"sigmoid"> {};

struct Silu : ir::Face<"silu"> {};

}  // namespace pantala::op
