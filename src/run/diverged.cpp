#include "run/diverged.h"

#include <fmt/format.h>

#include <functional>
#include <initializer_list>

#include "base/log.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "run/setup.h"
#include "train/diagnose.h"

namespace pantala::run {

namespace {

std::string diagnosis_text(const RunConfig& config, const ModelShape& shape, const Trainer& trainer,
                           const data::Batch& batch) {
  try {
    const TrainableGraph model = model_factory(config, shape)(batch.items(), Phase::training);
    CompileOptions options = compile_options(config);
    options.optimizer = trainer.config().optimizer;
    return train::diagnose(
               model.graph, model.loss, options, trainer.session(), batch,
               {.data = trainer.config().data_input, .labels = trainer.config().label_input})
        .text();
  } catch (const Error& error) {  // the batch and the state are worth more than their explanation
    return fmt::format("the step could not be replayed: {}\n", error.what());
  }
}

// Saves with the functions in turn; what cannot be saved is no reason to say less about the rest.
std::string failures_of(std::initializer_list<std::function<void()>> saves) {
  std::string text;
  for (const std::function<void()>& save : saves) {
    try {
      save();
    } catch (const Error& error) { text += fmt::format("not saved: {}\n", error.what()); }
  }
  return text;
}

}  // namespace

std::string save_divergence(const RunFolder& folder, const RunConfig& config,
                            const ModelShape& shape, const Trainer& trainer,
                            const std::string& message) {
  io::remove_tree(folder.diverged());
  io::make_folders(folder.diverged());
  std::string text = message + "\n";
  const data::Batch* batch = trainer.failed_batch();
  if (batch) text += diagnosis_text(config, shape, trainer, *batch);
  if (!text.ends_with('\n')) text += '\n';
  const auto save_batch = [&] {
    if (!batch) return;
    data::write_npy(folder.diverged() / "batch-data.npy", batch->data);
    data::write_npy(folder.diverged() / "batch-labels.npy", batch->labels);
    for (const data::NamedArray& other : batch->more)
      data::write_npy(folder.diverged() / ("batch-" + other.name + ".npy"), other.array);
  };
  const std::string failures =
      failures_of({[&] { trainer.save_checkpoint(folder.diverged() / "state"); }, save_batch,
                   [&] { io::write_file(folder.diverged() / "diagnosis.txt", text); }});
  return text + (failures.empty()
                     ? "batch, state and this text are in " + folder.diverged().string()
                     : failures.substr(0, failures.size() - 1));
}

}  // namespace pantala::run
