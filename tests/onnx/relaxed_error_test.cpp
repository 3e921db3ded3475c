// What `relaxed` makes of models that PyTorch exported changes roundings, not how large they are:
// per tensor the L2 error of the gradients, against the interpreter in double, is at most twice
// that of the graph as it stands in the file. Winograd's convolutions are off: they have a budget.
#include <gtest/gtest.h>

#include <cmath>

#include "counterparts.h"
#include "pantala/autodiff.h"
#include "pantala/interpreter.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "recorded_models.h"
#include "support/compiled.h"

namespace pantala::tests::onnx_relaxed_error_test {
namespace {

struct Trained {
  onnx::Model model;
  std::map<std::string, Literal> inputs;
  Tensor loss;

  Trained(const std::string& name, const std::string& output) {
    const RecordedModel recorded = recorded_model(name);
    model = onnx::import_model(recorded.file, recorded.name, {.training = true});
    inputs = recorded.inputs;
    loss = mean(square(model.graph.output(output)));
  }

  Session session(Rewrite rewrite) const {
    Session session = build_session(
        model.graph, loss, {.threads = 2, .rewrite = rewrite, .rules_off = winograd_rules()});
    session.load_weights(model.weights);
    for (const auto& [name, value] : inputs) session.set_input(name, value);
    return session;
  }
};

std::vector<std::string> trained_parameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) names.push_back(leaf.name);
  return names;
}

// In double, of the graph as it stands in the file.
std::vector<Literal> exact_gradients(const Trained& trained, const Session& session) {
  const Graph& graph = trained.model.graph;
  std::vector<Tensor> parameters;
  for (const std::string& name : trained_parameters(graph)) parameters.push_back(graph.leaf(name));
  ref::Bindings bindings(trained.inputs.begin(), trained.inputs.end());
  for (const std::string& name : session.parameters())
    bindings.insert_or_assign(name, session.parameter(name));
  for (const std::string& name : session.states())
    bindings.insert_or_assign(name, session.state(name));
  const Gradients joint = differentiate(graph, trained.loss, parameters);
  return ref::evaluate(joint.graph, joint.gradients, bindings);
}

double norm(const Literal& value) {
  double sum = 0;
  for (std::int64_t i = 0; i < value.numel(); ++i) sum += value.at(i) * value.at(i);
  return std::sqrt(sum);
}

double error(const Literal& exact, const Literal& got) {
  double sum = 0;
  for (std::int64_t i = 0; i < exact.numel(); ++i)
    sum += (exact.at(i) - got.at(i)) * (exact.at(i) - got.at(i));
  return std::sqrt(sum);
}

class RelaxedErrorOfFiles : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(RelaxedErrorOfFiles, is_at_most_twice_that_of_the_graph_as_it_is) {
  const Trained trained(GetParam().first, GetParam().second);
  Session plain = trained.session(Rewrite::none), chosen = trained.session(Rewrite::egraph);
  const std::vector<Literal> exact = exact_gradients(trained, plain);
  plain.step();
  chosen.step();
  const std::vector<std::string> names = trained_parameters(trained.model.graph);
  ASSERT_FALSE(names.empty());
  double largest = 0;
  for (const Literal& one : exact) largest = std::max(largest, norm(one));
  bool differs = false;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Literal got = chosen.gradient(names[k]), given = plain.gradient(names[k]);
    differs |= differing_bits({got}, {given}) != "";
    // What is nothing but rounding, as the gradient of a bias of keys, must stay so.
    if (norm(exact[k]) < 1e-12 * largest) {
      EXPECT_LE(error(exact[k], got), 0x1p-24 * largest) << names[k];
      continue;
    }
    // What is exact by luck may become the rounding of one operation.
    const double least = norm(exact[k]) * 0x1p-24;
    EXPECT_LE(error(exact[k], got), 2 * std::max(error(exact[k], given), least)) << names[k];
  }
  EXPECT_TRUE(differs) << "nothing was rewritten";
}

std::vector<std::pair<std::string, std::string>> files() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Counterpart& one : counterparts())
    for (const char* exporter : {"", "_dynamo"}) all.emplace_back(one.name + exporter, one.output);
  return all;
}

INSTANTIATE_TEST_SUITE_P(onnx, RelaxedErrorOfFiles, ::testing::ValuesIn(files()),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace pantala::tests::onnx_relaxed_error_test
