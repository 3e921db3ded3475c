#include "support/layering.h"

#include <fmt/format.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace pantala::tests {

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

class Checker {
 public:
  explicit Checker(const std::vector<Module>& modules) : modules_(modules) {
    // Modules are listed bottom up, so the closures of the dependencies are complete when a module
    // is met.
    for (const Module& module : modules) {
      std::set<std::string>& closure = closures_[module.name];
      closure.insert(module.name);
      std::set<std::string>& used = used_[module.name];
      used.insert(module.uses.begin(), module.uses.end());
      for (const std::string& dependency : module.depends) {
        closure.insert(closures_[dependency].begin(), closures_[dependency].end());
        used.insert(used_[dependency].begin(), used_[dependency].end());
      }
    }
  }

  std::vector<std::string> run(const std::vector<SourceFile>& files) {
    static const std::regex include(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
    for (const SourceFile& file : files) {
      std::istringstream lines(file.text);
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        ++number;
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        const std::string problem = check(file.path, match[2].str(), match[1].str() == "\"");
        if (!problem.empty())
          violations_.push_back(fmt::format("{}:{}: {}", file.path, number, problem));
      }
    }
    return violations_;
  }

 private:
  static bool starts(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
  }

  // The module whose folder holds the path (the longest name wins), or "".
  std::string module_of_source(std::string_view path) const {
    std::string best;
    for (const Module& module : modules_)
      if (starts(path, module.name + "/") && module.name.size() > best.size()) best = module.name;
    return best;
  }

  std::string module_of_header(std::string_view header) const {
    for (const Module& module : modules_)
      for (const std::string& owned : module.headers)
        if (header == owned || (owned.back() == '/' && starts(header, owned))) return module.name;
    return "";
  }

  // Public headers are a part of every face.
  bool is_face(const std::string& name, const std::string& header) const {
    if (starts(header, "pantala/")) return true;
    for (const Module& module : modules_)
      for (const std::string& shown : module.face)
        if (module.name == name && header == name + "/" + shown) return true;
    return false;
  }

  std::string allowed(const std::string& user, const std::string& used,
                      const std::string& what) const {
    if (used.empty()) return fmt::format("{} belongs to no module", what);
    if (closures_.at(user).contains(used)) return "";
    if (used_.at(user).contains(used) && is_face(used, what)) return "";
    return fmt::format("{} must not include {} of module {}", user, what, used);
  }

  std::string check(const std::string& path, const std::string& included, bool quoted) const {
    if ((starts(included, "llvm/") || starts(included, "llvm-c/")) &&
        !starts(path, "src/codegen/llvm"))
      return fmt::format("{} must not be included outside of codegen/llvm", included);
    if (!quoted || starts(included, "llvm")) return "";
    const bool is_public = starts(path, "include/pantala/");
    const std::string user =
        is_public ? module_of_header(path.substr(16)) : module_of_source(path.substr(4));
    if (user.empty()) return "the file belongs to no module";
    if (starts(included, "pantala/")) {
      if (path == "include/pantala/pantala.h") return "";
      return allowed(user, module_of_header(included.substr(8)), included);
    }
    if (is_public) return fmt::format("a public header must not include {}", included);
    return allowed(user, module_of_source(included), included);
  }

  const std::vector<Module>& modules_;
  std::map<std::string, std::set<std::string>> closures_, used_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<Module> parse_modules(std::string_view text) {
  std::vector<Module> modules;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '|');) fields.push_back(field);
    if (line.find('|') == std::string::npos) continue;
    fields.resize(5);
    modules.push_back(
        {fields[0], words(fields[1]), words(fields[2]), words(fields[3]), words(fields[4])});
  }
  return modules;
}

std::vector<std::string> layering_violations(const std::vector<Module>& modules,
                                             const std::vector<SourceFile>& files) {
  return Checker(modules).run(files);
}

}  // namespace pantala::tests
