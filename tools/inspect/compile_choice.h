// How a graph is rewritten, as it is said on the command line.
#pragma once

#include <string>
#include <vector>

#include "pantala/compile.h"

namespace pantala::tools {

struct CompileChoice {
  std::string rewrite = "egraph", numerics = "relaxed";
  std::vector<std::string> rules_off = {};

  // TypeError for a name that is none.
  void apply(CompileOptions& options) const {
    options.rewrite = rewrite_named(rewrite);
    options.numerics = numerics_named(numerics);
    options.rules_off = rules_off;
  }
};

}  // namespace pantala::tools
