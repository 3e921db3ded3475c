// Tokens of the text form, with their lines for messages.
#pragma once

#include <string>
#include <string_view>

namespace pantala::ir {

struct Token {
  enum class Kind { end, word, number, string, value, symbol };
  Kind kind = Kind::end;
  std::string text;  // strings unescaped; values without the leading %
  int line = 1;
  int column = 1;
};

// As much of a text as a message shows.
inline std::string_view shown(std::string_view text) { return text.substr(0, 40); }

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file) : text_(text), file_(file) { advance(); }
  const Token& peek() const { return token_; }
  Token next();
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol);
  Token expect(Token::Kind kind, std::string_view what);
  // "file:line:column: expected ..., found ..."
  [[noreturn]] void fail_expected(std::string_view expected) const;
  [[noreturn]] void fail(const Token& at, const std::string& message) const;

 private:
  void advance();
  void skip_space();
  void lex_string();
  char at(std::size_t offset = 0) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }
  void take() { token_.text += text_[position_++], ++column_; }

  std::string_view text_, file_;
  std::size_t position_ = 0;
  int line_ = 1, column_ = 1;
  Token token_;
};

}  // namespace pantala::ir
