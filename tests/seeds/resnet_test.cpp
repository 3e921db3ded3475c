// Section 2 of the checklist: ResNet, the graphs.
#include "pantala/zoo/resnet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/errors.h"
#include "support/numbers.h"

namespace pantala::tests::resnet_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zoo::ResnetForm;
using zoo::ResnetOptions;

// --- what a graph looks like
std::vector<std::string> names_of(const Graph& graph, LeafKind kind) {
  std::vector<std::string> names;
  for (const Leaf& leaf : graph.leaves(kind)) names.push_back(leaf.name);
  return names;
}

std::int64_t elements_of(const Graph& graph) {
  std::int64_t count = 0;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) count += leaf.value.numel();
  return count;
}

std::int64_t running_statistics_of(const Graph& graph) {
  const std::vector<std::string> states = names_of(graph, LeafKind::state);
  return std::count_if(states.begin(), states.end(), [](const std::string& name) {
    return name.find(".running_") != std::string::npos;
  });
}

// A network as formulas: convolutions are conv[stride,padding](x, weight), biases are added.
class Formulas {
 public:
  explicit Formulas(const Graph& graph) : data_(*graph.data()) {
    for (std::uint32_t id = 0; id < data_.nodes().size(); ++id) {
      const ir::Node& node = data_.node(id);
      if (node.op->name == "max_pool2d") stops_.insert(pool_ = id);
      if (node.op->name == "relu" && is_residual_sum(node.inputs[0].node)) {
        stops_.insert(id);
        blocks_.push_back(id);
      }
    }
  }

  // From the image to the pool.
  std::string stem() const { return inside(pool_); }
  std::size_t blocks() const { return blocks_.size(); }
  // Of the block of this number, whose input is x.
  std::string block(std::size_t number) const { return inside(blocks_[number]); }
  const Shape& shape(std::size_t number) const {
    return data_.node(blocks_[number]).results[0].shape;
  }

 private:
  bool is_residual_sum(std::uint32_t id) const {
    const ir::Node& node = data_.node(id);
    return node.op->name == "add" &&
           std::none_of(node.inputs.begin(), node.inputs.end(),
                        [&](ValueId v) { return data_.node(v.node).op->name == "broadcast_to"; });
  }
  std::string attribute(const ir::Node& node, std::string_view name) const {
    return ir::to_text(node.attrs[static_cast<std::size_t>(node.op->attr_index(name))]);
  }
  std::string formula(std::uint32_t id) const { return stops_.contains(id) ? "x" : inside(id); }
  std::string inside(std::uint32_t id) const {
    const ir::Node& node = data_.node(id);
    if (ir::leaf_kind(*node.op)) return data_.leaf_name(id);
    const std::string x = formula(node.inputs[0].node);
    if (node.op->name == "broadcast_to" || node.op->name == "reshape") return x;
    if (node.op->name == "relu") return fmt::format("relu({})", x);
    if (node.op->name == "add") return fmt::format("({} + {})", x, formula(node.inputs[1].node));
    if (node.op->name == "max_pool2d")
      return fmt::format("pool{}{}{}({})", attribute(node, "kernel"), attribute(node, "stride"),
                         attribute(node, "padding"), x);
    if (node.op->name == "convolution")
      return fmt::format("conv{}{}({}, {})", attribute(node, "stride"), attribute(node, "padding"),
                         x, formula(node.inputs[1].node));
    return node.op->name;
  }

  const ir::GraphData& data_;
  std::set<std::uint32_t> stops_;
  std::vector<std::uint32_t> blocks_;
  std::uint32_t pool_ = 0;
};

std::string convolved(const std::string& x, const std::string& conv, const std::string& norm,
                      int stride, int padding) {
  return fmt::format("(conv[{0},{0}][{1},{1}]({2}, {3}.weight) + {4}.bias)", stride, padding, x,
                     conv, norm);
}

std::string shortcut(const std::string& prefix, int stride, bool projects) {
  return projects ? convolved("x", prefix + "downsample.0", prefix + "downsample.1", stride, 0)
                  : "x";
}

std::string basic_block(const std::string& prefix, int stride, bool projects) {
  const std::string first =
      fmt::format("relu({})", convolved("x", prefix + "conv1", prefix + "bn1", stride, 1));
  return fmt::format("relu(({} + {}))", convolved(first, prefix + "conv2", prefix + "bn2", 1, 1),
                     shortcut(prefix, stride, projects));
}

std::string bottleneck(const std::string& prefix, int stride, bool projects) {
  const std::string first =
      fmt::format("relu({})", convolved("x", prefix + "conv1", prefix + "bn1", 1, 0));
  const std::string second =
      fmt::format("relu({})", convolved(first, prefix + "conv2", prefix + "bn2", stride, 1));
  return fmt::format("relu(({} + {}))", convolved(second, prefix + "conv3", prefix + "bn3", 1, 0),
                     shortcut(prefix, stride, projects));
}

const std::vector<std::string> kBlocks18 = {"layer1.0.", "layer1.1.", "layer2.0.", "layer2.1.",
                                            "layer3.0.", "layer3.1.", "layer4.0.", "layer4.1."};
const std::vector<std::string> kBlocks50 = {"layer1.0.", "layer1.1.", "layer1.2.", "layer2.0.",
                                            "layer2.1.", "layer2.2.", "layer2.3.", "layer3.0.",
                                            "layer3.1.", "layer3.2.", "layer3.3.", "layer3.4.",
                                            "layer3.5.", "layer4.0.", "layer4.1.", "layer4.2."};
bool begins_smaller_maps(const std::string& prefix) {
  return prefix.ends_with(".0.") && prefix != "layer1.0.";
}

std::string parameter_shape(const Graph& graph, const std::string& name) {
  return graph.leaf(name).shape().str();
}

TEST(Resnet, R01_images_to_logits) {
  const zoo::Model one = zoo::resnet18(), four = zoo::resnet18(4);
  EXPECT_EQ(one.graph.leaf("image").type().str(), "f32[1,3,224,224]");
  EXPECT_EQ(four.input.type().str(), "f32[4,3,224,224]");
  EXPECT_EQ(four.graph.output("logits").type().str(), "f32[4,1000]");
  EXPECT_EQ(four.logits, four.graph.output("logits"));
  const zoo::Model other =
      zoo::resnet50(2, {.channels = 1, .height = 28, .width = 45, .classes = 10});
  EXPECT_EQ(other.input.type().str(), "f32[2,1,28,45]");
  EXPECT_EQ(other.logits.type().str(), "f32[2,10]");
  for (const zoo::Model* model : {&one, &four, &other}) verify(model->graph);
}

TEST(Resnet, R02_sizes_of_convolutions_and_pools) {
  const auto sizes = [](std::int64_t size, std::int64_t kernel, std::int64_t stride,
                        std::int64_t pad) {
    Graph g;
    const Tensor x = g.input("x", {1, 1, size, size + 1});
    const Tensor conv = conv2d(x, g.parameter("w", {1, 1, kernel, kernel}), {},
                               {.stride = {stride}, .padding = {pad}});
    const Tensor pool =
        max_pool2d(x, {kernel}, {.stride = {stride}, .padding = {std::min(pad, kernel / 2)}});
    const auto expected = [&](std::int64_t extent, std::int64_t by) {
      return (extent + 2 * by - kernel) / stride + 1;
    };
    EXPECT_EQ(conv.dim(2), expected(size, pad));
    EXPECT_EQ(conv.dim(3), expected(size + 1, pad));
    EXPECT_EQ(pool.dim(2), expected(size, std::min(pad, kernel / 2)));
    return std::pair(conv.dim(2), pool.dim(2));
  };
  EXPECT_EQ(sizes(224, 7, 2, 3).first, 112);
  EXPECT_EQ(sizes(112, 3, 2, 1).second, 56);
  for (std::int64_t size = 7; size < 20; ++size)
    for (std::int64_t stride = 1; stride < 4; ++stride)
      for (std::int64_t pad = 0; pad < 4; ++pad) sizes(size, 5, stride, pad);
}

TEST(Resnet, R03_a_window_beyond_the_padded_input) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 4, 9}), w = g.parameter("w", {1, 1, 7, 7});
  EXPECT_THROW(conv2d(x, w, {}, {.padding = {1}}), TypeError);
  EXPECT_EQ(conv2d(x, w, {}, {.padding = {2}}).shape().str(), "[1,1,2,7]");
  EXPECT_THROW(max_pool2d(x, {5}), TypeError);
  EXPECT_THROW(avg_pool2d(x, {7}, {.padding = {1}}), TypeError);
}

TEST(Resnet, R04_stem) {
  const zoo::Model model = zoo::resnet18(2);
  EXPECT_EQ(Formulas(model.graph).stem(),
            fmt::format("pool[3,3][2,2][1,1](relu({}))", convolved("image", "conv1", "bn1", 2, 3)));
  EXPECT_EQ(parameter_shape(model.graph, "conv1.weight"), "[64,3,7,7]");
  EXPECT_EQ(parameter_shape(model.graph, "bn1.bias"), "[64]");
}

TEST(Resnet, R05_basic_blocks) {
  const zoo::Model model = zoo::resnet18();
  const std::vector<std::array<std::int64_t, 3>> expected = {
      {64, 64, 1},   {64, 64, 1},   {64, 128, 2},  {128, 128, 1},
      {128, 256, 2}, {256, 256, 1}, {256, 512, 2}, {512, 512, 1}};
  const Formulas formulas(model.graph);
  ASSERT_EQ(formulas.blocks(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const auto [in, out, stride] = expected[k];
    EXPECT_EQ(parameter_shape(model.graph, kBlocks18[k] + "conv1.weight"),
              fmt::format("[{},{},3,3]", out, in));
    EXPECT_EQ(parameter_shape(model.graph, kBlocks18[k] + "conv2.weight"),
              fmt::format("[{},{},3,3]", out, out));
    EXPECT_THAT(formulas.block(k), HasSubstr(fmt::format("conv[{0},{0}][1,1](x, {1}conv1.weight)",
                                                         stride, kBlocks18[k])));
    EXPECT_EQ(formulas.shape(k)[1], out);
  }
}

TEST(Resnet, R06_the_formula_of_a_basic_block) {
  const zoo::Model model = zoo::resnet18();
  const Formulas formulas(model.graph);
  EXPECT_EQ(formulas.block(0), basic_block("layer1.0.", 1, false));
  EXPECT_EQ(formulas.block(2), basic_block("layer2.0.", 2, true));
}

TEST(Resnet, R07_shortcuts) {
  const zoo::Model model = zoo::resnet18();
  const Formulas formulas(model.graph);
  for (std::size_t k = 0; k < kBlocks18.size(); ++k) {
    const bool projects = begins_smaller_maps(kBlocks18[k]);
    EXPECT_EQ(formulas.block(k), basic_block(kBlocks18[k], projects ? 2 : 1, projects));
    EXPECT_EQ(model.graph.find(kBlocks18[k] + "downsample.0.weight").has_value(), projects);
  }
}

TEST(Resnet, R08_maps) {
  const zoo::Model model = zoo::resnet18(3);
  const Formulas formulas(model.graph);
  for (std::size_t k = 0; k < 8; ++k) {
    const std::int64_t width = std::int64_t{56} >> (k / 2);
    EXPECT_EQ(formulas.shape(k), (Shape{3, std::int64_t{64} << (k / 2), width, width}));
  }
  EXPECT_EQ(formulas.shape(7).str(), "[3,512,7,7]");
  const ir::GraphData& data = *model.graph.data();
  const auto mean = std::find_if(data.nodes().begin(), data.nodes().end(),
                                 [](const ir::Node& node) { return node.op->name == "mean"; });
  ASSERT_NE(mean, data.nodes().end());
  EXPECT_EQ(data.type(mean->inputs[0]).shape.str(), "[3,512,7,7]");
  EXPECT_EQ(mean->results[0].shape.str(), "[3,512]");
}

TEST(Resnet, R09_shapes_of_weights) {
  for (const ResnetForm form : {ResnetForm::folded, ResnetForm::batch_norm}) {
    const Graph small_one = zoo::resnet18(1, {.form = form}).graph,
                large_one = zoo::resnet50(1, {.form = form}).graph;
    for (const Graph* graph : {&small_one, &large_one})
      EXPECT_EQ(parameter_shape(*graph, "conv1.weight"), "[64,3,7,7]");
    EXPECT_EQ(parameter_shape(small_one, "layer2.0.downsample.0.weight"), "[128,64,1,1]");
    EXPECT_EQ(parameter_shape(small_one, "fc.weight"), "[1000,512]");
    EXPECT_EQ(parameter_shape(large_one, "fc.weight"), "[1000,2048]");
    EXPECT_EQ(parameter_shape(large_one, "fc.bias"), "[1000]");
  }
}

TEST(Resnet, R10_one_bias_per_former_batch_norm) {
  const Graph one = zoo::resnet18(1).graph;
  const Graph another = zoo::resnet18(8, {.height = 61, .width = 300}).graph;
  std::size_t biases = 0;
  for (const Leaf& leaf : one.leaves(LeafKind::parameter)) {
    EXPECT_EQ(another.leaf(leaf.name).type(), leaf.value.type()) << leaf.name;
    if (!leaf.name.ends_with(".bias") || leaf.name == "fc.bias") continue;
    EXPECT_EQ(leaf.value.rank(), 1) << leaf.name;
    ++biases;
  }
  EXPECT_EQ(biases, 20u);
  EXPECT_TRUE(one.leaves(LeafKind::state).empty());
}

TEST(Resnet, R11_names_of_folded_biases) {
  const Graph graph = zoo::resnet18().graph;
  EXPECT_EQ(parameter_shape(graph, "bn1.bias"), "[64]");
  EXPECT_EQ(parameter_shape(graph, "layer1.0.bn2.bias"), "[64]");
  EXPECT_EQ(parameter_shape(graph, "layer2.0.downsample.1.bias"), "[128]");
}

TEST(Resnet, R12_counts_of_resnet18) {
  const Graph folded = zoo::resnet18().graph,
              full = zoo::resnet18(1, {.form = ResnetForm::batch_norm}).graph,
              trained = zoo::resnet18_training(2, {.form = ResnetForm::batch_norm}).graph;
  EXPECT_EQ(folded.leaves(LeafKind::parameter).size(), 42u);
  EXPECT_EQ(elements_of(folded), 11'684'712);
  EXPECT_EQ(running_statistics_of(folded), 0);
  for (const Graph* graph : {&full, &trained}) {
    EXPECT_EQ(graph->leaves(LeafKind::parameter).size(), 62u);
    EXPECT_EQ(elements_of(*graph), 11'689'512);
    EXPECT_EQ(running_statistics_of(*graph), 40);
  }
  EXPECT_TRUE(full.updates().empty());
  EXPECT_EQ(trained.updates().size(), 60u);  // and 20 counters
}

TEST(Resnet, R13_names_of_weights) {
  std::vector<std::string> expected = {"conv1.weight", "bn1.bias"};
  for (const std::string& block : kBlocks18) {
    for (const char* part : {"conv1.weight", "bn1.bias", "conv2.weight", "bn2.bias"})
      expected.push_back(block + part);
    if (begins_smaller_maps(block))
      for (const char* part : {"downsample.0.weight", "downsample.1.bias"})
        expected.push_back(block + part);
  }
  expected.insert(expected.end(), {"fc.weight", "fc.bias"});
  EXPECT_EQ(zoo::resnet18_weight_names(), expected);
}

TEST(Resnet, R14_the_names_are_the_graphs) {
  for (const ResnetForm form : {ResnetForm::folded, ResnetForm::batch_norm})
    for (const std::int64_t batch : {1, 8}) {
      const ResnetOptions options = {.form = form};
      EXPECT_EQ(names_of(zoo::resnet18(batch, options).graph, LeafKind::parameter),
                zoo::resnet18_weight_names(form));
      EXPECT_EQ(names_of(zoo::resnet50(batch, options).graph, LeafKind::parameter),
                zoo::resnet50_weight_names(form));
      EXPECT_EQ(names_of(zoo::resnet50_training(batch, options).graph, LeafKind::parameter),
                zoo::resnet50_weight_names(form));
    }
}

TEST(Resnet, R15_bottlenecks_of_resnet50) {
  const zoo::Model model = zoo::resnet50();
  const Formulas formulas(model.graph);
  ASSERT_EQ(formulas.blocks(), kBlocks50.size());
  std::int64_t in = 64;
  for (std::size_t k = 0; k < kBlocks50.size(); ++k) {
    const int layer = kBlocks50[k][5] - '1';
    const std::int64_t width = std::int64_t{64} << layer, out = 4 * width;
    const auto shape = [&](const char* part) {
      return parameter_shape(model.graph, kBlocks50[k] + part);
    };
    EXPECT_EQ(shape("conv1.weight"), fmt::format("[{},{},1,1]", width, in));
    EXPECT_EQ(shape("conv2.weight"), fmt::format("[{0},{0},3,3]", width));
    EXPECT_EQ(shape("conv3.weight"), fmt::format("[{},{},1,1]", out, width));
    EXPECT_EQ(formulas.shape(k),
              (Shape{1, out, std::int64_t{56} >> layer, std::int64_t{56} >> layer}));
    in = out;
  }
}

TEST(Resnet, R16_the_formula_of_a_bottleneck) {
  const zoo::Model model = zoo::resnet50();
  const Formulas formulas(model.graph);
  EXPECT_EQ(formulas.block(1), bottleneck("layer1.1.", 1, false));
  EXPECT_EQ(formulas.block(3), bottleneck("layer2.0.", 2, true));  // the stride is on the 3x3
}

TEST(Resnet, R17_shortcuts_of_resnet50) {
  const zoo::Model model = zoo::resnet50();
  const Formulas formulas(model.graph);
  for (std::size_t k = 0; k < kBlocks50.size(); ++k)
    EXPECT_EQ(formulas.block(k), bottleneck(kBlocks50[k], begins_smaller_maps(kBlocks50[k]) ? 2 : 1,
                                            kBlocks50[k].ends_with(".0.")));
  EXPECT_EQ(parameter_shape(model.graph, "layer1.0.downsample.0.weight"), "[256,64,1,1]");
}

TEST(Resnet, R18_counts_of_resnet50) {
  const Graph folded = zoo::resnet50().graph,
              full = zoo::resnet50(1, {.form = ResnetForm::batch_norm}).graph;
  EXPECT_EQ(folded.leaves(LeafKind::parameter).size(), 108u);
  EXPECT_EQ(elements_of(folded), 25'530'472);
  EXPECT_EQ(full.leaves(LeafKind::parameter).size(), 161u);
  EXPECT_EQ(elements_of(full), 25'557'032);
  EXPECT_EQ(running_statistics_of(full), 106);
}

TEST(Resnet, R19_training_graphs) {
  for (const zoo::Model& model : {zoo::resnet50_training(4), zoo::resnet18_training(4)}) {
    EXPECT_THAT(names_of(model.graph, LeafKind::input), ElementsAre("image", "labels"));
    EXPECT_EQ(model.labels.type().str(), "i64[4]");
    const auto outputs = model.graph.outputs();
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].second, model.loss);
    EXPECT_EQ(model.loss.type().str(), "f32[]");
    verify(model.graph);
  }
  EXPECT_THAT(message_of<TypeError>([] {
                zoo::resnet18_training(1,
                                       {.form = ResnetForm::batch_norm, .height = 32, .width = 9});
              }),
              HasSubstr("height or width must be at least 33, or the batch at least 2"));
}

}  // namespace
}  // namespace pantala::tests::resnet_test
