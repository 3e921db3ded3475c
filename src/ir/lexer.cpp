#include "ir/lexer.h"

#include <fmt/format.h>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::ir {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || is_digit(c);
}
}  // namespace

void Lexer::fail(const Token& at, const std::string& message) const {
  throw ParseError(fmt::format("{}:{}:{}: {}", file_, at.line, at.column, message));
}

void Lexer::fail_expected(std::string_view expected) const {
  if (token_.kind == Token::Kind::end)
    fail(token_, fmt::format("expected {}, found the end of the text", expected));
  fail(token_,
       fmt::format("expected {}, found {}", expected,
                   in_quotes(fmt::format("{}{}", token_.kind == Token::Kind::value ? "%" : "",
                                         shown(token_.text)))));
}

Token Lexer::next() {
  Token token = std::move(token_);
  advance();
  return token;
}

bool Lexer::accept(std::string_view symbol) {
  if (token_.kind != Token::Kind::symbol || token_.text != symbol) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view symbol) {
  if (!accept(symbol)) fail_expected(fmt::format("'{}'", symbol));
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) fail_expected(what);
  return next();
}

void Lexer::skip_space() {
  for (;;) {
    const char c = at();
    if (c == '#') {
      while (position_ < text_.size() && at() != '\n') ++position_;
    } else if (c == '\n') {
      ++position_, ++line_, column_ = 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_, ++column_;
    } else {
      return;
    }
  }
}

void Lexer::lex_string() {
  token_.kind = Token::Kind::string;
  ++position_, ++column_;
  const auto hex = [](char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  while (at() != '"') {
    if (position_ >= text_.size() || at() == '\n') fail(token_, "the string has no end");
    if (at() != '\\') {
      take();
    } else if (at(1) == '"' || at(1) == '\\') {
      ++position_, take();
    } else if (at(1) == 'x' && hex(at(2)) >= 0 && hex(at(3)) >= 0) {
      token_.text += static_cast<char>(hex(at(2)) * 16 + hex(at(3)));
      position_ += 4, column_ += 4;
    } else {
      fail(token_, "the string has an unknown escape; \\\", \\\\ and \\x00 to \\xff are known");
    }
  }
  ++position_, ++column_;
}

void Lexer::advance() {
  skip_space();
  token_ = {Token::Kind::end, {}, line_, column_};
  if (position_ >= text_.size()) return;
  const char c = at();
  if (c == '"') return lex_string();
  if (is_digit(c) || (c == '-' && (is_digit(at(1)) || at(1) == 'i'))) {
    token_.kind = Token::Kind::number;
    take();
    while (is_word(at()) || ((at() == '-' || at() == '+') && token_.text.back() == 'e')) take();
  } else if (c == '%') {
    token_.kind = Token::Kind::value;
    ++position_, ++column_;
    while (is_word(at())) take();
  } else if (is_word(c)) {
    token_.kind = Token::Kind::word;
    while (is_word(at())) take();
  } else {
    token_.kind = Token::Kind::symbol;
    take();
  }
}

}  // namespace pantala::ir
