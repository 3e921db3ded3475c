// Trains a small convolutional network on Fashion-MNIST (60,000 images of clothing, 28 x 28, ten
// classes) and tests it on 10,000 others:
//
//   train_fashion_mnist [EPOCHS] [BATCH SIZE] [FOLDER]
//
// The same numbers come out on any number of threads. `pantala train` does all this, and more, from
// the command line.
#include <fmt/format.h>
#include <pantala/pantala.h>

#include <cstdlib>

namespace pn = pantala;

namespace {

// Tells how an epoch went.
class EpochLine : public pn::MetricCallback {
 public:
  void on_start(pn::Trainer& trainer) override { trainer_ = &trainer; }
  bool looks_at(std::int64_t) override { return false; }
  void on_epoch(const pn::EpochStats& stats) override {
    fmt::print(stderr, "epoch {}: loss {:.4f}, test accuracy {:.2f} %\n", stats.epoch + 1,
               stats.avg_loss, 100 * trainer_->last_evaluation()->value("accuracy"));
  }

 private:
  pn::Trainer* trainer_ = nullptr;
};

void train(std::int64_t epochs, std::int64_t batch, const std::string& folder) {
  const pn::data::TrainTest data =
      folder.empty() ? pn::data::fashion_mnist() : pn::data::read_idx_folder(folder);
  pn::data::LoaderOptions options{.batch_size = batch, .seed = 1};
  options.transforms = {pn::data::Reshape{{1, 28, 28}}, pn::data::Scale{},
                        pn::data::Normalize{{0.2860}, {0.3530}}};
  const auto training = pn::data::make_loader(data.train, options);
  options.shuffle = false;
  const auto testing = pn::data::make_loader(data.test, options);

  pn::TrainConfig config;
  config.optimizer = pn::optim::adam(1.5e-3);
  config.rate_schedule = pn::CosineRate{.T_max = epochs * *training->batches()};
  pn::Trainer trainer(
      [](std::int64_t size, pn::Phase) { return pn::zoo::lenet({.batch = size}).graph; }, batch,
      config);
  trainer.add_callback(std::make_shared<EpochLine>());
  trainer.fit(*training, {.epochs = epochs, .validation = testing.get()});

  const pn::Evaluation& test = trainer.last_evaluation().value();
  fmt::print("test accuracy {:.2f} %\n{}", 100 * test.value("accuracy"),
             test.confusion->text(data.test.classes));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? std::atoll(argv[1]) : 5, argc > 2 ? std::atoll(argv[2]) : 64,
          argc > 3 ? argv[3] : "");
    return 0;
  } catch (const pn::Error& error) {
    fmt::print(stderr, "train_fashion_mnist: {}\n", error.what());
    return 1;
  }
}
