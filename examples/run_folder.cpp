// Trains a model of one's own in a run folder, with what `pantala train` has: a progress line,
// metrics.jsonl, TensorBoard events, checkpoints, plots.
//   run_folder [FOLDER] [EPOCHS]
// Interrupted (Ctrl-C) and started again, it goes on where it was, and ends with the same numbers.
#include <fmt/format.h>
#include <pantala/pantala.h>

#include <cmath>
#include <csignal>
#include <cstdlib>

namespace pn = pantala;

namespace {

volatile std::sig_atomic_t stop = 0;
extern "C" void on_interrupt(int) { stop = 1; }

// Points of a plane; which class one is of depends on its distance from the middle.
pn::data::Dataset rings(std::int64_t first, std::int64_t items) {
  std::vector<float> points;
  std::vector<std::int64_t> classes;
  for (std::int64_t k = first; k < first + items; ++k) {
    const double radius = std::fmod(0.618 * static_cast<double>(k), 3.0);
    const double angle = 1.7 * static_cast<double>(k);
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    classes.push_back(static_cast<std::int64_t>(radius));
  }
  return pn::data::make_dataset({{items, 2}, std::move(points)}, {{items}, std::move(classes)});
}

// The model for any batch size, with the tensors that the trainer needs.
pn::TrainableGraph model(std::int64_t batch, pn::Phase) {
  pn::Graph graph;
  const pn::Tensor x = graph.input("x", {batch, 2});
  const pn::Tensor labels = graph.input("labels", {batch}, pn::i64);
  const pn::Tensor h = pn::tanh(pn::nn::linear("hidden", x, 32));
  const pn::Tensor logits = pn::nn::linear("out", h, 3);
  const pn::Tensor loss = pn::cross_entropy(logits, labels);
  graph.output("logits", logits);
  graph.output("loss", loss);
  return {std::move(graph), x, labels, loss, logits};
}

void train(const std::string& folder, std::int64_t epochs) {
  const auto training = pn::data::make_loader(rings(0, 1500), {.batch_size = 50, .seed = 1});
  const auto testing =
      pn::data::make_loader(rings(1500, 300), {.batch_size = 100, .shuffle = false});
  pn::Trainer trainer(model, 50, {.optimizer = pn::optim::adam(0.01)});

  pn::FitOptions fit{.epochs = epochs, .validation = testing.get()};
  fit.poll = [] { return stop ? pn::Request::save_and_stop : pn::Request::none; };
  const char* const term = std::getenv("TERM");
  const pn::FitResult result = pn::run::fit_in_folder(
      trainer, *training, fit,
      {.folder = folder,
       .progress = pn::monitor::progress_on_stderr(pn::monitor::ProgressMode::automatic, term)});

  if (result.end == pn::FitEnd::interrupted)
    fmt::print("saved; the same command goes on from there\n");
  else
    fmt::print("test accuracy {:.1f} %; metrics, model and plots are in {}\n",
               100 * trainer.evaluate(*testing).value("accuracy"), folder);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, on_interrupt);
  try {
    train(argc > 1 ? argv[1] : "runs/rings", argc > 2 ? std::atoll(argv[2]) : 20);
    return 0;
  } catch (const pn::Error& error) {
    fmt::print(stderr, "run_folder: {}\n", error.what());
    return 1;
  }
}
