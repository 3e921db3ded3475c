// Trains a small convolutional network on Fashion-MNIST (60,000 images of clothing, 28 x 28, ten
// classes) and tests it on 10,000 others. Progress goes to stderr, the result to stdout. The same
// seed gives the same result on any number of threads.
#include <fmt/format.h>
#include <pantala/pantala.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "io/idx.h"

namespace pn = pantala;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kPixels = 28 * 28, kClasses = 10;

struct Options {
  fs::path folder = "/usr/share/datasets/fashion-mnist";
  int epochs = 3;
  std::int64_t batch = 100;
  double learning_rate = 2e-3;
  std::uint64_t seed = 1;
  int threads = 0;
};

// A mistake of the user, or a file that is not there: the message says what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The loss is no number any more.
struct Divergence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Dataset {
  std::vector<std::uint8_t> pixels, labels;
  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

std::vector<std::uint8_t> read_bytes(const fs::path& folder, const std::string& name,
                                     const std::function<bool(const pn::Shape&)>& fits) {
  for (const fs::path& path : {folder / (name + ".gz"), folder / name}) {
    if (!fs::exists(path)) continue;
    pn::io::HostArray array = pn::io::read_idx(path);
    auto* bytes = std::get_if<std::vector<std::uint8_t>>(&array.values);
    if (!bytes || !fits(array.shape))
      throw UsageError(fmt::format("{} holds {}, which is not Fashion-MNIST", path.string(),
                                   pn::Type{array.dtype(), array.shape}.str()));
    return std::move(*bytes);
  }
  throw UsageError(
      fmt::format("there is no {}.gz in {}\nFashion-MNIST is the Debian package "
                  "dataset-fashion-mnist (sudo apt install dataset-fashion-mnist),\n"
                  "or name a folder that holds its four files: train_fashion_mnist FOLDER",
                  name, folder.string()));
}

Dataset load(const fs::path& folder, const std::string& split) {
  Dataset data;
  data.pixels = read_bytes(folder, split + "-images-idx3-ubyte", [](const pn::Shape& s) {
    return s.rank() == 3 && s[1] == 28 && s[2] == 28;
  });
  data.labels = read_bytes(folder, split + "-labels-idx1-ubyte",
                           [](const pn::Shape& s) { return s.rank() == 1; });
  if (data.labels.empty() || data.pixels.size() != data.labels.size() * kPixels)
    throw UsageError(fmt::format("{} has {} {} images and {} labels", folder.string(),
                                 data.pixels.size() / kPixels, split, data.labels.size()));
  return data;
}

struct Batch {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
};

// The items order[first], order[first + 1], ..., with pixels scaled to mean 0 and deviation 1 over
// the training set.
Batch make_batch(const Dataset& data, const std::vector<std::int64_t>& order, std::int64_t first,
                 std::int64_t size) {
  constexpr float kMean = 0.2860F, kDeviation = 0.3530F;
  Batch batch;
  batch.images.reserve(static_cast<std::size_t>(size * kPixels));
  for (std::int64_t row = 0; row < size; ++row) {
    const std::int64_t item = order[static_cast<std::size_t>(first + row)];
    const std::uint8_t* pixels = data.pixels.data() + item * kPixels;
    for (std::int64_t k = 0; k < kPixels; ++k)
      batch.images.push_back((static_cast<float>(pixels[k]) / 255.0F - kMean) / kDeviation);
    batch.labels.push_back(data.labels[static_cast<std::size_t>(item)]);
  }
  return batch;
}

std::vector<std::int64_t> in_order(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) order[k] = k;
  return order;
}

// Fisher-Yates; written out because std::shuffle may differ between libraries.
void shuffle(std::vector<std::int64_t>& order, std::mt19937_64& random) {
  for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One live line on a terminal, a plain line now and then elsewhere.
class Progress {
 public:
  Progress(std::int64_t steps, std::int64_t batch) : steps_(steps), batch_(batch) {}
  void show(std::int64_t step, double loss) {
    // An average over about the last 50 steps, unbiased from the start.
    const double keep = std::min(0.98, static_cast<double>(step - 1) / static_cast<double>(step));
    loss_ = keep * loss_ + (1 - keep) * loss;
    const bool last = step == steps_;
    const double now = seconds_since(start_);
    if (!last && (terminal_ ? now - shown_ < 0.1 : step * 10 / steps_ == (step - 1) * 10 / steps_))
      return;
    shown_ = now;
    const double rate = static_cast<double>(step * batch_) / now;
    const std::string line =
        fmt::format("step {:>4}/{}  loss {:.4f}  {:.0f} images/s  {:.0f} s left", step, steps_,
                    loss_, rate, static_cast<double>((steps_ - step) * batch_) / rate);
    if (terminal_)
      fmt::print(stderr, "\r{}\033[K{}", line, last ? "\n" : "");
    else
      fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
  }
  double seconds() const { return seconds_since(start_); }

 private:
  std::int64_t steps_, batch_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double loss_ = 0, shown_ = -1;
};

// Trains for the given number of epochs, each in an order of its own, while the learning rate falls
// along a cosine; images that do not fill a batch are left out. Returns the images seen per second.
double train(pn::Session& session, const Dataset& data, const Options& options) {
  const std::int64_t batches = data.count() / options.batch, steps = options.epochs * batches;
  const pn::Schedule schedule(pn::CosineSchedule{.T_max = steps});
  Progress progress(steps, options.batch);
  std::mt19937_64 random(options.seed);
  std::vector<std::int64_t> order = in_order(data.count());
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step % batches == 0) shuffle(order, random);
    const Batch batch = make_batch(data, order, step % batches * options.batch, options.batch);
    session.set_input("x", batch.images);
    session.set_input("labels", batch.labels);
    session.set_learning_rate(schedule.lr(step, options.learning_rate));
    session.step();
    if (!session.last_step_finite())
      throw Divergence(
          fmt::format("the loss of step {} is {}: try a smaller --lr", step + 1, session.loss()));
    progress.show(step + 1, session.loss());
  }
  return static_cast<double>(steps * options.batch) / progress.seconds();
}

// A plan for another batch size that counts right answers, over the parameters of the session.
pn::SessionPlan attach_test(pn::Session& session, std::int64_t batch, int threads) {
  pn::zoo::Model model = pn::zoo::lenet({.batch = batch});
  const pn::Tensor right = pn::eq(pn::argmax(model.logits), model.labels);
  model.graph.output("right", pn::sum(pn::cast(right, pn::i64)));
  return session.attach(fmt::format("test{}", batch),
                        pn::compile(model.graph, {.threads = threads}).plan);
}

double accuracy(pn::Session& session, const Dataset& data, int threads) {
  const std::vector<std::int64_t> order = in_order(data.count());
  std::int64_t right = 0, first = 0;
  while (first < data.count()) {
    // A short last batch is a plan of its own.
    const std::int64_t size = std::min<std::int64_t>(1000, data.count() - first);
    const pn::SessionPlan test = attach_test(session, size, threads);
    for (; first + size <= data.count(); first += size) {
      const Batch batch = make_batch(data, order, first, size);
      test.set_input("x", batch.images);
      test.set_input("labels", batch.labels);
      test.run();
      right += static_cast<std::int64_t>(test.output_scalar("right"));
    }
  }
  return static_cast<double>(right) / static_cast<double>(data.count());
}

void run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const Dataset training = load(options.folder, "train"), testing = load(options.folder, "t10k");
  if (options.batch > training.count())
    throw UsageError(fmt::format("--batch {} is more than the {} training images", options.batch,
                                 training.count()));
  const pn::zoo::Model model = pn::zoo::lenet({.batch = options.batch});
  pn::Session session = pn::build_session(
      model.graph, model.loss,
      {.threads = options.threads, .optimizer = pn::optim::adam(options.learning_rate)},
      {.seed = options.seed});
  fmt::print(
      stderr,
      "two convolutions and two linear layers, {} x {} images in batches of {}, Adam from {}\n",
      options.epochs, training.count(), options.batch, options.learning_rate);
  const double rate = train(session, training, options);
  const double share = accuracy(session, testing, options.threads);
  fmt::print("test accuracy {:.2f} % on {} images, {:.0f} images/s in training, {:.0f} s in all\n",
             100 * share, testing.count(), rate, seconds_since(start));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small convolutional network on Fashion-MNIST.");
  app.add_option("folder", options.folder, "Folder with the four IDX files")->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the training images")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Images per step")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "Learning rate of Adam")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first weights and of the order of the images")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that compute; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  try {
    run(options);
    return 0;
  } catch (const Divergence& error) {
    fmt::print(stderr, "\ntrain_fashion_mnist: {}\n", error.what());
    return 3;
  } catch (const pn::InternalError& error) {
    fmt::print(stderr, "train_fashion_mnist: this is a bug: {}\n", error.what());
    return 70;
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_fashion_mnist: {}\n", error.what());
    return 2;
  }
}
