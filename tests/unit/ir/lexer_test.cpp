// Tokens of the text form and their places.
#include "ir/lexer.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::ir {
namespace {

using Kind = Token::Kind;
using pantala::tests::message_of;
using tests::message_of;

std::vector<Token> tokens(std::string_view text) {
  Lexer lexer(text, "t");
  std::vector<Token> result;
  while (lexer.peek().kind != Kind::end) result.push_back(lexer.next());
  return result;
}
std::string failure(std::string_view text) {
  return message_of<ParseError>([&] { tokens(text); });
}

TEST(Lexer, tells_the_kinds_apart) {
  const std::vector<Token> t = tokens("graph %x.1 = 12 \"a b\" { -3.5e-7 -inf");
  const Kind kinds[] = {Kind::word,   Kind::value,  Kind::symbol, Kind::number,
                        Kind::string, Kind::symbol, Kind::number, Kind::number};
  const char* texts[] = {"graph", "x.1", "=", "12", "a b", "{", "-3.5e-7", "-inf"};
  ASSERT_EQ(t.size(), std::size(kinds));
  for (std::size_t k = 0; k < t.size(); ++k) {
    EXPECT_EQ(t[k].kind, kinds[k]) << k;
    EXPECT_EQ(t[k].text, texts[k]) << k;
  }
}

TEST(Lexer, knows_lines_and_columns) {
  const std::vector<Token> t = tokens("a\n  b # c d\n\t\"e\" f");
  ASSERT_EQ(t.size(), 4u);
  EXPECT_EQ(t[1].line, 2);
  EXPECT_EQ(t[1].column, 3);
  EXPECT_EQ(t[2].line, 3);
  EXPECT_EQ(t[2].column, 2);
  EXPECT_EQ(t[3].column, 6);
}

TEST(Lexer, reads_numbers_with_signs_in_the_exponent) {
  for (const char* text : {"1e+300", "5e-324", "0", "-0", "9223372036854775807"}) {
    const std::vector<Token> t = tokens(text);
    ASSERT_EQ(t.size(), 1u) << text;
    EXPECT_EQ(t[0].kind, Kind::number);
    EXPECT_EQ(t[0].text, text);
  }
  EXPECT_EQ(tokens("1-2").size(), 2u);
  EXPECT_EQ(tokens("[1,-2]").size(), 5u);
}

TEST(Lexer, unescapes_strings) {
  EXPECT_EQ(tokens(R"("a\"b\\c\x0a\xff")")[0].text, "a\"b\\c\n\xff");
  EXPECT_EQ(tokens("\"# no comment\"")[0].text, "# no comment");
}

TEST(Lexer, refuses_broken_strings) {
  EXPECT_EQ(failure("x \"abc"), "t:1:3: the string has no end");
  EXPECT_EQ(failure("\n\"abc\n\""), "t:2:1: the string has no end");
  EXPECT_EQ(failure(R"("a\n")"),
            R"(t:1:1: the string has an unknown escape; \", \\ and \x00 to \xff are known)");
  EXPECT_EQ(failure(R"("\xg0")"),
            R"(t:1:1: the string has an unknown escape; \", \\ and \x00 to \xff are known)");
  EXPECT_EQ(failure("\"\\"),
            R"(t:1:1: the string has an unknown escape; \", \\ and \x00 to \xff are known)");
}

TEST(Lexer, ends_in_comments_and_odd_bytes) {
  EXPECT_TRUE(tokens("# only a comment").empty());
  EXPECT_TRUE(tokens("").empty());
  EXPECT_EQ(tokens(std::string_view("\0\x80", 2)).size(), 2u);
}

TEST(Lexer, says_what_was_expected_and_found) {
  Lexer lexer("a", "t");
  EXPECT_EQ(message_of<ParseError>([&] { lexer.expect("{"); }), "t:1:1: expected '{', found \"a\"");
  EXPECT_EQ(message_of<ParseError>([&] { lexer.expect(Kind::number, "an integer"); }),
            "t:1:1: expected an integer, found \"a\"");
  lexer.next();
  EXPECT_EQ(message_of<ParseError>([&] { lexer.expect("{"); }),
            "t:1:2: expected '{', found the end of the text");
  Lexer longer(std::string(1000, 'a'), "t");
  EXPECT_EQ(message_of<ParseError>([&] { longer.expect("{"); }),
            "t:1:1: expected '{', found \"" + std::string(40, 'a') + "\"");
}

}  // namespace
}  // namespace pantala::ir
