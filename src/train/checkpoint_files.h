// The files of checkpoints, whatever they hold. A checkpoint is a folder NAME; it is written as
// `.tmp-NAME` beside it and renamed, and one that it replaces is called `.old-NAME` for the moment
// between. Whatever a crash leaves behind is put right by the next one that writes in the folder of
// the run; a reader changes nothing, since a run may be writing at the same time.
//
// state.json begins with the SHA-256 of all that follows: {"checksum": "...", <rest>}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "io/json.h"

namespace pantala::train {

inline constexpr const char *kModelFile = "model.safetensors",
                            *kOptimizerFile = "optimizer.safetensors",
                            *kBestFile = "best.safetensors", *kStateFile = "state.json";

// IoError naming both numbers if there is less space than needed.
void check_space(const std::filesystem::path& folder, std::uint64_t needed,
                 std::uint64_t available);

// Makes the folder, replacing one that is there, by filling a temporary one. IoError if `folder`
// holds anything else than the files of a checkpoint, whole or damaged, or if fewer than `needed`
// bytes are free.
void write_checkpoint(const std::filesystem::path& folder, std::uint64_t needed,
                      const std::function<void(const std::filesystem::path& temporary)>& fill);
// The folder, or what a crash has called away from there.
std::filesystem::path readable(const std::filesystem::path& folder);
// Removes what crashes have left of numbered checkpoints, and brings back those that were to be
// replaced.
void put_right_all(const std::filesystem::path& folder);
bool has_leftovers(const std::filesystem::path& folder);
// Renames it first, so that half of one is never taken for a whole one.
std::error_code remove_checkpoint(const std::filesystem::path& folder);

std::string file_checksum(const std::filesystem::path& path);
// TypeError for text that is not UTF-8.
std::string state_text(const io::Json& document);
// ParseError unless the text is whole.
io::Json parse_state(const std::string& text, const std::string& file);

// The name of a run's checkpoint, "step-000000123".
std::string checkpoint_name(std::int64_t steps);
struct NumberedCheckpoint {
  std::int64_t steps = 0;
  std::filesystem::path path;
};
// Those with such names, by number, where they can be read.
std::vector<NumberedCheckpoint> list_checkpoints(const std::filesystem::path& folder);

}  // namespace pantala::train
