// ONNX in and out: a model is written as an ONNX file, read again as a graph that can be trained,
// trained a little further, and written once more. Any file that PyTorch exports goes the same way.
#include <fmt/core.h>
#include <pantala/onnx.h>
#include <pantala/pantala.h>

#include <cmath>
#include <filesystem>

namespace pn = pantala;

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";

  // Out: a network of the zoo with its first weights. Loss and labels are left out.
  const pn::zoo::Model made =
      pn::zoo::mlp({.batch = 32, .inputs = 8, .hidden = {16}, .classes = 3});
  const pn::Weights first = pn::build_inference_session(made.graph, {}, {.seed = 1}).weights();
  pn::onnx::export_model(made.graph, first, folder / "mlp.onnx");

  // In: inputs and outputs have the names of the file, its weights are parameters.
  pn::onnx::Model model = pn::onnx::import_model(folder / "mlp.onnx");
  pn::Tensor labels = model.graph.input("labels", {32}, pn::i64);
  pn::Tensor loss = pn::cross_entropy(model.graph.output("logits"), labels);
  pn::Session session = pn::build_session(model.graph, loss, {.optimizer = pn::optim::adam(0.01)});
  session.load_weights(model.weights);

  // The class says which of three waves an item is.
  std::vector<double> items;
  std::vector<std::int64_t> classes;
  for (int k = 0; k < 32; ++k) {
    for (int i = 0; i < 8; ++i) items.push_back(std::sin((k % 3 + 1) * i + 0.1 * k));
    classes.push_back(k % 3);
  }
  session.set_input("x", pn::Literal::floats({32, 8}, items));
  session.set_input("labels", pn::Literal::ints({32}, classes));
  session.step();
  const double before = session.loss();
  for (int k = 0; k < 100; ++k) session.step();
  fmt::print("loss {:.4f} -> {:.4f}\n", before, session.loss());

  // Out again: the file is read and run, and compared with the graph, before it gets its name.
  pn::onnx::export_model(model.graph, session.weights(), folder / "trained.onnx");
  for (const auto& output : pn::onnx::summarize(folder / "trained.onnx").outputs)
    fmt::print("trained.onnx: {} {}\n", output.name, output.str());
  return session.loss() < 0.5 * before ? 0 : 1;
}
