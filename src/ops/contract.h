// The face of the product; `matmul` and `linear` are never nodes.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct Contract : ir::Face<"contract"> {
  struct Attrs {
    ir::Ints batch_a, batch_b, contract_a, contract_b;
    static void fields(auto&& f, auto& a) {
      f("batch_a", a.batch_a, "axes of a that run together with batch_b and stay");
      f("batch_b", a.batch_b, "axes of b that run together with batch_a");
      f("contract_a", a.contract_a, "axes of a that are summed over with contract_b");
      f("contract_b", a.contract_b, "axes of b that are summed over with contract_a");
    }
  };
};

}  // namespace pantala::op
