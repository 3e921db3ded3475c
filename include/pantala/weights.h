// Weights: tensors by name, outside of any session: the content of safetensors files (mapped, not
// read), of an ONNX file, or of a session. Sessions take them (Session::load_weights) and give them
// (Session::weights).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pantala/literal.h"

namespace pantala {

struct SaveWeightsOptions {
  // More than this, and the tensors are spread over NAME-00001-of-0000N.safetensors with an index
  // NAME.safetensors.index.json; 0: one file.
  std::uint64_t max_shard_bytes = 0;
};

// Copies share what has not been changed.
class Weights {
 public:
  Weights();
  // NAME.safetensors, NAME.safetensors.index.json, or a folder with model.safetensors, its index,
  // or one file of either kind. Everything is checked when it is opened: IoError, ParseError, or
  // UnsupportedError for element types that Pantala does not have.
  static Weights open(const std::filesystem::path& path);
  // In one step each (temporary name, sync, rename); the index comes last.
  void save(const std::filesystem::path& path, const SaveWeightsOptions& options = {}) const;

  std::vector<std::string> names() const;  // sorted
  bool contains(std::string_view name) const;
  const Type& type(std::string_view name) const;  // TypeError with the nearest name, as the rest
  // Row-major, little-endian; good until the tensor is changed or the last copy of the file's
  // Weights is gone.
  std::span<const std::byte> bytes(std::string_view name) const;
  Literal read(std::string_view name) const;

  void set(const std::string& name, const Literal& value);
  // TypeError unless there are as many bytes as the type has.
  void set(const std::string& name, const Type& type, std::vector<std::byte> bytes);
  void erase(std::string_view name);
  void rename(std::string_view from, const std::string& to);  // TypeError if `to` is taken

  const std::map<std::string, std::string>& metadata() const;
  void set_metadata(const std::string& key, const std::string& value);

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

struct LoadWeightsOptions {
  // Everything that the model has must be there, and nothing else: TypeError listing all that is
  // missing (with the nearest names), unexpected and of another shape, and nothing has changed.
  // False: what fits is loaded, the report tells the rest.
  bool strict = true;
  // A name that begins with the first text begins with the second one in the model; the first pair
  // that fits counts.
  std::vector<std::pair<std::string, std::string>> prefixes = {};
  // Names of the model, `*` for anything, that keep their values and may lack or differ: a new
  // head.
  std::vector<std::string> skip = {};
};
struct LoadWeightsReport {
  std::vector<std::string> loaded, missing, unexpected, skipped;
  std::vector<std::string>
      mismatched;  // "fc.weight: f32[10,512] in the model, f32[1000,512] given"
  std::string text() const;
};

}  // namespace pantala
