// The faces of the random ops that are no composites.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct RandomBits : ir::Face<"random_bits"> {
  struct Attrs {
    ir::Ints shape;
    std::int64_t stream = 0;
    static void fields(auto&& f, auto& a) {
      f("shape", a.shape, "sizes", ir::Field::required);
      f("stream", a.stream, "which of the independent streams", ir::Field::required);
    }
  };
};

struct BitsToUnit : ir::Face<"bits_to_unit"> {
  struct Attrs {
    DType dtype = f32;
    static void fields(auto&& f, auto& a) {
      f("dtype", a.dtype, "f32 or f64, which hold 24 bits exactly");
    }
  };
};

}  // namespace pantala::op
