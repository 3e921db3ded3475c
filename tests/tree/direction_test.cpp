// Which way includes point inside a module and in tools/, and what the header that gathers all must
// reach.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "support/include_cycles.h"
#include "tree/project_files.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Files that hand out what the folders below them make. The list may only become shorter: one that
// needs no permission any more is an error too.
const std::vector<std::string> kGathering = {
    "src/device/device.cpp",
    "src/schedule/gpu/archetypes.cpp",
};

TEST(IncludeDirection, of_the_project_has_no_circles) {
  const std::vector<SourceFile> files = project_files({"src", "tools"});
  ASSERT_GE(files.size(), 50u);
  const std::vector<std::string> violations = direction_violations(files, kGathering);
  EXPECT_THAT(violations, IsEmpty()) << fmt::format("{}", fmt::join(violations, "\n"));
}

TEST(IncludeDirectionCheck, accepts_one_direction) {
  EXPECT_THAT(direction_violations({{"src/a/cpu/x.cpp", "#include \"a/cpu/x.h\"\n"},
                                    {"src/a/cpu/x.h", "#include \"a/core.h\"\n"},
                                    {"src/a/core.h", "#include \"b/other.h\"\n"},
                                    {"src/b/other.h", ""}},
                                   {}),
              IsEmpty());
}

TEST(IncludeDirectionCheck, finds_circles_of_headers) {
  EXPECT_THAT(direction_violations({{"src/a/x.h", "#include \"a/y.h\"\n"},
                                    {"src/a/y.h", "#include \"a/z.h\"\n"},
                                    {"src/a/z.h", "#include \"a/x.h\"\n"},
                                    {"src/a/w.h", "#include \"a/x.h\"\n"}},
                                   {}),
              ElementsAre("headers include one another in a circle: src/a/x.h, src/a/y.h, "
                          "src/a/z.h"));
}

TEST(IncludeDirectionCheck, finds_circles_of_folders) {
  const std::vector<SourceFile> files{{"src/a/cpu/x.h", "#include \"a/core.h\"\n"},
                                      {"src/a/core.h", ""},
                                      {"src/a/core.cpp", "// the table\n#include \"a/cpu/x.h\"\n"}};
  EXPECT_THAT(direction_violations(files, {}),
              ElementsAre("src/a/cpu/x.h:1: src/a/cpu and src/a include one another: src/a/core.h",
                          "src/a/core.cpp:2: src/a and src/a/cpu include one another: "
                          "src/a/cpu/x.h"));
  EXPECT_THAT(direction_violations(files, {"src/a/core.cpp"}), IsEmpty());
  EXPECT_THAT(direction_violations(files, {"src/a/core.cpp", "src/a/core.h"}),
              ElementsAre("src/a/core.h: needs no permission to close a circle"));
}

TEST(IncludeDirectionCheck, keeps_verbs_apart) {
  EXPECT_THAT(direction_violations({{"tools/verb_a.h", ""},
                                    {"tools/verb_b.cpp", "#include \"tools/verb_a.h\"\n"},
                                    {"tools/command.h", ""},
                                    {"tools/command.cpp", "#include \"tools/command.h\"\n"},
                                    {"tools/part/x.cpp", "#include \"tools/command.h\"\n"}},
                                   {}),
              ElementsAre("tools/verb_b.cpp:1: nobody includes a file of a verb: tools/verb_a.h",
                          "tools/part/x.cpp:1: what verbs use does not know the command"));
}

// What `path` includes, directly and through others.
void collect(const std::string& path, std::set<std::string>& seen) {
  static const std::regex include(R"(#include "(pantala/[^"]+)\")");
  if (!seen.insert(path).second) return;
  const std::string text = read_text(std::string(PANTALA_SOURCE_DIR) + "/include/" + path);
  for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
    collect((*at)[1].str(), seen);
}

TEST(PublicHeaders, the_one_that_says_everything_reaches_all_others) {
  std::set<std::string> reached;
  collect("pantala/pantala.h", reached);
  std::vector<std::string> missing;
  for (const SourceFile& file : project_files({"include"}))
    if (const std::string path = file.path.substr(std::string("include/").size());
        !reached.contains(path))
      missing.push_back(path);
  EXPECT_THAT(missing, IsEmpty()) << fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace
}  // namespace pantala::tests
