#include "io/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "io/file.h"
#include "io/file_changes.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

// NAME of NAME.safetensors.
std::string stem_of(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(kSafeTensorsEnding)) name.resize(name.size() - kSafeTensorsEnding.size());
  return name;
}

std::vector<std::vector<TensorBytes>> split(std::vector<TensorBytes> tensors, std::uint64_t limit) {
  std::vector<std::vector<TensorBytes>> shards(1);
  std::uint64_t used = 0;
  for (TensorBytes& tensor : tensors) {
    if (!shards.back().empty() && used + tensor.bytes.size() > limit) {
      shards.emplace_back();
      used = 0;
    }
    used += tensor.bytes.size();
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

// Whether a file's name is STEM-00001-of-00002.safetensors.
bool is_shard_of(std::string_view name, std::string_view stem) {
  const auto take_number = [&] {
    std::size_t digits = 0;
    while (digits < name.size() && std::isdigit(static_cast<unsigned char>(name[digits])) != 0)
      ++digits;
    name.remove_prefix(digits);
    return digits >= 5;
  };
  const auto take = [&](std::string_view text) {
    if (!name.starts_with(text)) return false;
    name.remove_prefix(text.size());
    return true;
  };
  return take(stem) && take("-") && take_number() && take("-of-") && take_number() &&
         name == kSafeTensorsEnding;
}

void remove_file(const std::filesystem::path& path) {
  check_change(remove_path(path), path, "remove");
}

void remove_other_shards(const std::filesystem::path& folder, const std::string& stem,
                         const std::set<std::string>& current) {
  std::vector<std::filesystem::path> old;
  std::error_code error;  // a folder that cannot be listed keeps what it has
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_shard_of(name, stem) && !current.contains(name)) old.push_back(at->path());
  }
  for (const std::filesystem::path& path : old) remove_file(path);
}

}  // namespace

void write_shards(const std::filesystem::path& path, std::vector<TensorBytes> tensors,
                  const std::map<std::string, std::string>& metadata,
                  std::uint64_t max_shard_bytes) {
  std::uint64_t total = 0;
  for (const TensorBytes& tensor : tensors) total += tensor.bytes.size();
  const bool one_file = max_shard_bytes == 0 || total <= max_shard_bytes;
  // A file of another name is no part of a model of several: nothing else is touched.
  if (!path.filename().string().ends_with(kSafeTensorsEnding)) {
    if (!one_file)
      throw TypeError(fmt::format("{}: weights in several files need a name that ends with {}",
                                  path.string(), kSafeTensorsEnding));
    return write_safetensors(path, std::move(tensors), metadata);
  }
  const std::string stem = stem_of(path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::filesystem::path index =
      folder / fmt::format("{}{}{}", stem, kSafeTensorsEnding, kIndexEnding);
  std::set<std::string> current;
  if (one_file) {
    write_safetensors(path, std::move(tensors), metadata);
    remove_file(index);
  } else {
    std::vector<std::vector<TensorBytes>> shards = split(std::move(tensors), max_shard_bytes);
    // The shards of a model of as many parts have the same names: its index must not outlive them.
    remove_file(index);
    Json weight_map = Json::object();
    for (std::size_t k = 0; k < shards.size(); ++k) {
      const std::string name =
          fmt::format("{}-{:05}-of-{:05}{}", stem, k + 1, shards.size(), kSafeTensorsEnding);
      for (const TensorBytes& tensor : shards[k]) weight_map[tensor.name] = name;
      current.insert(name);
      write_safetensors(folder / name, std::move(shards[k]), metadata);
    }
    const Json document = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
    write_file(index, document.dump(2) + "\n");
    remove_file(folder / fmt::format("{}{}", stem, kSafeTensorsEnding));
  }
  remove_other_shards(folder, stem, current);
}

}  // namespace pantala::io
