// Every file of tests/error/graphs is a text that must be refused. Its first line states the
// error and the exact message,
//
//   # error: TypeError: sum (name.pn:4): axis 3 is out of range [-1, 1) (x f32[2])
//
// and the second may ask for a differentiation, `# differentiate LOSS wrt LEAF`, which is then what
// must fail (LOSS is an output).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/text.h"

namespace pantala::tests {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(PANTALA_SOURCE_DIR) / "tests/error/graphs";

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// "TypeError: message", or "no error".
std::string outcome(const std::string& text, const std::string& file) {
  static const std::regex order(R"(# differentiate (\S+) wrt (\S+))");
  std::smatch match;
  try {
    const Graph graph = parse_graph(text, file);
    if (std::regex_search(text, match, order))
      differentiate(graph, graph.output(match[1].str()), {graph.leaf(match[2].str())});
    return "no error";
  } catch (const TypeError& error) {
    return fmt::format("TypeError: {}", error.what());
  } catch (const ParseError& error) { return fmt::format("ParseError: {}", error.what()); }
}

class TextGraphs : public ::testing::TestWithParam<std::string> {};

TEST_P(TextGraphs, are_refused_with_the_stated_message) {
  const std::string file = GetParam() + ".pn", text = read(kFolder / file), mark = "# error: ";
  ASSERT_EQ(text.substr(0, mark.size()), mark) << file;
  EXPECT_EQ(outcome(text, file), text.substr(mark.size(), text.find('\n') - mark.size()));
}

std::vector<std::string> graphs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".pn") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
const auto name_of = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Error, TextGraphs, ::testing::ValuesIn(graphs()), name_of);

TEST(TextGraphsCoverage, there_are_at_least_60) { EXPECT_GE(graphs().size(), 60u); }

}  // namespace
}  // namespace pantala::tests
