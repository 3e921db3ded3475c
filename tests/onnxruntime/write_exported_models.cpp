// Exports models for check_with_onnxruntime.py: of the zoo, and recorded ones that were read from
// ONNX files, one of them after training. Beside each file lie its inputs and what Pantala computes
// from them.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "io/npy.h"
#include "pantala/onnx.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "recorded_models.h"
#include "tools/fixtures/fill.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;
using Inputs = std::map<std::string, Literal>;

void write_array(const fs::path& path, const Literal& value) {
  Weights one;
  one.set("value", value);
  io::write_npy(path, value.type(), one.bytes("value"));
}

void write(const fs::path& folder, const std::string& name, const Graph& graph,
           const Weights& weights, const Inputs& inputs, const std::string& output) {
  const fs::path file = folder / (name + ".onnx");
  onnx::export_model(graph, weights, file, {.outputs = {output}});
  fs::create_directories(folder / (name + ".inputs"));
  fs::create_directories(folder / (name + ".outputs"));
  Session session = build_inference_session(graph);
  session.load_weights(weights, {.strict = false});
  for (const auto& [input, value] : inputs) {
    write_array(folder / (name + ".inputs") / (input + ".npy"), value);
    session.set_input(input, value);
  }
  for (const Leaf& leaf : graph.leaves(LeafKind::input))  // labels, of the loss alone
    if (!inputs.contains(leaf.name)) session.set_input(leaf.name, Literal(leaf.value.type()));
  session.step();
  write_array(folder / (name + ".outputs") / (output + ".npy"), session.output(output));
}

void write_preset(const fs::path& folder, const std::string& name) {
  const zoo::Model model = zoo::preset(name).make({.batch = 2, .training = false});
  const Session session = build_inference_session(model.graph, {}, {.seed = 3});
  const std::string input = model.graph.leaves(LeafKind::input).at(0).name;
  const Literal x = tools::make({.name = name, .shape = model.input.shape()});
  write(folder, name, model.graph, session.weights(), {{input, x}}, "logits");
}

void write_recorded(const fs::path& folder, const std::string& name) {
  const RecordedModel recorded = recorded_model(name);
  const onnx::Model model = onnx::import_model(recorded.file, name);
  write(folder, name, model.graph, model.weights, recorded.inputs, model.graph.outputs()[0].first);
}

void write_trained(const fs::path& folder) {
  const RecordedModel recorded = recorded_model("resnet18");
  onnx::Model model = onnx::import_model(recorded.file, "resnet18", {.training = true});
  const Tensor labels = model.graph.input("labels", {2}, i64);
  const Tensor loss = cross_entropy(model.graph.output("logits"), labels);
  Session session = build_session(model.graph, loss, {.optimizer = optim::sgd(1e-3)});
  session.load_weights(model.weights);
  session.set_input("input", recorded.inputs.at("input"));
  session.set_input("labels", Literal::ints({2}, {7, 421}));
  for (int step = 0; step < 10; ++step) session.step();
  const onnx::Model evaluation = onnx::import_model(recorded.file, "resnet18");
  write(folder, "resnet18_trained", evaluation.graph, session.weights(), recorded.inputs, "logits");
}

}  // namespace
}  // namespace pantala::tests

int main(int argc, char** argv) {
  namespace t = pantala::tests;
  if (argc != 2) return std::fputs("usage: write_exported_models FOLDER\n", stderr), 2;
  try {
    for (const char* name : {"mlp", "lenet"}) t::write_preset(argv[1], name);
    for (const char* name : {"squeezenet1_1", "mobilenet_v2", "whisper_encoder", "bert", "llama"})
      t::write_recorded(argv[1], name);
    t::write_trained(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_exported_models: %s\n", error.what());
    return 1;
  }
}
