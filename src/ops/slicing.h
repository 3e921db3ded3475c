// The faces of the ops that cut tensors apart and put them together.
#pragma once

#include "ops/movement.h"

namespace pantala::op {

struct Slice : ir::Face<"slice"> {
  struct Attrs {
    ir::Ints starts, ends, steps;
    static void fields(auto&& f, auto& a) {
      f("starts", a.starts, "first index per axis", ir::Field::required);
      f("ends", a.ends, "index behind the last, per axis", ir::Field::required);
      f("steps", a.steps, "distance per axis, at least 1; empty: all 1");
    }
  };
};

struct Pad : ir::Face<"pad"> {
  struct Attrs {
    ir::Ints before, after, interior;
    double value = 0;
    static void fields(auto&& f, auto& a) {
      f("before", a.before, "elements added before, per axis", ir::Field::required);
      f("after", a.after, "elements added behind, per axis", ir::Field::required);
      f("interior", a.interior, "elements added between neighbours, per axis; empty: none");
      f("value", a.value, "value of the added elements");
    }
  };
};

struct Flip : ir::Face<"flip"> {
  using Attrs = AxesAttrs;
};

struct Concat : ir::Face<"concat"> {
  using Attrs = AxisAttrs;
};

}  // namespace pantala::op
