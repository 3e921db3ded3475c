#include "io/npy_header.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// As much of Python's literals as headers have: strings, True and False, tuples of integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      entry(key);
      if (!accept(',') && !ahead('}')) fail("expected ',' or '}'");
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!descr_ || !fortran_ || !shape_)
      fail("the dictionary must have 'descr', 'fortran_order' and 'shape'");
    return {.element = element(), .order = order(), .fortran = *fortran_, .shape = *shape_};
  }

 private:
  void entry(const std::string& key) {
    if (key == "descr" && !descr_) {
      skip_space();
      if (ahead('['))
        throw UnsupportedError(what_ + ": elements that have fields (a structured dtype); save " +
                               "each field as an array of its own");
      descr_ = string();
    } else if (key == "fortran_order" && !fortran_) {
      fortran_ = boolean();
    } else if (key == "shape" && !shape_) {
      shape_ = tuple();
    } else {
      fail(fmt::format("the key {} is unknown or there twice", in_quotes(key)));
    }
  }

  std::endian order() const {
    switch (descr_->empty() ? '\0' : descr_->front()) {
      case '>':
        return std::endian::big;
      case '=':
        return std::endian::native;
      case '<':
      case '|':
        return std::endian::little;
      default:
        fail(fmt::format("the dtype {} does not begin with a byte order", in_quotes(*descr_)));
    }
  }
  std::string element() const {
    if (descr_->size() < 2) fail(fmt::format("the dtype {} is none", in_quotes(*descr_)));
    return descr_->substr(1);
  }

  std::string string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a string");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a string that does not end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(inside);
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::string_view(word).size();
        return value;
      }
    fail("expected True or False");
  }
  Shape tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(integer());
      if (!accept(',') && !ahead(')')) fail("expected ',' or ')'");
    }
    try {
      return Shape(sizes);
    } catch (const TypeError& error) { fail(error.what()); }
  }
  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [stop, status] = std::from_chars(text_.data() + at_, end, value);
    if (status != std::errc{}) fail("expected a size");
    at_ = static_cast<std::size_t>(stop - text_.data());
    if (ahead('L')) ++at_;  // as Python 2 wrote it
    return value;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool ahead(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool accept(char c) {
    skip_space();
    if (!ahead(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  [[noreturn]] void fail(std::string_view why) const {
    throw ParseError(fmt::format("{}: NPY header, character {}: {}", what_, at_, why));
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<Shape> shape_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& what) {
  return HeaderParser(text, what).parse();
}

std::string write_npy_header(const NpyHeader& header) {
  constexpr std::size_t kAlignment = 64;  // of the elements, as NumPy has it
  std::string shape;
  for (const std::int64_t size : header.shape) shape += fmt::format("{}, ", size);
  // A tuple of one keeps its comma, longer ones do not end with one.
  if (header.shape.rank() == 1) shape.resize(shape.size() - 1);
  if (header.shape.rank() > 1) shape.resize(shape.size() - 2);
  const char order = header.element.ends_with('1')         ? '|'
                     : header.order == std::endian::little ? '<'
                                                           : '>';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}), }}", order,
                                 header.element, header.fortran ? "True" : "False", shape);
  const std::size_t before = kNpyMagic.size() + 4;  // version and length
  const std::size_t unpadded = before + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  return fmt::format("{}{}{}{}{}{}", kNpyMagic, '\1', '\0', static_cast<char>(text.size() & 255),
                     static_cast<char>(text.size() >> 8), text);
}

}  // namespace pantala::io
