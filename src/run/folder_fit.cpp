// A trainer of one's own in a run folder.
#include <fmt/format.h>

#include "device/device.h"
#include "pantala/error.h"
#include "pantala/run.h"
#include "run/recording.h"

namespace pantala::run {

namespace {

// Nothing but what such a run leaves may be in the folder: the rest is somebody else's.
void check_folder(const RunFolder& folder) {
  const RunFolder::Content content = folder.content();
  if (content == RunFolder::Content::run)
    throw TypeError(
        fmt::format("{} holds a run of a config; choose another folder", folder.root().string()));
  if (content == RunFolder::Content::foreign && !folder.has_run_files_alone())
    throw TypeError(
        fmt::format("{} is there already and is not the folder of a run; choose another",
                    folder.root().string()));
}

RecordingOptions recording_options(const FitOptions& fit, const FolderOptions& options) {
  return {.progress = options.progress,
          .log = options.log,
          .max_steps = fit.max_steps,
          .environment = {
              .command = options.command,
              .device = options.device,
              .threads = options.threads > 0 ? options.threads : device::default_workers()}};
}

}  // namespace

FitResult fit_in_folder(Trainer& trainer, data::Loader& loader, FitOptions fit,
                        const FolderOptions& options) {
  const RunFolder folder(options.folder);
  check_folder(folder);
  const FolderLock lock(folder);
  folder.remove_leftovers();
  Recording recording(folder, recording_options(fit, options));
  const bool continues = !options.restart && folder.has_checkpoint() && recording.resume(trainer);
  if (!continues) folder.clear();
  recording.start(trainer, "");
  FitResult result;
  try {
    result = trainer.fit(
        loader, recording.fit_options(std::move(fit), trainer, [&] { lock.check_folder(); }));
  } catch (...) {
    recording.finish();
    throw;
  }
  recording.finish();
  if (result.end == FitEnd::interrupted) return result;
  lock.check_folder();
  trainer.save_model(folder.model_file());
  if (options.plots) recording.draw_plots();
  return result;
}

}  // namespace pantala::run
