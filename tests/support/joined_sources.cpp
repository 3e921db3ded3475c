#include "support/joined_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

namespace pantala::tests {

namespace {

using Names = std::set<std::string>;
using Tokens = std::vector<std::string>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name(const std::string& token) {
  return is_word(token[0]) && std::isdigit(static_cast<unsigned char>(token[0])) == 0;
}

// Words and signs; comments, and what stands in quotes, are left out. A macro's definition is the
// token "#define" and its name; other directives are left out.
class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  Tokens run() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  bool sees(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  void skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == text_.npos ? text_.size() : found + end.size();
  }

  void step() {
    const char c = text_[at_];
    if (sees("//")) return skip_past("\n");
    if (sees("/*")) return skip_past("*/");
    if (c == '#') return directive();
    if (sees("R\"")) return raw_string();
    if (c == '"' || c == '\'') return quoted(c);
    if (is_word(c)) return word();
    if (sees("::") || sees("->")) {
      tokens_.push_back(text_.substr(at_, 2));
      at_ += 2;
      return;
    }
    if (std::isspace(static_cast<unsigned char>(c)) == 0) tokens_.emplace_back(1, c);
    ++at_;
  }

  void directive() {
    std::size_t end = at_;
    do end = text_.find('\n', end + 1);
    while (end != text_.npos && text_[end - 1] == '\\');
    const std::string line = text_.substr(at_, end - at_);
    if (const std::size_t define = line.find("define "); define != line.npos) {
      const auto first = line.begin() + static_cast<std::ptrdiff_t>(define) + 7;
      tokens_.insert(tokens_.end(),
                     {"#define", {first, std::find_if_not(first, line.end(), is_word)}});
    }
    at_ = end == text_.npos ? text_.size() : end;
  }
  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    const std::string end = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    skip_past(end);
  }
  void quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }
  void word() {
    const std::size_t begin = at_;
    const bool number = !is_name(text_.substr(at_, 1));
    while (at_ < text_.size() && (is_word(text_[at_]) || (number && text_[at_] == '\''))) ++at_;
    tokens_.push_back(text_.substr(begin, at_ - begin));
  }

  const std::string& text_;
  std::size_t at_ = 0;
  Tokens tokens_;
};

// Walks the statements of namespaces and notes what they declare.
class Declarations {
 public:
  explicit Declarations(Tokens tokens) : tokens_(std::move(tokens)) {
    while (at_ < tokens_.size()) step();
  }
  Names own, brought;

 private:
  void step() {
    const std::string& token = tokens_[at_];
    if (token == "#define") {
      own.insert(tokens_[at_ + 1]);
      at_ += 2;
    } else if (token == "namespace" && statement_.empty()) {
      open_namespace();
    } else if (token == "}" && statement_.empty()) {
      unnamed_.pop_back();
      ++at_;
    } else if (token == "{") {  // a body, or an initialiser
      statement_.push_back(token);
      skip_braces();
      end_statement();
    } else {
      ++at_;
      if (token == ";")
        end_statement();
      else
        statement_.push_back(token);
    }
  }
  void open_namespace() {
    const std::size_t begin = ++at_;
    while (tokens_[at_] != "{" && tokens_[at_] != ";") ++at_;
    if (tokens_[at_++] == ";")
      brought.insert(tokens_[begin]);  // an alias
    else
      unnamed_.push_back(at_ == begin + 1);
  }
  void skip_braces() {
    int depth = 0;
    do {
      if (tokens_[at_] == "{") ++depth;
      if (tokens_[at_] == "}") --depth;
      ++at_;
    } while (depth > 0 && at_ < tokens_.size());
  }

  void end_statement() {
    const Tokens all = without_templates(std::exchange(statement_, {}));
    if (all.size() < 2) return;
    const bool unnamed = std::ranges::find(unnamed_, true) != unnamed_.end();
    if (all[0] == "using") {
      const bool alias = std::ranges::find(all, "=") != all.end();
      (unnamed ? own : brought).insert(alias ? all[1] : all.back());
    } else if (unnamed || all[0] == "static") {
      own.insert(declared(all));
    }
  }
  static Tokens without_templates(Tokens all) {
    while (!all.empty() && all[0] == "template") {
      int depth = 0;
      auto at = all.begin() + 1;
      do {
        if (*at == "<") ++depth;
        if (*at == ">") --depth;
        ++at;
      } while (depth > 0 && at != all.end());
      all.erase(all.begin(), at);
    }
    return all;
  }
  // The name that a statement declares: behind struct and its like, or the first one outside of
  // brackets behind which a declarator goes on or ends.
  static std::string declared(const Tokens& all) {
    static const Names kinds{"struct", "class", "enum", "union", "concept"};
    static const Names ends{"(", "=", "{", "[", ";"};
    static const Names no_names{"alignas", "decltype", "noexcept", "requires", "const", "operator"};
    if (kinds.contains(all[0])) return all[kinds.contains(all[1]) ? 2 : 1];
    int angles = 0;
    std::size_t last = 0;  // of a specialisation: f<int> = 3
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k] == "<") ++angles;
      if (all[k] == ">") angles = std::max(0, angles - 1);
      if (angles == 0 && is_name(all[k])) last = k;
      const std::string& next = k + 1 < all.size() ? all[k + 1] : *ends.find(";");
      if (angles == 0 && is_name(all[k]) && ends.contains(next) && !no_names.contains(all[k]))
        return all[k];
    }
    return all[last];
  }

  const Tokens tokens_;
  std::size_t at_ = 0;
  Tokens statement_;
  std::vector<bool> unnamed_;  // of the namespaces that are open
};

Names said_names(const Tokens& tokens) {
  Names said;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    const std::string before = k > 0 ? tokens[k - 1] : "";
    const bool of_std = before == "::" && k > 1 && tokens[k - 2] == "std";
    if (is_name(tokens[k]) && before != "." && before != "->" && !of_std) said.insert(tokens[k]);
  }
  return said;
}

std::vector<std::string> sorted(const Names& names) { return {names.begin(), names.end()}; }

void compare(const std::string& path, const SpokenNames& names, const std::string& other,
             const SpokenNames& others, std::vector<std::string>& violations) {
  Names heard;
  std::ranges::set_intersection(names.said, others.own, std::inserter(heard, heard.end()));
  for (const std::string& name : others.brought)
    if (std::ranges::binary_search(names.said, name) &&
        !std::ranges::binary_search(names.brought, name))
      heard.insert(name);
  for (const std::string& name : heard)
    violations.push_back(
        fmt::format("{} says '{}', which {} declares for itself", path, name, other));
}

}  // namespace

SpokenNames spoken_names(const std::string& text) {
  const Tokens tokens = Lexer(text).run();
  const Declarations declarations(tokens);
  return {sorted(declarations.own), sorted(declarations.brought), sorted(said_names(tokens))};
}

std::vector<std::string> joining_violations(const std::vector<std::vector<std::string>>& groups,
                                            const std::vector<SourceFile>& files) {
  std::map<std::string, SpokenNames> names;
  for (const SourceFile& file : files) names.emplace(file.path, spoken_names(file.text));
  std::vector<std::string> violations;
  Names grouped;
  for (const std::vector<std::string>& group : groups)
    for (const std::string& path : group) {
      if (!names.contains(path)) violations.push_back(path + " is no file");
      if (!grouped.insert(path).second) violations.push_back(path + " stands twice");
      for (const std::string& other : group)
        if (other != path && names.contains(path) && names.contains(other))
          compare(path, names.at(path), other, names.at(other), violations);
    }
  return violations;
}

}  // namespace pantala::tests
