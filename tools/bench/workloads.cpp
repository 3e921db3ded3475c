#include "tools/bench/workloads.h"

#include <fmt/format.h>

#include <functional>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/zoo.h"
#include "tools/fixtures/fill.h"

namespace pantala::tools {

namespace {

Literal images(const Shape& shape) {
  Fill fill;
  fill.name = "bench.images";
  fill.shape = shape;
  return make(fill);
}

Literal labels(std::int64_t batch, std::int64_t classes) {
  Fill fill;
  fill.name = "bench.labels";
  fill.shape = {batch};
  fill.integer = true;
  fill.high = classes;
  return make(fill);
}

// Labels as probabilities: 1 for the class, 0 for the others.
Literal one_hot_labels(std::int64_t batch, std::int64_t classes) {
  const Literal chosen = labels(batch, classes);
  std::vector<double> values(static_cast<std::size_t>(batch * classes));
  for (std::int64_t k = 0; k < batch; ++k)
    values[static_cast<std::size_t>(k * classes + chosen.i()[static_cast<std::size_t>(k)])] = 1;
  return Literal::floats({batch, classes}, std::move(values));
}

Workload small_mlp(std::int64_t batch) {
  Workload w{"", {}, {}, optim::sgd(0.01), {}};
  const Tensor x = w.graph.input("x", {batch, 784}), y = w.graph.input("labels", {batch, 10});
  const Tensor logits = nn::linear("fc2", relu(nn::linear("fc1", x, 128)), 10);
  w.loss = cross_entropy(logits, y);
  w.graph.output("loss", w.loss);
  w.inputs = {{"x", images({batch, 784})}, {"labels", one_hot_labels(batch, 10)}};
  return w;
}

Workload of_model(const zoo::Model& model, const Shape& input, std::int64_t batch) {
  Workload w{"", model.graph, {}, optim::adam(1e-3), {}};
  w.loss = w.graph.value(model.loss.id());
  w.inputs = {{"x", images(input)}, {"labels", labels(batch, 10)}};
  return w;
}

Workload wide_mlp(std::int64_t batch) {
  return of_model(
      zoo::mlp({.batch = batch, .hidden = {1024, 1024}, .activation = nn::Activation::gelu}),
      {batch, 784}, batch);
}

Workload lenet(std::int64_t batch) {
  return of_model(zoo::lenet({.batch = batch}), {batch, 1, 28, 28}, batch);
}

using Maker = std::function<Workload()>;
const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> all{
      {"mlp32", [] { return small_mlp(32); }},
      {"mlp128", [] { return small_mlp(128); }},
      {"mlp_wide128", [] { return wide_mlp(128); }},
      {"lenet64", [] { return lenet(64); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

Workload make_workload(std::string_view name) {
  for (const auto& [known, maker] : makers())
    if (known == name) {
      Workload w = maker();
      w.name = known;
      return w;
    }
  throw TypeError(
      fmt::format("there is no workload '{}'{}", name, did_you_mean(name, workload_names())));
}

}  // namespace pantala::tools
