// Comments whose lines a formatter has broken: a line became too long, its last words went to a
// line of their own, and the rest of the sentence follows below.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <sstream>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A comment on a line of its own that is neither indented nor part of a list.
struct CommentLine {
  std::size_t indent = 0, length = 0;
  std::string text;
};
std::optional<CommentLine> comment_line(const std::string& line) {
  static const std::regex form(R"(( *)// ([^ \-].*))");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return {};
  return CommentLine{static_cast<std::size_t>(match.length(1)), line.size(), match[2].str()};
}

bool ends_a_sentence(const std::string& text) {
  static const std::regex end(R"([.:?!]["')`]*$)");
  return std::regex_search(text, end);
}

// Lines that stop early in the middle of a sentence: "path:line: text".
std::vector<std::string> broken_comments(const std::vector<SourceFile>& files) {
  constexpr std::size_t kShort = 70, kColumns = 100;
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    std::istringstream lines(file.text);
    std::optional<CommentLine> before;
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
      const std::optional<CommentLine> here = comment_line(line);
      if (before && here && before->indent == here->indent && before->length < kShort &&
          !ends_a_sentence(before->text) &&
          before->length + 1 + here->text.substr(0, here->text.find(' ')).size() <= kColumns)
        found.push_back(fmt::format("{}:{}: {}", file.path, number, before->text));
      before = here;
    }
  }
  return found;
}

TEST(Comments, of_the_project_fill_their_lines) {
  const auto found = broken_comments(
      project_files({"src", "include", "tools", "tests", "bench", "examples", "python"}));
  EXPECT_THAT(found, IsEmpty()) << fmt::format("{}", fmt::join(found, "\n"));
}

// Initial values that a comment behind them pushed to a line of their own: "path:line: text".
std::vector<std::string> orphaned_values(const std::vector<SourceFile>& files) {
  static const std::regex form(R"( *[\w:.\-{}"']+[;,]  // .*)"), open(R"(.*[^=!<>]= *)");
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    std::istringstream lines(file.text);
    std::string before;
    std::size_t number = 1;
    for (std::string line; std::getline(lines, line); ++number) {
      if (std::regex_match(line, form) && std::regex_match(before, open))
        found.push_back(fmt::format("{}:{}:{}", file.path, number, line));
      before = line;
    }
  }
  return found;
}

TEST(Comments, of_the_project_stand_above_what_they_would_push_aside) {
  const auto found = orphaned_values(
      project_files({"src", "include", "tools", "tests", "bench", "examples", "python"}));
  EXPECT_THAT(found, IsEmpty()) << fmt::format("{}", fmt::join(found, "\n"));
}

TEST(CommentsCheck, finds_values_that_were_pushed_aside) {
  EXPECT_THAT(orphaned_values({{"a.h",
                                "int a =\n"
                                "    0;  // of the first\n"
                                "int b = 0;  // of the second\n"
                                "const bool c = a ==\n"
                                "               b;  // by chance\n"}}),
              ElementsAre("a.h:2:    0;  // of the first"));
}

TEST(CommentsCheck, finds_lines_that_stop_early) {
  EXPECT_THAT(broken_comments({{"a.h",
                                "int a;\n"
                                "  // One sentence that is\n"
                                "  // continued.\n"
                                "  // Another one.\n"
                                "  // - not a sentence\n"
                                "// of another place\n"}}),
              ElementsAre("a.h:2: One sentence that is"));
}

TEST(CommentsCheck, accepts_full_lines_and_ends_of_sentences) {
  const std::string full(66, 'x'), longer(40, 'y');
  EXPECT_THAT(broken_comments({{"a.h",
                                "// The first (of two.)\n// The second:\n// a list\n\n"
                                "// " +
                                    full + "\n// " + longer + "\n"}}),
              IsEmpty());
}

}  // namespace
}  // namespace pantala::tests
