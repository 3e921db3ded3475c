// The faces of the leaf ops: what enters a graph from outside, and constants. Their entries are
// made in leaves.cpp; graph_data.h declares them.
#pragma once

#include <string>

#include "ir/face.h"
#include "pantala/init.h"

namespace pantala::op {

struct Input : ir::Face<"input"> {
  struct Attrs {
    std::string name;
    DType dtype = f32;
    ir::Ints shape;
    static void fields(auto&& f, auto& a) {
      f("name", a.name, "unique in the graph", ir::Field::required);
      f("dtype", a.dtype, "element type");
      f("shape", a.shape, "sizes");
    }
  };
};

// Parameters and states: leaves that live in the store.
struct StoredAttrs {
  std::string name;
  DType dtype = f32;
  ir::Ints shape;
  Initializer init;
  static void fields(auto&& f, auto& a) {
    Input::Attrs::fields(f, a);
    f("init", a.init, "first value");
  }
};
struct Parameter : ir::Face<"parameter"> {
  using Attrs = StoredAttrs;
};
struct State : ir::Face<"state"> {
  using Attrs = StoredAttrs;
};

struct Scalar : ir::Face<"scalar"> {
  struct Attrs {
    std::string name;
    double value = 0;
    static void fields(auto&& f, auto& a) {
      f("name", a.name, "unique in the graph", ir::Field::required);
      f("value", a.value, "value until it is set");
    }
  };
};

// A tensor whose elements are all equal.
struct Constant : ir::Face<"constant"> {
  struct Attrs {
    double value = 0;
    DType dtype = f32;
    ir::Ints shape;
    static void fields(auto&& f, auto& a) {
      f("value", a.value, "value of every element", ir::Field::required);
      f("dtype", a.dtype, "element type");
      f("shape", a.shape, "sizes");
    }
  };
};

// A constant tensor given element by element.
struct Data : ir::Face<"data"> {
  struct Attrs {
    ir::LiteralPtr values;
    static void fields(auto&& f, auto& a) {
      f("values", a.values, "type and elements", ir::Field::required);
    }
  };
};

}  // namespace pantala::op
