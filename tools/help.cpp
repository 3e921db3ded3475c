#include "tools/help.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "tools/options.h"

namespace pantala::tools {

namespace {

constexpr std::size_t kWidth = 80, kLeft = 26;

// The words in lines of at most kWidth; the first line begins at column `at`, the others at
// `indent`. A word that is longer has a line of its own.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent) {
  std::istringstream words{std::string(text)};
  std::string lines;
  bool line_has_word = false;
  for (std::string word; words >> word;) {
    if (line_has_word && at + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
      line_has_word = false;
    }
    if (line_has_word) lines += " ", ++at;
    lines += word;
    at += word.size();
    line_has_word = true;
  }
  return lines;
}

// "  name          what it means"
std::string two_columns(const std::string& name, std::string_view meaning) {
  std::string text = "  " + name;
  if (meaning.empty()) return text + "\n";
  if (text.size() + 2 > kLeft)
    text += "\n" + std::string(kLeft, ' ');
  else
    text.resize(kLeft, ' ');
  return text + wrapped(meaning, kLeft, kLeft) + "\n";
}

bool is_prose(const std::string& line) {
  return !line.empty() && line.front() != ' ' && line.back() != ':';
}

// Examples and titles stay as they are, with their spaces, if they fit; lines of prose are one
// paragraph, wrapped anew.
std::string fitted(const std::string& text) {
  std::istringstream in(text);
  std::string lines, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) lines += wrapped(paragraph, 0, 0) + "\n";
    paragraph.clear();
  };
  for (std::string line; std::getline(in, line);) {
    if (is_prose(line)) {
      paragraph += line + " ";
      continue;
    }
    end_paragraph();
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    lines += line.size() <= kWidth
                 ? line + "\n"
                 : line.substr(0, indent) + wrapped(line, indent, indent + 4) + "\n";
  }
  end_paragraph();
  return lines;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return two_columns(make_option_name(option, is_positional) + make_option_opts(option),
                     make_option_desc(option));
}

// Without the ranges of numbers, which messages name and the manual has.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  const std::size_t middle = text.find(" in ["), begin = text.rfind(':', middle),
                    end = text.find(']', middle);
  if (middle != std::string::npos && begin != std::string::npos && end != std::string::npos)
    text.erase(begin, end + 1 - begin);
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return short_text(option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  return two_columns(verb->get_display_name(true), verb->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return fitted(CLI::Formatter::make_description(app));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return fitted(CLI::Formatter::make_footer(app));
}

}  // namespace pantala::tools
