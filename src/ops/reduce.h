// The faces of reductions, searches and running sums along axes.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct ReduceAttrs {
  ir::Ints axes;
  bool keepdims = false;
  static void fields(auto&& f, auto& a) {
    f("axes", a.axes, "the axes; empty: all");
    f("keepdims", a.keepdims, "keep the axes with size 1");
  }
};

struct Sum : ir::Face<"sum"> {
  using Attrs = ReduceAttrs;
};

struct Amax : ir::Face<"amax"> {
  using Attrs = ReduceAttrs;
};

struct Amin : ir::Face<"amin"> {
  using Attrs = ReduceAttrs;
};

struct Mean : ir::Face<"mean"> {
  using Attrs = ReduceAttrs;
};

struct Prod : ir::Face<"prod"> {
  using Attrs = ReduceAttrs;
};

struct ArgAttrs {
  std::int64_t axis = -1;
  bool keepdims = false;
  static void fields(auto&& f, auto& a) {
    f("axis", a.axis, "the axis");
    f("keepdims", a.keepdims, "keep the axis with size 1");
  }
};

struct Argmax : ir::Face<"argmax"> {
  using Attrs = ArgAttrs;
};

struct Argmin : ir::Face<"argmin"> {
  using Attrs = ArgAttrs;
};

struct Cumsum : ir::Face<"cumsum"> {
  struct Attrs {
    std::int64_t axis = -1;
    bool reverse = false;
    static void fields(auto&& f, auto& a) {
      f("axis", a.axis, "the axis");
      f("reverse", a.reverse, "sum from the end");
    }
  };
};

}  // namespace pantala::op
