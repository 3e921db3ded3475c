// The link graph of cmake/modules.cmake is the layering: no file may include what stands above or
// beside its module.
#include "support/layering.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

TEST(Layering, every_include_of_the_project_is_allowed) {
  const std::vector<Module> modules =
      parse_modules(read_text(std::string(PANTALA_BINARY_DIR) + "/modules.txt"));
  const std::vector<SourceFile> files = project_files({"src", "include"});
  ASSERT_GE(modules.size(), 10u);
  ASSERT_GE(files.size(), 50u);
  const std::vector<std::string> violations = layering_violations(modules, files);
  EXPECT_THAT(violations, IsEmpty()) << fmt::format("{}", fmt::join(violations, "\n"));
}

// "name -> below, (of which it sees the face alone)"
std::vector<std::string> described(const std::vector<Module>& modules) {
  std::vector<std::string> lines;
  for (const Module& module : modules) {
    std::vector<std::string> below = module.depends;
    for (const std::string& used : module.uses) below.push_back(fmt::format("({})", used));
    lines.push_back(fmt::format("{} -> {}", module.name, fmt::join(below, ", ")));
  }
  return lines;
}

// The same of the list in docs/architecture.md: an entry begins with src/NAME/ at the start of a
// line and ends with an arrow, if the module depends on anything.
std::vector<std::string> described_by_the_page() {
  static const std::regex entry("src/([a-z]+)/ .*"), arrow("(src/| ).*-> (.*)");
  std::istringstream page(read_text(std::string(PANTALA_SOURCE_DIR) + "/docs/architecture.md"));
  std::vector<std::string> modules;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (!modules.empty() && line == "```") break;
    if (std::regex_match(line, match, entry)) modules.push_back(match[1].str() + " -> ");
    if (!modules.empty() && std::regex_match(line, match, arrow)) modules.back() += match[2].str();
  }
  return modules;
}

TEST(Layering, the_page_of_the_architecture_has_the_same_modules) {
  const std::vector<Module> modules =
      parse_modules(read_text(std::string(PANTALA_BINARY_DIR) + "/modules.txt"));
  EXPECT_THAT(described_by_the_page(), UnorderedElementsAreArray(described(modules)));
}

const std::vector<Module>& sample_modules() {
  static const std::vector<Module> modules = parse_modules(
      "base|error.h|\n"
      "ir|graph.h shape.h|base\n"
      "ops|ops.h ops/|ir\n"
      "grad|autodiff.h|ops\n"
      "ref|interpreter.h|ops\n"
      "codegen||ir\n"
      "zoo|zoo.h pantala.h|ops\n");
  return modules;
}
std::vector<std::string> violations(const std::string& path, const std::string& text) {
  return layering_violations(sample_modules(), {{path, text}});
}

TEST(LayeringCheck, reads_the_module_list) {
  const std::vector<Module>& modules = sample_modules();
  ASSERT_EQ(modules.size(), 7u);
  EXPECT_EQ(modules[1].name, "ir");
  EXPECT_THAT(modules[1].headers, ElementsAre("graph.h", "shape.h"));
  EXPECT_THAT(modules[1].depends, ElementsAre("base"));
  EXPECT_THAT(modules[0].depends, IsEmpty());
}

TEST(LayeringCheck, accepts_the_module_itself_and_what_it_depends_on) {
  EXPECT_THAT(violations("src/grad/a.cpp",
                         "#include \"grad/b.h\"\n#include \"base/text.h\"\n#include \"ir/op.h\"\n"),
              IsEmpty());
  EXPECT_THAT(violations("src/grad/a.cpp",
                         "#include \"pantala/autodiff.h\"\n#include \"pantala/error.h\"\n#include "
                         "\"pantala/ops/conv.h\"\n#include <vector>\n"),
              IsEmpty());
}

TEST(LayeringCheck, rejects_a_module_above) {
  EXPECT_THAT(violations("src/ir/a.cpp", "// text\n  # include \"ops/table.h\"\n"),
              ElementsAre("src/ir/a.cpp:2: ir must not include ops/table.h of module ops"));
}

TEST(LayeringCheck, rejects_a_module_beside) {
  EXPECT_THAT(violations("src/grad/a.cpp", "#include \"ref/flatten.h\"\n"),
              ElementsAre("src/grad/a.cpp:1: grad must not include ref/flatten.h of module ref"));
}

TEST(LayeringCheck, rejects_a_public_header_of_a_module_above) {
  EXPECT_THAT(violations("src/ir/a.cpp", "#include \"pantala/ops/conv.h\"\n"),
              ElementsAre("src/ir/a.cpp:1: ir must not include pantala/ops/conv.h of module ops"));
}

TEST(LayeringCheck, rejects_what_belongs_to_no_module) {
  EXPECT_THAT(violations("src/ir/a.cpp", "#include \"pantala/lost.h\"\n"),
              ElementsAre("src/ir/a.cpp:1: pantala/lost.h belongs to no module"));
  EXPECT_THAT(violations("src/ir/a.cpp", "#include \"misc/lost.h\"\n"),
              ElementsAre("src/ir/a.cpp:1: misc/lost.h belongs to no module"));
  EXPECT_THAT(violations("src/misc/a.cpp", "#include \"ir/op.h\"\n"),
              ElementsAre("src/misc/a.cpp:1: the file belongs to no module"));
}

TEST(LayeringCheck, rejects_sources_in_public_headers) {
  EXPECT_THAT(
      violations("include/pantala/ops/conv.h", "#include \"ir/op.h\"\n"),
      ElementsAre("include/pantala/ops/conv.h:1: a public header must not include ir/op.h"));
}

TEST(LayeringCheck,
     rejects_public_headers_above_in_public_headers_but_for_the_one_that_gathers_all) {
  EXPECT_THAT(
      violations("include/pantala/graph.h", "#include \"pantala/ops.h\"\n"),
      ElementsAre("include/pantala/graph.h:1: ir must not include pantala/ops.h of module ops"));
  EXPECT_THAT(violations("include/pantala/pantala.h", "#include \"pantala/autodiff.h\"\n"),
              IsEmpty());
}

TEST(LayeringCheck, shows_the_face_alone_to_those_that_only_use_a_module) {
  const std::vector<Module> modules = parse_modules(
      "ir|graph.h|||\n"
      "compiler|compile.h|ir|replay.h|\n"
      "runtime|session.h|ir||compiler\n"
      "train||runtime||\n");
  for (const char* file : {"src/runtime/a.cpp", "src/train/a.cpp"}) {
    EXPECT_THAT(layering_violations(modules, {{file,
                                               "#include \"pantala/compile.h\"\n#include "
                                               "\"compiler/replay.h\"\n"}}),
                IsEmpty());
    EXPECT_EQ(layering_violations(modules, {{file, "#include \"compiler/guard.h\"\n"}}).size(), 1u);
  }
}

TEST(LayeringCheck, keeps_llvm_in_its_folder) {
  EXPECT_THAT(violations("src/codegen/llvm/emit.cpp",
                         "#include <llvm/IR/Module.h>\n#include \"llvm/IR/Type.h\"\n"),
              IsEmpty());
  EXPECT_THAT(
      violations("src/codegen/emit.cpp", "#include <llvm/IR/Module.h>\n"),
      ElementsAre(
          "src/codegen/emit.cpp:1: llvm/IR/Module.h must not be included outside of codegen/llvm"));
  EXPECT_THAT(
      violations("src/ir/a.cpp", "#include \"llvm-c/Core.h\"\n"),
      ElementsAre("src/ir/a.cpp:1: llvm-c/Core.h must not be included outside of codegen/llvm"));
}

}  // namespace
}  // namespace pantala::tests
