// The layering rules as a function of texts, so that the check itself can be tested: which #include
// of which file is not allowed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pantala::tests {

// A line `module|public headers|dependencies|face|uses` of modules.txt; a header that ends in '/'
// is a folder. The last two may be missing.
struct Module {
  std::string name;
  std::vector<std::string> headers;
  std::vector<std::string> depends;
  std::vector<std::string> face = {};  // headers of its folder for those that only use it
  std::vector<std::string> uses = {};  // modules of which it sees public headers and face alone
};
std::vector<Module> parse_modules(std::string_view text);

struct SourceFile {
  std::string path;  // from the root of the project: src/ir/graph.cpp, include/pantala/graph.h
  std::string text;
};

// One line "path:line: what" per violation:
//  - a file of src/<module>/ includes a module or a public header that is not in the closure of the
//    module's dependencies, nor a face that one of these uses,
//  - a public header includes something of src/, or a public header of a module that its own does
//    not depend on (pantala.h gathers all),
//  - a file, a folder or a public header belongs to no module,
//  - LLVM is included outside of src/codegen/llvm.
std::vector<std::string> layering_violations(const std::vector<Module>& modules,
                                             const std::vector<SourceFile>& files);

}  // namespace pantala::tests
