#include "egraph/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pantala/error.h"

namespace pantala::egraph {

VariableId Variables::get(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return VariableId(static_cast<std::size_t>(found - names.begin()));
  names.emplace_back(name);
  return VariableId(names.size() - 1);
}

namespace {

class Parser {
 public:
  Parser(std::string_view text, Symbols& symbols, Variables& variables)
      : text_(text), symbols_(symbols), variables_(variables) {}

  Pattern parse() {
    term();
    skip_spaces();
    if (at_ != text_.size()) fail("the end");
    return std::move(pattern_);
  }

 private:
  TermId term() {
    skip_spaces();
    if (at_ == text_.size()) fail("a term");
    if (text_[at_] == '?') {
      ++at_;
      return pattern_.terms.push_back({.variable = variables_.get(word()), .op = {}});
    }
    if (text_[at_] != '(') return leaf(word());
    ++at_;
    const std::string_view name = word();
    std::vector<TermId> children;
    for (skip_spaces(); at_ < text_.size() && text_[at_] != ')'; skip_spaces())
      children.push_back(term());
    if (at_ == text_.size()) fail("')'");
    ++at_;
    return pattern_.terms.push_back(
        {.variable = {}, .op = symbols_.op(name), .payload = {}, .children = std::move(children)});
  }

  TermId leaf(std::string_view name) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(name.begin(), name.end(), value);
    if (error == std::errc() && end == name.end())
      return pattern_.terms.push_back({.variable = {},
                                       .op = symbols_.op("const"),
                                       .payload = static_cast<std::uint64_t>(value)});
    return pattern_.terms.push_back({.variable = {}, .op = symbols_.op(name), .payload = 0});
  }

  std::string_view word() {
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '(' && text_[at_] != ')') ++at_;
    if (at_ == begin) fail("a name");
    return text_.substr(begin, at_ - begin);
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    throw ParseError(
        fmt::format("pattern '{}', character {}: expected {}", text_, at_ + 1, expected));
  }

  std::string_view text_;
  Symbols& symbols_;
  Variables& variables_;
  Pattern pattern_;
  std::size_t at_ = 0;
};

}  // namespace

Pattern parse_pattern(std::string_view text, Symbols& symbols, Variables& variables) {
  return Parser(text, symbols, variables).parse();
}

}  // namespace pantala::egraph
