#include "support/include_cycles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace pantala::tests {

namespace {

struct Include {
  std::string from, to;  // paths from the root
  int line = 0;
};

using Edges = std::map<std::string, std::set<std::string>>;

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// "src/schedule" of "src/schedule/cpu/conv.h"; "tools" of everything in tools/.
std::string module_of(const std::string& path) {
  const std::size_t first = path.find('/');
  const std::string top = path.substr(0, first);
  return top == "src" ? path.substr(0, path.find('/', first + 1)) : top;
}

std::vector<Include> includes_of(const std::vector<SourceFile>& files) {
  static const std::regex pattern(R"(^\s*#\s*include\s*"([^"]+)\")");
  std::set<std::string> known;
  for (const SourceFile& file : files) known.insert(file.path);
  std::vector<Include> all;
  for (const SourceFile& file : files) {
    std::istringstream lines(file.text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      for (const std::string& path : {"src/" + match[1].str(), match[1].str()})
        if (known.contains(path)) all.push_back({file.path, path, number});
    }
  }
  return all;
}

std::set<std::string> reachable(const Edges& edges, const std::string& from) {
  std::set<std::string> seen;
  std::vector<std::string> open{from};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    const auto found = edges.find(at);
    if (found == edges.end()) continue;
    for (const std::string& next : found->second)
      if (seen.insert(next).second) open.push_back(next);
  }
  return seen;
}

bool ends_with_header(const std::string& path) { return path.ends_with(".h"); }

// The headers that reach themselves.
void find_header_circles(const std::vector<Include>& includes,
                         std::vector<std::string>& violations) {
  Edges edges;
  for (const Include& one : includes)
    if (ends_with_header(one.from) && ends_with_header(one.to)) edges[one.from].insert(one.to);
  std::vector<std::string> circle;
  for (const auto& [header, targets] : edges)
    if (reachable(edges, header).contains(header)) circle.push_back(header);
  if (!circle.empty())
    violations.push_back(
        fmt::format("headers include one another in a circle: {}", fmt::join(circle, ", ")));
}

bool between_folders(const Include& one) {
  return module_of(one.from) == module_of(one.to) && folder_of(one.from) != folder_of(one.to);
}

void find_folder_circles(const std::vector<Include>& includes,
                         const std::vector<std::string>& gathering,
                         std::vector<std::string>& violations) {
  const auto gathers = [&](const std::string& path) {
    return std::find(gathering.begin(), gathering.end(), path) != gathering.end();
  };
  Edges edges;
  for (const Include& one : includes)
    if (between_folders(one) && !gathers(one.from))
      edges[folder_of(one.from)].insert(folder_of(one.to));
  const auto closes = [&](const Include& one) {
    return between_folders(one) &&
           reachable(edges, folder_of(one.to)).contains(folder_of(one.from));
  };
  std::set<std::string> needed;
  for (const Include& one : includes) {
    if (!closes(one)) continue;
    if (gathers(one.from))
      needed.insert(one.from);
    else
      violations.push_back(fmt::format("{}:{}: {} and {} include one another: {}", one.from,
                                       one.line, folder_of(one.from), folder_of(one.to), one.to));
  }
  for (const std::string& path : gathering)
    if (!needed.contains(path))
      violations.push_back(fmt::format("{}: needs no permission to close a circle", path));
}

void check_verbs(const std::vector<Include>& includes, std::vector<std::string>& violations) {
  for (const Include& one : includes) {
    if (one.to.starts_with("tools/verb_"))
      violations.push_back(
          fmt::format("{}:{}: nobody includes a file of a verb: {}", one.from, one.line, one.to));
    if (one.to == "tools/command.h" && folder_of(one.from) != "tools")
      violations.push_back(
          fmt::format("{}:{}: what verbs use does not know the command", one.from, one.line));
  }
}

}  // namespace

std::vector<std::string> direction_violations(const std::vector<SourceFile>& files,
                                              const std::vector<std::string>& gathering) {
  const std::vector<Include> includes = includes_of(files);
  std::vector<std::string> violations;
  find_header_circles(includes, violations);
  find_folder_circles(includes, gathering, violations);
  check_verbs(includes, violations);
  return violations;
}

}  // namespace pantala::tests
