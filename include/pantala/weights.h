// Weights: tensors by name, outside of any session: the content of safetensors files (mapped, not
// read), of an ONNX file, or of a session. Sessions take them (Session::load_weights) and give them
// (Session::weights).
//
// Files are mapped read-only. One that is replaced under the same name, as Pantala and most tools
// write files, stays what it was when it was opened. One that is changed in place shows its new
// bytes; one that was cut off is an IoError of bytes() and read(). Cutting a file off while its
// bytes are being used ends the process, as with every mapped file.
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
  // NAME.safetensors.index.json; 0: one file. A larger tensor has a file of its own.
  std::uint64_t max_shard_bytes = 0;
};

// Copies share what has not been changed.
class Weights {
 public:
  Weights();
  // NAME.safetensors, NAME.safetensors.index.json (also taken where NAME.safetensors does not
  // exist), or a folder with model.safetensors, its index, or one file of either kind. Everything
  // but the elements is checked when it is opened: IoError, ParseError, or UnsupportedError for
  // element types that Pantala does not have. Of these I8, I16 and U16 become i32, U32 and U64
  // become i64; a U64 from 2^63 on is an UnsupportedError.
  static Weights open(const std::filesystem::path& path);
  // A folder gets model.safetensors. Each file is written in one step (temporary name, sync,
  // rename), the index last; what an earlier save under the same name left is removed.
  void save(const std::filesystem::path& path, const SaveWeightsOptions& options = {}) const;

  std::vector<std::string> names() const;  // sorted
  bool contains(std::string_view name) const;
  const Type& type(std::string_view name) const;  // TypeError with the nearest name, as the rest
  // Row-major, little-endian, not necessarily aligned to the element's size; good until the tensor
  // is changed or the last copy of the file's Weights is gone.
  std::span<const std::byte> bytes(std::string_view name) const;
  Literal read(std::string_view name) const;

  void set(const std::string& name, const Literal& value);
  // TypeError unless there are as many bytes as the type has.
  void set(const std::string& name, const Type& type, std::vector<std::byte> bytes);
  void erase(std::string_view name);
  void rename(std::string_view from, const std::string& to);  // TypeError if `to` is taken

  // What the files say about themselves; of several files that disagree the first one counts.
  const std::map<std::string, std::string>& metadata() const;
  void set_metadata(const std::string& key, const std::string& value);
  // Where they come from, for messages: a path, or "the weights".
  const std::string& source() const;

 private:
  struct Data;
  const Data& data() const;
  Data& changeable();

  std::shared_ptr<Data> data_;
};

struct LoadWeightsOptions {
  // Everything that the model has must be there, and nothing else: TypeError listing all that is
  // missing (with the nearest names), unexpected and of another type, and nothing has changed.
  // False: what fits is loaded, the report tells the rest.
  bool strict = true;
  // A name that begins with the first text begins with the second one in the model; the first pair
  // that fits counts.
  std::vector<std::pair<std::string, std::string>> prefixes = {};
  // Names of the model, `*` for anything, that keep their values and may be missing or different: a
  // new head. Given tensors of such names are left out.
  std::vector<std::string> skip = {};
  // Given tensors (by their names in the model) that the model need not have: what torchvision and
  // Hugging Face write and no model here needs.
  std::vector<std::string> ignore = {"*num_batches_tracked", "*rotary_emb.inv_freq"};
};

// Names are those of the model.
struct LoadWeightsReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> skipped;  // by `skip` or `ignore`
  // "fc.weight: f32[10,512] in the model, f32[1000,512] given"
  std::vector<std::string> mismatched;
  // Given twice, once under a name that the model does not have because it ties the two:
  // "lm_head.weight: the same as model.embed_tokens.weight". Not unexpected.
  std::vector<std::string> tied;

  bool fits() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // A line for each kind and for each tensor that does not fit, with the nearest names; long lists
  // are cut.
  std::string text() const;
};

}  // namespace pantala
