// Fine-tunes a ResNet-18 that was trained on other images:
//
//   finetune_resnet18 WEIGHTS.safetensors [STEPS] [BATCH SIZE]
//
// WEIGHTS are torchvision's (resnet18, under its names). Its 1000 classes become the ten of
// Fashion-MNIST: the head is new, and so is the first convolution, for these images are grey.
// What was learnt before moves slowly, what is new ten times as fast.
#include <fmt/format.h>
#include <pantala/pantala.h>
#include <pantala/zoo/presets.h>

#include <cstdlib>

namespace pn = pantala;

namespace {

pn::Graph model(std::int64_t batch, pn::Phase phase) {
  return pn::zoo::preset("resnet18")
      .make({.batch = batch,
             .item = {1, 28, 28},
             .classes = 10,
             .training = phase == pn::Phase::training})
      .graph;
}

void finetune(const std::string& file, std::int64_t steps, std::int64_t batch) {
  const pn::Weights weights = pn::Weights::open(file);
  const pn::data::TrainTest data = pn::data::fashion_mnist();
  pn::data::LoaderOptions options{.batch_size = batch, .drop_last = true, .seed = 1};
  options.transforms = {pn::data::Reshape{{1, 28, 28}}, pn::data::Scale{},
                        pn::data::Normalize{{0.2860}, {0.3530}}};
  const auto training = pn::data::make_loader(data.train, options);
  options.shuffle = options.drop_last = false;
  const auto testing = pn::data::make_loader(data.test, options);

  pn::TrainConfig config{.optimizer = pn::optim::sgd(0.005, {.momentum = 0.9})};
  config.data_input = "image";
  config.rate_schedule = pn::CosineRate{.T_max = steps};
  pn::CompileOptions compile;
  compile.training.groups = {{.pattern = "fc.*", .lr_factor = 10},
                             {.pattern = "conv1.weight", .lr_factor = 10}};
  pn::Trainer trainer(model, batch, config, compile);
  const pn::LoadWeightsReport loaded =
      trainer.session().load_weights(weights, {.skip = {"fc.*", "conv1.weight"}});
  fmt::print("{}\n", loaded.text());
  trainer.fit(*training, {.epochs = 100, .max_steps = steps, .validation = testing.get()});
  fmt::print("test accuracy {:.2f} %\n", 100 * trainer.last_evaluation()->value("accuracy"));
  trainer.save_model("finetuned.safetensors");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: finetune_resnet18 WEIGHTS.safetensors [STEPS] [BATCH SIZE]\n");
    return 2;
  }
  try {
    finetune(argv[1], argc > 2 ? std::atoll(argv[2]) : 400, argc > 3 ? std::atoll(argv[3]) : 64);
    return 0;
  } catch (const pn::Error& error) {
    fmt::print(stderr, "finetune_resnet18: {}\n", error.what());
    return 1;
  }
}
