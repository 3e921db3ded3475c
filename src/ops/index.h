// The faces of the ops that find their elements by indices.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct IndexAttrs {
  std::int64_t axis = 0;
  static void fields(auto&& f, auto& a) { f("axis", a.axis, "the axis that is indexed"); }
};

struct Take : ir::Face<"take"> {
  using Attrs = IndexAttrs;
};

struct Gather : ir::Face<"gather"> {
  using Attrs = IndexAttrs;
};

struct ScatterAdd : ir::Face<"scatter_add"> {
  using Attrs = IndexAttrs;
};

struct ScatterAddElements : ir::Face<"scatter_add_elements"> {
  using Attrs = IndexAttrs;
};

struct Scatter : ir::Face<"scatter"> {
  using Attrs = IndexAttrs;
};

struct OneHot : ir::Face<"one_hot"> {
  struct Attrs {
    std::int64_t classes = 1;
    DType dtype = i64;
    static void fields(auto&& f, auto& a) {
      f("classes", a.classes, "size of the new last axis", ir::Field::required);
      f("dtype", a.dtype, "element type of the result");
    }
  };
};

struct DynamicSlice : ir::Face<"dynamic_slice"> {
  struct Attrs {
    std::int64_t axis = 0, size = 1;
    static void fields(auto&& f, auto& a) {
      f("axis", a.axis, "the axis that is cut", ir::Field::required);
      f("size", a.size, "elements of it", ir::Field::required);
    }
  };
};

struct UpdateSlice : ir::Face<"update_slice"> {
  struct Attrs {
    std::int64_t axis = 0;
    static void fields(auto&& f, auto& a) {
      f("axis", a.axis, "the axis along which the update is placed", ir::Field::required);
    }
  };
};

}  // namespace pantala::op
