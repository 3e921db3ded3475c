#include "support/joined_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <regex>
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
      const Names names = declared(all);
      own.insert(names.begin(), names.end());
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
  // The names that a statement declares: behind struct and its like, or those outside of brackets
  // behind which a declarator goes on or ends: one, and one behind each comma.
  static Names declared(const Tokens& all) {
    static const Names kinds{"struct", "class", "enum", "union", "concept"};
    static const Names ends{"(", "=", "{", "[", ";", ","};
    static const Names no_names{"alignas", "decltype", "noexcept", "requires", "const", "operator"};
    if (kinds.contains(all[0])) return {all[kinds.contains(all[1]) ? 2 : 1]};
    Names names;
    std::size_t last = 0;  // of a specialisation: f<int> = 3
    bool expects = true;   // a name
    int depth = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      static const Names opens{"<", "(", "["}, closes{">", ")", "]"};
      if (opens.contains(all[k])) ++depth;
      if (closes.contains(all[k])) depth = std::max(0, depth - 1);
      if (depth > 0) continue;
      if (all[k] == ",") expects = true;
      if (!expects || !is_name(all[k])) continue;
      last = k;
      const std::string& next = k + 1 < all.size() ? all[k + 1] : *ends.find(";");
      if (!ends.contains(next) || no_names.contains(all[k])) continue;
      names.insert(all[k]);
      expects = false;
    }
    if (names.empty()) names.insert(all[last]);
    return names;
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

// Files by path, what they say, and which headers they read.
class Sources {
 public:
  explicit Sources(const std::vector<SourceFile>& files) {
    for (const SourceFile& file : files) texts_.emplace(file.path, &file.text);
  }
  bool contains(const std::string& path) const { return texts_.contains(path); }
  const SpokenNames& names(const std::string& path) {
    const auto found = names_.find(path);
    return found != names_.end()
               ? found->second
               : names_.emplace(path, spoken_names(*texts_.at(path))).first->second;
  }
  // All headers of the project that it reads, directly or through others.
  const Names& headers(const std::string& path) {
    const auto found = headers_.find(path);
    if (found != headers_.end()) return found->second;
    Names seen;
    std::vector<std::string> open{path};
    while (!open.empty()) {
      const std::string at = open.back();
      open.pop_back();
      for (const std::string& header : included(at))
        if (seen.insert(header).second) open.push_back(header);
    }
    return headers_.emplace(path, std::move(seen)).first->second;
  }

 private:
  std::vector<std::string> included(const std::string& path) const {
    static const std::regex pattern("#\\s*include\\s*\"([^\"]+)\"");
    const std::string& text = *texts_.at(path);
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      for (const char* root : {"src/", "include/", ""})
        if (contains(root + (*at)[1].str())) found.push_back(root + (*at)[1].str());
    return found;
  }

  std::map<std::string, const std::string*> texts_;
  std::map<std::string, SpokenNames> names_;
  std::map<std::string, Names> headers_;
};

// What is said of another file's names; what both files bring into a namespace is the same.
Names heard(const SpokenNames& names, const SpokenNames& others) {
  Names all;
  std::ranges::set_intersection(names.said, others.own, std::inserter(all, all.end()));
  for (const std::string& name : others.brought)
    if (std::ranges::binary_search(names.said, name) &&
        !std::ranges::binary_search(names.brought, name))
      all.insert(name);
  return all;
}

// Of a file behind another one.
std::vector<std::string> violations_of(const std::string& path, const std::string& before,
                                       Sources& sources) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& who, const Names& names, const std::string& whose) {
    for (const std::string& name : names)
      lines.push_back(fmt::format("{} says '{}', which {} declares for itself", who, name, whose));
  };
  add(path, heard(sources.names(path), sources.names(before)), before);
  add(before, heard(sources.names(before), {.own = sources.names(path).own}), path);
  for (const std::string& header : sources.headers(path))
    if (!sources.headers(before).contains(header))
      add(fmt::format("{}, which {} includes,", header, path),
          heard(sources.names(header), sources.names(before)), before);
  return lines;
}

}  // namespace

SpokenNames spoken_names(const std::string& text) {
  const Tokens tokens = Lexer(text).run();
  const Declarations declarations(tokens);
  return {sorted(declarations.own), sorted(declarations.brought), sorted(said_names(tokens))};
}

std::vector<std::string> joining_violations(const std::vector<std::vector<std::string>>& groups,
                                            const std::vector<SourceFile>& files) {
  Sources sources(files);
  std::vector<std::string> violations;
  Names grouped;
  for (const std::vector<std::string>& group : groups)
    for (std::size_t k = 0; k < group.size(); ++k) {
      if (!grouped.insert(group[k]).second) violations.push_back(group[k] + " stands twice");
      if (!sources.contains(group[k])) {
        violations.push_back(group[k] + " is no file");
        continue;
      }
      for (std::size_t before = 0; before < k; ++before)
        if (sources.contains(group[before])) {
          const std::vector<std::string> found = violations_of(group[k], group[before], sources);
          violations.insert(violations.end(), found.begin(), found.end());
        }
    }
  return violations;
}

}  // namespace pantala::tests
