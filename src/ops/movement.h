// The faces of the ops that only move elements or count them.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct ShapeAttrs {
  ir::Ints shape;
  static void fields(auto&& f, auto& a) {
    f("shape", a.shape, "the new sizes", ir::Field::required);
  }
};

struct AxesAttrs {
  ir::Ints axes;
  static void fields(auto&& f, auto& a) { f("axes", a.axes, "the axes", ir::Field::required); }
};

struct AxisAttrs {
  std::int64_t axis = 0;
  static void fields(auto&& f, auto& a) { f("axis", a.axis, "the axis"); }
};

struct Reshape : ir::Face<"reshape"> {
  using Attrs = ShapeAttrs;
};

// Its readers share no kernel with what makes its operand: so a value can be computed a second
// time, later, instead of being kept.
struct Apart : ir::Face<"apart"> {};

// It lies in memory, where its readers would compute it again.
struct Kept : ir::Face<"kept"> {};

struct Permute : ir::Face<"permute"> {
  using Attrs = AxesAttrs;
};

struct BroadcastTo : ir::Face<"broadcast_to"> {
  using Attrs = ShapeAttrs;
};

struct Iota : ir::Face<"iota"> {
  struct Attrs {
    ir::Ints shape;
    std::int64_t axis = 0;
    DType dtype = i64;
    static void fields(auto&& f, auto& a) {
      f("shape", a.shape, "sizes", ir::Field::required);
      f("axis", a.axis, "the axis that counts");
      f("dtype", a.dtype, "element type");
    }
  };
};

struct DiagonalAttrs {
  std::int64_t diagonal = 0;
  static void fields(auto&& f, auto& a) {
    f("diagonal", a.diagonal, "0: the main one; positive: above, negative: below");
  }
};

struct Tril : ir::Face<"tril"> {
  using Attrs = DiagonalAttrs;
};

struct Triu : ir::Face<"triu"> {
  using Attrs = DiagonalAttrs;
};

}  // namespace pantala::op
