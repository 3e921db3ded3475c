// Every op of the table, over all its samples: exported, read again, and compared with the
// interpreter. Ops that ONNX cannot say are listed here, and no others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"
#include "support/compiled.h"
#include "support/gradcheck.h"
#include "support/temporary.h"

namespace pantala::tests::export_ops_test {
namespace {

// The first operator set that has what they need.
constexpr std::int64_t kNever = 1000;
const std::map<std::string, std::int64_t> kLate{{"scatter_add_elements", 16},
                                                {"max_pool2d_grad", 16},
                                                {"scatter_add", kNever},
                                                {"avg_pool2d_grad", kNever},
                                                {"convolution_weight_grad", kNever},
                                                {"bits_to_unit", kNever},
                                                {"random_bits", kNever},
                                                {"random_uniform", kNever},
                                                {"random_normal", kNever},
                                                {"dropout", kNever}};

struct Case {
  Graph graph;
  ref::Bindings inputs;
};

// A name that an ONNX file may use for something else.
Case case_of(const ir::OpDef& op, const ir::Sample& sample, std::size_t results) {
  Case c;
  std::vector<Operand> operands;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const std::string name = fmt::format("Add_{}", k);
    const Literal value = draw(sample.inputs[k], name);
    operands.emplace_back(c.graph.input(name, value.shape(), value.dtype()));
    c.inputs[name] = value;
  }
  std::vector<Tensor> made;
  if (operands.empty())
    made = c.graph.data()->append(op, {}, sample.attrs, {});
  else
    made = ops::apply(op, operands, sample.attrs);
  for (std::size_t k = 0; k < std::min(results, made.size()); ++k)
    c.graph.output(fmt::format("y{}", k), made[k]);
  return c;
}

std::vector<Literal> outputs_of(const Graph& graph, ref::Bindings inputs) {
  std::vector<Tensor> values;
  for (const auto& [name, value] : graph.outputs()) values.push_back(value);
  std::erase_if(inputs, [&](const auto& entry) { return !graph.find(entry.first); });
  return ref::evaluate(graph, values, inputs);
}

class ExportOp : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportOp, is_read_again_as_what_it_was) {
  const ir::OpDef& op = ops::table().get(GetParam());
  const tests::TemporaryFolder folder(tests::Place::memory);
  const std::string file = folder.file("op.onnx");
  for (const std::int64_t opset : {14, 17, 21})
    for (const ir::Sample& sample : op.samples()) {
      const auto check = [&](std::size_t results) {
        const Case c = case_of(op, sample, results);
        onnx::export_model(c.graph, Weights(), file, {.opset = opset, .verify = false});
        const onnx::Model model = onnx::import_model(file);
        EXPECT_EQ(differing(outputs_of(c.graph, c.inputs), outputs_of(model.graph, c.inputs), 2e-6),
                  "")
            << op.name << ", operators of version " << opset;
      };
      if (const auto late = kLate.find(op.name); late != kLate.end() && opset < late->second) {
        EXPECT_THROW(check(1), UnsupportedError) << op.name;
        continue;
      }
      check(1);
      if (op.name != "max_pool2d") check(8);
    }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const ir::OpDef* op : ops::table().all())
    if (op->samples != nullptr && op->family != "leaf") all.push_back(op->name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(ops, ExportOp, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pantala::tests::export_ops_test
