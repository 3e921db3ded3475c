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
    std::pair<std::vector<double>, std::vector<double>> scale;
    Given(values, "mlp")
        .take("batch", config.batch)
        .take("inputs", config.inputs)
        .take("hidden", config.hidden)
        .take("classes", config.classes)
        .take("activation", activation)
        .choose("task", config.task, {"classification", "regression"})
        .take("targets", config.targets)
        .take("target_scale", scale)
        .finish();
    config.activation = nn::activation_of(activation);
    config.target_scale = {scale.first, scale.second};
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
  m.def("resnet_weight_names", [](int layers, bool folded) {
    const auto form = folded ? zoo::ResnetForm::folded : zoo::ResnetForm::batch_norm;
    return layers == 18 ? zoo::resnet18_weight_names(form) : zoo::resnet50_weight_names(form);
  });
  m.def("fold_batch_norm", [](const Literal& weight, const Literal& gamma, const Literal& beta,
                              const Literal& mean, const Literal& var, double eps) {
    const zoo::FoldedBatchNorm made = zoo::fold_batch_norm(weight, gamma, beta, mean, var, eps);
    return nb::make_tuple(to_numpy(made.weight), to_numpy(made.bias));
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
  m.def("parse_llama_config", [](std::string_view json, std::string_view file) {
    return zoo::parse_llama_config(json, file);
  });
  m.def("resized_llama", [](const Config& config, const Sizes& s) {
    return zoo::resized(config, {s.at(0), s.at(1), s.at(2), s.at(3), s.at(4)});
  });
  m.def("zoo_llama", [](const Config& config, std::int64_t batch, std::int64_t sequence) {
    return zoo::llama(config, {batch, sequence}, python_place());
  });
  m.def("llama_cached",
        [](const Config& config, std::int64_t batch, std::int64_t tokens, std::int64_t cache) {
          return zoo::llama_cached(config, {batch, tokens, cache}, python_place());
        });
}

void bind_whisper(nb::module_& m) {
  using Config = zoo::WhisperConfig;
  nb::class_<Config>(m, "WhisperConfig")
      .def(nb::init<>())
      .def_rw("d_model", &Config::d_model)
      .def_rw("n_heads", &Config::n_heads)
      .def_rw("n_layers", &Config::n_layers)
      .def_rw("ffn_dim", &Config::ffn_dim)
      .def_rw("n_mels", &Config::n_mels)
      .def_rw("max_source_positions", &Config::max_source_positions)
      .def_rw("layer_norm_eps", &Config::layer_norm_eps)
      .def_static("tiny", &Config::tiny)
      .def_static("base", &Config::base)
      .def_static("small", &Config::small);
  m.def("whisper_layers", [](const Tensor& mel, const Config& config) {
    return zoo::whisper_layers(Operand(mel, python_place()), config);
  });
  m.def("whisper_encoder", [](const Config& config, std::int64_t batch, std::int64_t frames) {
    return zoo::whisper_encoder(config, {batch, frames}, python_place());
  });
  m.def("whisper_weight_names",
        [](const Config& config) { return zoo::whisper_weight_names(config, python_place()); });
  m.def("whisper_training",
        [](const Config& config, std::int64_t batch, std::int64_t frames, const nb::dict& values) {
          zoo::WhisperTraining training;
          Given(values, "whisper_training")
              .take("classes", training.classes)
              .choose("labels", training.labels, {"classes", "probabilities"})
              .finish();
          return zoo::whisper_training(config, {batch, frames}, training, python_place());
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
