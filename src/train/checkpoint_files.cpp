#include "train/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "base/sha256.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::train {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-", kReplaced = ".old-", kStep = "step-";
constexpr std::string_view kOpening = "{\"checksum\": \"", kClosing = "\",\n";
constexpr std::size_t kChecksum = 64;

fs::path parent_of(const fs::path& folder) {
  return folder.has_parent_path() ? folder.parent_path() : fs::path(".");
}

fs::path beside(const fs::path& folder, std::string_view prefix) {
  if (!folder.has_filename())
    throw TypeError(fmt::format("{}: the name of a checkpoint's folder is missing at the end",
                                folder.string()));
  return parent_of(folder) / (std::string(prefix) + folder.filename().string());
}

// Calls of std::filesystem, whose errors become IoErrors.
template <class F>
auto try_to(const fs::path& path, std::string_view action, F&& f) {
  try {
    return f();
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("{}: cannot {}: {}", path.string(), action, error.code().message()));
  }
}

// Nothing is in it but the files of a checkpoint and what a crash leaves of them.
bool may_be_replaced(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  constexpr std::string_view kFiles[] = {kModelFile, kOptimizerFile, kBestFile, kStateFile};
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [&](const fs::directory_entry& entry) {
                       const std::string name = entry.path().filename().string();
                       return std::find(std::begin(kFiles), std::end(kFiles), name) !=
                                  std::end(kFiles) ||
                              (name.starts_with('.') && name.ends_with(".tmp"));
                     });
}

// The number of "step-000000123".
std::optional<std::int64_t> number_of(std::string_view name) {
  if (!name.starts_with(kStep)) return {};
  name.remove_prefix(kStep.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || name.size() < 9 || number < 0)
    return {};
  return number;
}

// The names of all numbered checkpoints of which there is anything.
std::set<std::string> numbered_names(const fs::path& folder) {
  std::set<std::string> names;
  try_to(folder, "read", [&] {
    if (!fs::exists(folder)) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      for (const std::string_view prefix : {kTemporary, kReplaced})
        if (name.starts_with(prefix)) name.erase(0, prefix.size());
      if (number_of(name)) names.insert(std::move(name));
    }
  });
  return names;
}

// Removes what a crash has left of this checkpoint, and brings back the one that it was to replace.
void put_right(const fs::path& folder) {
  const fs::path temporary = beside(folder, kTemporary), replaced = beside(folder, kReplaced);
  constexpr std::string_view kAction = "put right what a crash has left";
  io::check_change(io::remove_tree(temporary), folder, kAction);
  std::error_code unknown;
  if (!fs::exists(replaced, unknown)) return;
  io::check_change(
      fs::exists(folder, unknown) ? io::remove_tree(replaced) : io::rename_path(replaced, folder),
      folder, kAction);
}

}  // namespace

void check_space(const fs::path& folder, std::uint64_t needed, std::uint64_t available) {
  if (available < needed)
    throw IoError(fmt::format("{}: a checkpoint needs {} bytes, but only {} are free",
                              folder.string(), needed, available));
}

fs::path readable(const fs::path& folder) {
  const fs::path replaced = beside(folder, kReplaced);
  return !fs::exists(folder) && fs::exists(replaced) ? replaced : folder;
}

bool has_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    for (const std::string_view prefix : {kTemporary, kReplaced})
      if (name.starts_with(prefix) && number_of(std::string_view(name).substr(prefix.size())))
        return true;
  }
  return false;
}

void put_right_all(const fs::path& folder) {
  for (const std::string& name : numbered_names(folder)) put_right(folder / name);
}

void write_checkpoint(const fs::path& folder, std::uint64_t needed,
                      const std::function<void(const fs::path&)>& fill) {
  const fs::path parent = parent_of(folder), temporary = beside(folder, kTemporary),
                 replaced = beside(folder, kReplaced);
  if (std::error_code unknown; !fs::is_directory(parent, unknown)) {
    io::check_change(io::make_folders(parent), folder, "write");
    io::sync_folder(parent_of(parent));
  }
  const std::uint64_t available =
      try_to(folder, "write", [&] { return std::uint64_t{fs::space(parent).available}; });
  put_right(folder);
  const bool replaces = try_to(folder, "write", [&] {
    if (!fs::exists(folder)) return false;
    if (!may_be_replaced(folder))
      throw IoError(
          fmt::format("{}: is there and is no checkpoint: it is not replaced", folder.string()));
    return true;
  });
  check_space(folder, needed, available);
  try {
    io::check_change(io::make_folder(temporary), folder, "write");
    fill(temporary);
    io::sync_folder(temporary);
    if (replaces) io::check_change(io::rename_path(folder, replaced), folder, "write");
    io::check_change(io::rename_path(temporary, folder), folder, "write");
    io::sync_folder(parent);
  } catch (...) {
    std::error_code ignored;
    io::remove_tree(temporary);
    if (!fs::exists(folder, ignored) && fs::exists(replaced, ignored))
      io::rename_path(replaced, folder);
    throw;
  }
  if (replaces) io::check_change(io::remove_tree(replaced), replaced, "remove");
}

std::error_code remove_checkpoint(const fs::path& folder) {
  const fs::path temporary = beside(folder, kTemporary);
  if (const std::error_code error = io::remove_tree(temporary)) return error;
  if (const std::error_code error = io::rename_path(folder, temporary)) return error;
  return io::remove_tree(temporary);
}

std::string file_checksum(const fs::path& path) {
  const io::FileReader file(path);
  Sha256 hash;
  std::string part;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(std::uint64_t{1} << 20, file.size() - at));
    file.read_at(at, part);
    hash.add(part);
  }
  return hex(hash.finish());
}

std::string state_text(const io::Json& document) {
  std::string rest;
  try {
    rest = document.dump(1);
  } catch (const nlohmann::json::exception& error) {
    throw TypeError(
        fmt::format("checkpoint: a text that is to be saved is not UTF-8: {}", error.what()));
  }
  rest.erase(0, 2);  // the brace and the end of its line
  rest += '\n';
  return fmt::format("{}{}{}{}", kOpening, hex(sha256(rest)), kClosing, rest);
}

io::Json parse_state(const std::string& text, const std::string& file) {
  const std::string_view view = text;
  constexpr std::size_t kRest = kOpening.size() + kChecksum + kClosing.size();
  if (view.size() < kRest || !view.starts_with(kOpening) ||
      view.substr(kOpening.size() + kChecksum, kClosing.size()) != kClosing)
    throw ParseError(fmt::format("{}: does not begin with the checksum of a checkpoint", file));
  if (hex(sha256(view.substr(kRest))) != view.substr(kOpening.size(), kChecksum))
    throw ParseError(fmt::format("{}: damaged: its checksum is not that of its content", file));
  return io::parse_json(view, file);
}

std::string checkpoint_name(std::int64_t steps) { return fmt::format("{}{:09}", kStep, steps); }

std::vector<NumberedCheckpoint> list_checkpoints(const fs::path& folder) {
  std::vector<NumberedCheckpoint> checkpoints;
  for (const std::string& name : numbered_names(folder))
    if (const fs::path path = readable(folder / name); fs::is_directory(path))
      checkpoints.push_back({*number_of(name), path});
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return a.steps < b.steps; });
  return checkpoints;
}

}  // namespace pantala::train
