// How a graph is rewritten, as it is said on the command line.
#pragma once

#include <string>
#include <vector>

#include "pantala/compile.h"

namespace pantala::tools {

struct CompileChoice {
  std::string rewrite = "egraph", numerics = "relaxed";
  std::vector<std::string> rules_off = {};
  std::string memory_limit = "";  // "500M"; none: no limit
  std::string cost_table = "";    // a file; none: the shipped one

  // TypeError for a name or a size that is none, and what cost_table_text() throws.
  void apply(CompileOptions& options) const {
    options.rewrite = rewrite_named(rewrite);
    options.numerics = numerics_named(numerics);
    options.rules_off = rules_off;
    options.memory_limit = memory_limit_named(memory_limit);
    options.cost_table = cost_table_text(cost_table);
  }
};

}  // namespace pantala::tools
