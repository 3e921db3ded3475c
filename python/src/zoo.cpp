// The models of the zoo, by name and with all their options.
#include "pantala/zoo.h"

#include "arrays.h"
#include "bind.h"
#include "options.h"
#include "pantala/zoo/presets.h"
#include "place.h"

namespace pantala::python {

namespace {

using Sizes = std::vector<std::int64_t>;

void bind_model(nb::module_& m) {
  nb::class_<zoo::Model>(m, "Model")
      .def_prop_ro("graph", [](zoo::Model& model) { return Graph(model.graph.data()); })
      .def_ro("input", &zoo::Model::input)
      .def_ro("labels", &zoo::Model::labels)
      .def_ro("loss", &zoo::Model::loss)
      .def_ro("logits", &zoo::Model::logits)
      .def_ro("prediction", &zoo::Model::prediction);
  m.def("is_valid", [](const Tensor& tensor) { return tensor.valid(); });
}

void bind_presets(nb::module_& m) {
  m.def("zoo_presets", [] {
    nb::list list;
    for (const zoo::Preset& preset : zoo::presets())
      list.append(nb::make_tuple(preset.name, preset.about, dtype_name(preset.item.dtype),
                                 to_tuple(preset.item.shape), preset.classes));
    return list;
  });
  m.def("zoo_model", [](const std::string& name, std::int64_t batch, const Sizes& item,
                        std::int64_t classes, bool training) {
    return zoo::preset(name).make(
        {.batch = batch, .item = Shape(item), .classes = classes, .training = training});
  });
}

zoo::ResnetOptions resnet_options(const nb::dict& values) {
  zoo::ResnetOptions options;
  Given(values, "resnet")
      .choose("form", options.form, {"folded", "batch_norm"})
      .take("channels", options.channels)
      .take("height", options.height)
      .take("width", options.width)
      .take("classes", options.classes)
      .choose("labels", options.labels, {"classes", "probabilities"})
      .finish();
  return options;
}

void bind_images(nb::module_& m) {
  m.def("zoo_mlp", [](const nb::dict& values) {
    zoo::MlpConfig config;
    std::string activation = "relu";
    Given(values, "mlp")
        .take("batch", config.batch)
        .take("inputs", config.inputs)
        .take("hidden", config.hidden)
        .take("classes", config.classes)
        .take("activation", activation)
        .choose("task", config.task, {"classification", "regression"})
        .take("targets", config.targets)
        .finish();
    config.activation = nn::activation_of(activation);
    return zoo::mlp(config, python_place());
  });
  m.def("zoo_lenet",
        [](std::int64_t batch, std::int64_t channels, std::int64_t size, std::int64_t classes) {
          return zoo::lenet({batch, channels, size, classes}, python_place());
        });
  m.def("zoo_resnet", [](int layers, bool training, std::int64_t batch, const nb::dict& values) {
    const auto make = layers == 18 ? training ? zoo::resnet18_training : zoo::resnet18
                      : training   ? zoo::resnet50_training
                                   : zoo::resnet50;
    return make(batch, resnet_options(values), python_place());
  });
  m.def("fold_resnet",
        [](const Weights& weights, double eps) { return zoo::fold_resnet(weights, eps); });
}

void bind_llama(nb::module_& m) {
  using Config = zoo::LlamaConfig;
  nb::class_<Config>(m, "LlamaConfig")
      .def(nb::init<>())
      .def_rw("vocabulary", &Config::vocabulary)
      .def_rw("hidden", &Config::hidden)
      .def_rw("intermediate", &Config::intermediate)
      .def_rw("layers", &Config::layers)
      .def_rw("heads", &Config::heads)
      .def_rw("kv_heads", &Config::kv_heads)
      .def_rw("head_size", &Config::head_size)
      .def_rw("max_positions", &Config::max_positions)
      .def_rw("rope_theta", &Config::rope_theta)
      .def_rw("rms_eps", &Config::rms_eps)
      .def_rw("tied_embeddings", &Config::tied_embeddings)
      .def_rw("init_deviation", &Config::init_deviation);
  m.def("llama_preset", zoo::llama_config);
  m.def("read_llama_config", [](const std::string& path) { return zoo::read_llama_config(path); });
  m.def("zoo_llama", [](const Config& config, std::int64_t batch, std::int64_t sequence) {
    return zoo::llama(config, {batch, sequence}, python_place());
  });
}

void bind_whisper(nb::module_& m) {
  m.def("zoo_whisper_training", [](const std::string& size, std::int64_t batch, std::int64_t frames,
                                   std::int64_t classes) {
    const zoo::WhisperConfig config = size == "base"    ? zoo::WhisperConfig::base()
                                      : size == "small" ? zoo::WhisperConfig::small()
                                                        : zoo::WhisperConfig::tiny();
    return zoo::whisper_training(config, {batch, frames}, {.classes = classes}, python_place());
  });
}

}  // namespace

void bind_zoo(nb::module_& m) {
  bind_model(m);
  bind_presets(m);
  bind_images(m);
  bind_llama(m);
  bind_whisper(m);
}

}  // namespace pantala::python
