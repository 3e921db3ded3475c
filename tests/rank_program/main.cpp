// rank_program MODEL FOLDER [shard_optimizer] [stop=STEPS]
//
// Trains two epochs of a small model on random data, in eight shards, on the ranks of the MPI job
// that this process belongs to, or alone. It goes on from a checkpoint in the folder; rank 0 leaves
// `record.txt` there: the digests of weights and optimizer states, losses and evaluations, to the
// bit. With `stop` it saves and ends after so many updates.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/text.h"
#include "distributed/launcher.h"
#include "distributed/mpi.h"
#include "io/file.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/trainer.h"
#include "pantala/zoo/llama.h"
#include "support/training_data.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kShards = 8;

struct Workload {
  ModelFactory model;
  data::Dataset training, validation;
  std::int64_t batch_size = 16;
  CompileOptions compile = {.threads = 1};
  TrainConfig train = {.optimizer = optim::adam(0.01), .log_interval = 0};
};

// LeNet with a batch norm behind each convolution, and dropout before the last layer.
Graph lenet(std::int64_t batch, Phase phase) {
  const bool training = phase == Phase::training;
  Graph g;
  const Tensor x = g.input("x", {batch, 1, 28, 28}), labels = g.input("labels", {batch}, i64);
  const auto block = [&](const std::string& name, const Tensor& in, std::int64_t out) {
    const Tensor normed =
        nn::batch_norm(name + ".norm", nn::conv2d(name, in, out, {5, 5}), {.training = training});
    return max_pool2d(relu(normed), {2, 2});
  };
  const Tensor h = flatten(block("conv2", block("conv1", x, 6), 16), 1);
  const Tensor wide = relu(nn::linear("fc1", h, 120));
  const Tensor logits = nn::linear("fc2", nn::dropout(wide, 0.25, training), 10);
  g.output("logits", logits);
  g.output("loss", cross_entropy(logits, labels));
  return g;
}

data::Dataset images(std::int64_t items, std::uint64_t seed) {
  return data::make_dataset({{items, 1, 28, 28}, random_floats(items * 28 * 28, seed)},
                            {{items}, random_labels(items, 10, seed + 1)});
}

data::Dataset texts(std::int64_t items, std::uint64_t seed) {
  return data::make_dataset({{items, 8}, random_labels(items * 8, 256, seed)},
                            {{items, 8}, random_labels(items * 8, 256, seed + 1)});
}

Workload workload(const std::string& name) {
  if (name == "lenet")
    return {.model = lenet, .training = images(88, 1), .validation = images(40, 3)};
  Workload transformer{.training = texts(88, 5), .validation = texts(40, 7)};
  transformer.model = [](std::int64_t batch, Phase) {
    const zoo::LlamaSizes sizes{.width = 32, .layers = 2, .heads = 4, .kv_heads = 2};
    return zoo::llama(zoo::resized(zoo::llama_bytes(), sizes), {.batch = batch, .sequence = 8});
  };
  transformer.compile.accumulation_steps = 2;
  transformer.compile.training.clip.norm = 0.5;
  transformer.train.class_axis = -1;
  transformer.train.measured = metrics::Kind::bytes;
  return transformer;
}

struct Wishes {
  std::string model;
  fs::path folder;
  bool shard_optimizer = false;
  std::int64_t stop = 0;
};

Wishes read(const std::vector<std::string>& words) {
  Wishes wishes{.model = words.at(1), .folder = words.at(2)};
  for (std::size_t k = 3; k < words.size(); ++k) {
    if (words[k] == "shard_optimizer") wishes.shard_optimizer = true;
    if (words[k].starts_with("stop=")) wishes.stop = std::stoll(words[k].substr(5));
  }
  return wishes;
}

std::string record(const Trainer& trainer, const fs::path& last) {
  std::string text;
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    text += fmt::format("{} {}\n", name, hex(sha256(io::read_file(last / name))));
  const TrainHistory& history = trainer.state().history;
  for (const EpochStats& epoch : history.epochs)
    text += fmt::format("epoch {} {} {:a}\n", epoch.epoch, epoch.steps, epoch.avg_loss);
  for (const auto& evaluation : history.evaluations) {
    text += fmt::format("evaluation {} {:a}", evaluation->items, evaluation->loss);
    for (const auto& [name, value] : evaluation->values)
      text += fmt::format(" {} {:a}", name, value);
    text += '\n';
  }
  return text;
}

int train(const Wishes& wishes, const std::shared_ptr<distributed::Communicator>& ranks) {
  Workload work = workload(wishes.model);
  work.train.distributed = {.ranks = ranks,
                            .shards = kShards,
                            .shard_optimizer = wishes.shard_optimizer,
                            .check_every = 2};
  // Beside the folders of other runs: most of them train the same model.
  work.train.plan_cache = wishes.folder.parent_path() / "plans";
  Trainer trainer(work.model, work.batch_size, work.train, work.compile, {.seed = 3});
  trainer.resume(wishes.folder / "checkpoints");
  const auto training =
      data::make_loader(work.training, {.batch_size = work.batch_size, .seed = 1, .threads = 0});
  const auto validation = data::make_loader(
      work.validation, {.batch_size = work.batch_size, .shuffle = false, .threads = 0});
  const auto poll = [&] {
    const bool stops = wishes.stop > 0 && trainer.state().global_steps >= wishes.stop;
    return stops ? Request::save_and_stop : Request::none;
  };
  const FitResult result =
      trainer.fit(*training, {.epochs = 2,
                              .validation = validation.get(),
                              .checkpoints = {.folder = wishes.folder / "checkpoints"},
                              .poll = poll});
  if (ranks->rank() > 0) return 0;
  // In mid-epoch, or it would show less.
  if (wishes.stop > 0)
    return result.end == FitEnd::interrupted && trainer.state().batches > 0 ? 0 : 1;
  std::string newest;
  for (const auto& entry : fs::directory_iterator(wishes.folder / "checkpoints"))
    newest = std::max(newest, entry.path().string());
  io::write_file(wishes.folder / "record.txt", record(trainer, newest));
  return 0;
}

int run(const std::vector<std::string>& words) {
  const Wishes wishes = read(words);
  const auto launch = distributed::launch_of([](const char* name) { return std::getenv(name); });
  if (!launch) return train(wishes, distributed::single_rank());
  const auto ranks =
      distributed::open_mpi({.folders = {PANTALA_PLUGIN_FOLDER}, .plugins = launch->plugins});
  int code = 0;
  try {
    code = train(wishes, ranks);
  } catch (const std::exception& error) {
    if (ranks->fail(error.what(), 2))
      fmt::print(stderr, "rank {}: {}\n", ranks->rank(), error.what());
    code = 2;
  }
  ranks->close();
  return code;
}

}  // namespace
}  // namespace pantala::tests

int main(int argc, char** argv) {
  return pantala::tests::run(std::vector<std::string>(argv, argv + argc));
}
