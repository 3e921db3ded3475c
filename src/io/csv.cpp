#include "io/csv.h"

#include <fmt/format.h>

#include <cctype>

#include "pantala/error.h"

namespace pantala::io {

namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

CsvReader::CsvReader(std::string name, std::string_view text, char separator,
                     const CsvLimits& limits)
    : name_(std::move(name)), text_(text), separator_(separator), limits_(limits) {
  if (std::isalnum(static_cast<unsigned char>(separator)) ||
      std::string_view("\"\r\n+-.\0", 7).find(separator) != std::string_view::npos)
    throw TypeError(fmt::format("csv: the byte {} cannot separate fields; use ',', ';' or a tab",
                                static_cast<int>(static_cast<unsigned char>(separator))));
  if (text_.starts_with(kUtf8Mark)) text_.remove_prefix(kUtf8Mark.size());
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    throw ParseError(name_ + ": line 1: the text is UTF-16; save it as UTF-8");
}

bool CsvReader::next() {
  fields_.clear();
  unescaped_.clear();
  const std::int64_t empty_line = next_line_;
  const bool skipped = skip_empty_lines();
  if (at_end()) return false;
  if (skipped) fail(empty_line, "an empty line between others");
  line_ = next_line_;
  record_start_ = at_;
  do {
    if (fields_.size() == limits_.fields)
      fail(line_, fmt::format("more than {} fields", limits_.fields));
    std::size_t ahead = at_;
    while (ahead < text_.size() && (text_[ahead] == ' ' || text_[ahead] == '\t') &&
           text_[ahead] != separator_)
      ++ahead;
    if (ahead < text_.size() && text_[ahead] == '"') {
      at_ = ahead;
      quoted_field();
    } else {
      plain_field();
    }
    check_length();
  } while (separator_follows());
  return true;
}

bool CsvReader::skip_empty_lines() {
  bool skipped = false;
  for (; !at_end() && at_line_end(); skipped = true) end_line();
  return skipped;
}

void CsvReader::plain_field() {
  const std::size_t begin = at_;
  while (!at_end() && text_[at_] != separator_ && !at_line_end()) {
    if (text_[at_] == '"') fail_here("a quote inside a field that does not begin with one");
    ++at_;
  }
  fields_.push_back({.text = trimmed(text_.substr(begin, at_ - begin))});
}

void CsvReader::quoted_field() {
  const std::int64_t first_line = next_line_;
  const std::size_t begin = ++at_;
  bool doubled = false;
  for (;; ++at_) {
    if (at_end())
      fail(first_line, fmt::format("column {}: a quote that is not closed", fields_.size()));
    check_length();
    if (text_[at_] == '"') {
      if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
      doubled = true;
      ++at_;
    } else if (text_[at_] == '\n' ||
               (text_[at_] == '\r' && !text_.substr(at_ + 1).starts_with('\n'))) {
      ++next_line_;
    }
  }
  std::string_view inside = text_.substr(begin, at_ - begin);
  ++at_;
  if (doubled) {
    std::string& plain = unescaped_.emplace_back();
    for (std::size_t k = 0; k < inside.size(); ++k) {
      plain += inside[k];
      if (inside[k] == '"') ++k;
    }
    inside = plain;
  }
  fields_.push_back({.text = inside, .quoted = true});
  while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t') && text_[at_] != separator_) ++at_;
  if (!at_end() && text_[at_] != separator_ && !at_line_end()) {
    fields_.pop_back();
    fail_here("text behind the closing quote of a field");
  }
}

bool CsvReader::separator_follows() {
  if (at_end()) return false;
  if (at_line_end()) {
    end_line();
    return false;
  }
  ++at_;
  return true;
}

void CsvReader::end_line() {
  if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
  ++at_;
  ++next_line_;
}

void CsvReader::check_length() const {
  if (at_ - record_start_ > limits_.record_bytes)
    fail(line_, fmt::format("longer than {} bytes; is a quote not closed?", limits_.record_bytes));
}

void CsvReader::fail(std::int64_t line, std::string_view why) const {
  throw ParseError(fmt::format("{}: line {}: {}", name_, line, why));
}

void CsvReader::fail_here(std::string_view why) const {
  fail(next_line_, fmt::format("column {}: {}", fields_.size(), why));
}

}  // namespace pantala::io
