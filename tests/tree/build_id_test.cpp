// A plan of other sources must not be used, so the build id must cover every file that the compiler
// is made of (cmake/BuildId.cmake).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

std::set<std::string> hashed_files() {
  const std::string root = std::string(PANTALA_SOURCE_DIR) + "/";
  std::istringstream lines(read_text(std::string(PANTALA_BINARY_DIR) + "/build_id_sources.txt"));
  std::set<std::string> files;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(root)) files.insert(line.substr(root.size()));
  return files;
}

void add_closure(const std::vector<Module>& modules, const std::string& name,
                 std::set<std::string>& closure) {
  if (!closure.insert(name).second) return;
  for (const Module& module : modules) {
    if (module.name != name) continue;
    for (const std::string& below : module.depends) add_closure(modules, below, closure);
    for (const std::string& below : module.uses) add_closure(modules, below, closure);
  }
}

TEST(BuildId, covers_every_file_of_the_compiler_and_of_what_it_depends_on) {
  std::set<std::string> closure;
  add_closure(parse_modules(read_text(std::string(PANTALA_BINARY_DIR) + "/modules.txt")),
              "compiler", closure);
  ASSERT_GE(closure.size(), 10u);
  std::vector<std::string> folders{"include"};
  for (const std::string& module : closure) folders.push_back("src/" + module);
  const std::set<std::string> hashed = hashed_files();
  std::vector<std::string> missing;
  for (const SourceFile& file : project_files(folders))
    if (!hashed.contains(file.path)) missing.push_back(file.path);
  EXPECT_THAT(missing, testing::IsEmpty());
}

}  // namespace
}  // namespace pantala::tests
