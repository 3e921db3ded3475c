// The faces of recurrent layers and of their gradients.
#pragma once

#include "ir/face.h"

namespace pantala::op {

struct RecurrentAttrs {
  bool reverse = false;
  static void fields(auto&& f, auto& a) {
    f("reverse", a.reverse, "from the last step to the first");
  }
};

struct Lstm : ir::Face<"lstm"> {
  using Attrs = RecurrentAttrs;
};

struct LstmGrad : ir::Face<"lstm_grad"> {
  using Attrs = RecurrentAttrs;
};

struct GruAttrs {
  bool reverse = false, reset_first = false;
  static void fields(auto&& f, auto& a) {
    f("reverse", a.reverse, "from the last step to the first");
    f("reset_first", a.reset_first, "the reset gate scales the state itself, before its product");
  }
};

struct Gru : ir::Face<"gru"> {
  using Attrs = GruAttrs;
};

struct GruGrad : ir::Face<"gru_grad"> {
  using Attrs = GruAttrs;
};

struct RnnAttrs {
  bool reverse = false, relu = false;
  static void fields(auto&& f, auto& a) {
    f("reverse", a.reverse, "from the last step to the first");
    f("relu", a.relu, "relu in place of tanh");
  }
};

struct Rnn : ir::Face<"rnn"> {
  using Attrs = RnnAttrs;
};

struct RnnGrad : ir::Face<"rnn_grad"> {
  using Attrs = RnnAttrs;
};

}  // namespace pantala::op
