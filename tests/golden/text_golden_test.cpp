// Text in, text out: committed files show what graphs look like. tests/golden/NAME.txt is the
// expected text, NAME.in.txt (where there is one) the text that it is made from. A difference
// writes the actual text to the build folder, ready to be reviewed and copied.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "pantala/autodiff.h"
#include "pantala/ops.h"
#include "pantala/text.h"

namespace pantala::tests {
namespace {

std::string read(const std::string& name) {
  std::ifstream in(std::filesystem::path(PANTALA_SOURCE_DIR) / "tests/golden" / name,
                   std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void expect_golden(const Graph& graph, const std::string& name) {
  verify(graph);
  const std::string actual = to_text(graph), expected = read(name);
  if (actual != expected) {
    const std::filesystem::path folder = std::filesystem::path(PANTALA_BINARY_DIR) / "golden";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / name, std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, expected) << "the actual text is in golden/" << name << " of the build folder";
  EXPECT_EQ(to_text(parse_graph(expected, name)), expected);
}

// Two layers, cross-entropy written out, gradients and a plain gradient step.
Graph mlp_training() {
  Graph g;
  const Tensor x = g.input("x", {4, 6}), target = g.input("target", {4, 3});
  const Tensor w1 = g.parameter("fc1.weight", {5, 6}, init::kaiming_uniform()),
               b1 = g.parameter("fc1.bias", {5});
  const Tensor w2 = g.parameter("fc2.weight", {3, 5}, init::kaiming_uniform()),
               b2 = g.parameter("fc2.bias", {3});
  const Tensor rate = g.scalar("lr", 0.1);
  const Tensor logits = linear(relu(linear(x, w1, b1)), w2, b2);
  const Tensor loss = -mean(sum(target * (logits - logsumexp(logits, {-1}, true)), {-1}));
  g.output("loss", loss);
  Gradients d = differentiate(g, loss, {w1, b1, w2, b2});
  std::size_t k = 0;
  for (const Tensor& p : {w1, b1, w2, b2})
    d.graph.update(d.at(p), d.at(p) - cast(d.at(rate), f32) * d.gradients[k++]);
  return d.graph;
}

TEST(Golden, mlp_training_graph) { expect_golden(mlp_training(), "mlp_training.txt"); }

// Comments go, names become numbers, defaults are filled in, negative axes are counted from the
// front, equal nodes are one.
TEST(Golden, normal_form_of_a_text) {
  expect_golden(parse_graph(read("normal_form.in.txt"), "normal_form.in.txt"), "normal_form.txt");
}

TEST(Golden, sugar_is_expanded) {
  expect_golden(parse_graph(read("sugar.in.txt"), "sugar.in.txt"), "sugar.txt");
}

TEST(Golden, gradient_of_a_text) {
  const Graph g = parse_graph(read("gradient.in.txt"), "gradient.in.txt");
  Gradients d = differentiate(g, g.output("loss"), {g.leaf("gain"), g.leaf("bias")});
  d.graph.output("d gain", d.gradients[0]);
  d.graph.output("d bias", d.gradients[1]);
  expect_golden(d.graph, "gradient.txt");
}

// The example of docs/text-form.md, without its comment, is what printing it gives.
TEST(Golden, example_of_the_documentation) {
  const std::string page = read("../../docs/text-form.md");
  const std::size_t begin = page.find("graph {"), end = page.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  std::string example = page.substr(begin, end - begin);
  const Graph graph = parse_graph(example, "text-form.md");
  example.erase(example.find("  #"), example.find('\n') - example.find("  #"));
  EXPECT_EQ(to_text(graph), example);
}

}  // namespace
}  // namespace pantala::tests
