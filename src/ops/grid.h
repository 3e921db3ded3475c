// The face of grid_sample.
#pragma once

#include "ir/face.h"
#include "pantala/ops/grid.h"

namespace pantala::ir {
template <>
struct EnumNames<GridMode> {
  static constexpr const char* names[] = {"bilinear", "nearest", "bicubic"};
};
template <>
struct EnumNames<GridPadding> {
  static constexpr const char* names[] = {"zeros", "border", "reflection"};
};
}  // namespace pantala::ir

namespace pantala::op {

struct GridSample : ir::Face<"grid_sample"> {
  struct Attrs {
    GridMode mode = GridMode::bilinear;
    GridPadding padding = GridPadding::zeros;
    bool align_corners = false;
    static void fields(auto&& f, auto& a) {
      f("mode", a.mode, "how elements around a position are combined");
      f("padding", a.padding, "what stands outside of x");
      f("align_corners", a.align_corners,
        "-1 and 1 are the centres of the outer elements, not their edges");
    }
  };
};

}  // namespace pantala::op
