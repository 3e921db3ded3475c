// The files of the library that are compiled as one (cmake/joined_sources.txt) do not hear each
// other's private names.
#include "support/joined_sources.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::vector<std::string>> joined_sources() {
  std::istringstream lines(read_text(PANTALA_SOURCE_DIR "/cmake/joined_sources.txt"));
  std::vector<std::vector<std::string>> groups;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    groups.emplace_back(std::istream_iterator<std::string>(words),
                        std::istream_iterator<std::string>());
  }
  return groups;
}

TEST(JoinedSources, do_not_hear_each_others_names) {
  const auto groups = joined_sources();
  ASSERT_GE(groups.size(), 10u);
  const std::vector<std::string> violations =
      joining_violations(groups, project_files({"src", "tools", "include"}));
  EXPECT_THAT(violations, IsEmpty()) << fmt::format(
      "{}\nMove one of the two to another line of cmake/joined_sources.txt, or out "
      "of it: a file that is not there is compiled alone.",
      fmt::join(violations, "\n"));
}

TEST(SpokenNames, are_a_files_own_those_it_brings_and_those_it_says) {
  const SpokenNames names = spoken_names(R"(
#define LOUD(x) (x)
namespace pantala::io {
using std::string;
namespace fs = std::filesystem;
// not_this
namespace {
constexpr int kMost = 3, kLeast = f(1, two);
const Pattern w{1}, v{2};
const std::map<int, Other> table{{1, {}}};
template <class T> struct Box : Base { int inside; };
enum class Kind { first };
template <> constexpr int kZero<char> = 1;
using Pair = std::pair<int, int>;
std::vector<Box<int>> read(const fs::path& path, int limit = kFew) { return {path.stem(), "quoted"}; }
}
static int counter = 0;
int shown(int x) { return x + std::abs(counter); }
}
)");
  EXPECT_THAT(names.own, ElementsAre("Box", "Kind", "LOUD", "Pair", "counter", "kLeast", "kMost",
                                     "kZero", "read", "table", "v", "w"));
  EXPECT_THAT(names.brought, ElementsAre("fs", "string"));
  for (const char* said : {"Other", "Base", "kFew", "path", "limit", "x"})
    EXPECT_TRUE(std::ranges::binary_search(names.said, said)) << said;
  for (const char* unsaid : {"stem", "abs", "quoted", "not_this"})
    EXPECT_FALSE(std::ranges::binary_search(names.said, unsaid)) << unsaid;
}

TEST(JoinedSourcesCheck, names_who_says_whose_name) {
  const std::vector<SourceFile> files{
      {"a.cpp", "namespace { constexpr int kMaxHeader = 65536; }\n"},
      {"b.cpp", "#include \"limits.h\"\nint f() { return kMaxHeader; }\n"},
      {"c.cpp", "namespace { int g(double) { return 1; } }\n"},
      {"d.cpp", "namespace { int g(long) { return 2; } }\nint h() { return g(2.0); }\n"},
      {"e.cpp", "using Json = one::Json;\n"},
      {"f.cpp", "using Json = one::Json;\nJson x;\n"},
      {"g.cpp", "Json y;\n"},
      {"h.cpp", "#include \"deep.h\"\n"},
      {"i.cpp", "#include \"deep.h\"\nusing Json = one::Json;\n"},
      {"src/deep.h", "#include \"deeper.h\"\n"},
      {"include/deeper.h", "struct Json {};\n"}};
  EXPECT_THAT(joining_violations({{"a.cpp", "b.cpp"}}, files),
              ElementsAre("b.cpp says 'kMaxHeader', which a.cpp declares for itself"));
  EXPECT_THAT(joining_violations({{"c.cpp", "d.cpp"}}, files),
              ElementsAre("d.cpp says 'g', which c.cpp declares for itself",
                          "c.cpp says 'g', which d.cpp declares for itself"));
  EXPECT_THAT(joining_violations({{"a.cpp", "c.cpp", "e.cpp", "f.cpp"}}, files), IsEmpty());
  EXPECT_THAT(joining_violations({{"e.cpp", "g.cpp"}}, files),
              ElementsAre("g.cpp says 'Json', which e.cpp declares for itself"));
  EXPECT_THAT(joining_violations({{"e.cpp", "h.cpp"}}, files),
              ElementsAre("include/deeper.h, which h.cpp includes, says 'Json', which e.cpp "
                          "declares for itself"));
  EXPECT_THAT(joining_violations({{"h.cpp", "e.cpp"}, {"i.cpp"}}, files), IsEmpty());
  EXPECT_THAT(joining_violations({{"a.cpp"}, {"a.cpp", "x.cpp"}}, files),
              ElementsAre("a.cpp stands twice", "x.cpp is no file"));
}

}  // namespace
}  // namespace pantala::tests
