// How a graph is compiled and for what, as it is said on the command line.
#pragma once

#include <string>
#include <vector>

#include "pantala/compile.h"

namespace pantala::tools {

struct CompileChoice {
  std::string rewrite = {}, numerics = {};  // "": not said
  std::vector<std::string> rules_off = {};
  std::string memory_limit = "";  // "500M"; none: no limit
  std::string cost_table = "";    // a file; none: the shipped one
  std::string device = "";        // none: the processor

  // What is said counts; the rest stays as it is. TypeError for a name or a size that is none,
  // and what cost_table_text() throws.
  void apply(CompileOptions& options) const {
    if (!rewrite.empty()) options.rewrite = rewrite_named(rewrite);
    if (!numerics.empty()) options.numerics = numerics_named(numerics);
    options.rules_off.insert(options.rules_off.end(), rules_off.begin(), rules_off.end());
    if (!memory_limit.empty()) options.memory_limit = memory_limit_named(memory_limit);
    if (!cost_table.empty()) options.cost_table = cost_table_text(cost_table);
    if (!device.empty()) options.device = device;
  }
};

}  // namespace pantala::tools
