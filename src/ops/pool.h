// The faces of the pools and of their gradients.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct PoolAttrs {
  ir::Ints kernel, stride, padding = {0};
  bool ceil_mode = false;
  static void fields(auto&& f, auto& a) {
    f("kernel", a.kernel, "size of a window, [height, width] or one for both", ir::Field::required);
    f("stride", a.stride, "distance of the windows; empty: the kernel's size");
    f("padding", a.padding, "positions around x, at most half the kernel");
    f("ceil_mode", a.ceil_mode,
      "keep a last window that sticks out, if it starts inside x or the padding before it");
  }
};

struct AvgPoolAttrs {
  PoolAttrs window;
  bool count_include_pad = true;
  static void fields(auto&& f, auto& a) {
    PoolAttrs::fields(f, a.window);
    f("count_include_pad", a.count_include_pad, "count the padding in the average");
  }
};

struct MaxPool2d : ir::Face<"max_pool2d"> {
  using Attrs = PoolAttrs;
};

struct MaxPool2dGrad : ir::Face<"max_pool2d_grad"> {
  struct Attrs {
    ir::Ints input_sizes;
    PoolAttrs window;
    static void fields(auto&& f, auto& a) {
      f("input_sizes", a.input_sizes, "height and width of x", ir::Field::required);
      PoolAttrs::fields(f, a.window);
    }
  };
};

struct AvgPool2d : ir::Face<"avg_pool2d"> {
  using Attrs = AvgPoolAttrs;
};

struct AvgPool2dGrad : ir::Face<"avg_pool2d_grad"> {
  struct Attrs {
    ir::Ints input_sizes;
    AvgPoolAttrs pool;
    static void fields(auto&& f, auto& a) {
      f("input_sizes", a.input_sizes, "height and width of x", ir::Field::required);
      AvgPoolAttrs::fields(f, a.pool);
    }
  };
};

}  // namespace pantala::op
