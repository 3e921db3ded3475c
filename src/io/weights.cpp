// Weights: a table of tensors, each with its bytes and whatever keeps them alive: a mapped file or
// memory of its own.
#include "pantala/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "io/safetensors.h"
#include "io/shards.h"
#include "io/widen.h"
#include "ir/bytes.h"
#include "pantala/error.h"

namespace pantala {

struct StoredTensor {
  Type type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const io::MappedFile> file;         // what keeps the bytes:
  std::shared_ptr<const std::vector<std::byte>> own;  // one of the two
};

namespace {

constexpr std::size_t kListed = 20;

void check_supported(const io::SafeTensorsFile& file) {
  std::vector<std::string> missing;
  for (const io::SafeTensorsEntry& entry : file.entries)
    if (!entry.dtype && !entry.widened)
      missing.push_back(fmt::format("{} ({})", entry.name, entry.format));
  if (missing.empty()) return;
  const std::size_t more = missing.size() - std::min(missing.size(), kListed);
  missing.resize(missing.size() - more);
  throw UnsupportedError(fmt::format("{}: dtypes that are not supported: {}{}",
                                     file.file->file().path().string(), fmt::join(missing, ", "),
                                     more == 0 ? "" : fmt::format(" and {} more", more)));
}

// The bytes stay in the file unless they must be widened.
StoredTensor make_tensor(const io::SafeTensorsFile& file, const io::SafeTensorsEntry& entry) {
  const std::span<const std::byte> bytes = file.file->bytes().subspan(entry.begin, entry.bytes);
  if (!entry.widened)
    return {.type = {*entry.dtype, entry.shape}, .bytes = bytes, .file = file.file, .own = nullptr};
  file.file->check_size();
  const auto own = std::make_shared<const std::vector<std::byte>>(
      io::widen(entry, bytes, file.file->file().path().string()));
  return {.type = {*entry.widened, entry.shape}, .bytes = *own, .file = nullptr, .own = own};
}

}  // namespace

struct Weights::Data {
  std::string source = "the weights";
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::map<std::string, std::string> metadata;

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors) names.push_back(name);
    return names;
  }
  auto place(std::string_view name) const {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      throw TypeError(fmt::format("{}: there is no tensor {}{}", source, in_quotes(name),
                                  did_you_mean(name, names())));
    return found;
  }
  const StoredTensor& tensor(std::string_view name) const { return place(name)->second; }
};

Weights::Weights() : data_(std::make_shared<Data>()) {}

const Weights::Data& Weights::data() const { return *data_; }

Weights::Data& Weights::changeable() {
  if (data_.use_count() > 1) data_ = std::make_shared<Data>(*data_);
  return *data_;
}

Weights Weights::open(const std::filesystem::path& path) {
  io::SafeTensorsModel model = io::open_safetensors_model(path);
  Weights weights;
  Data& data = *weights.data_;
  data.source = model.path.string();
  for (io::SafeTensorsFile& file : model.files) {
    check_supported(file);
    data.metadata.merge(file.metadata);
    for (const io::SafeTensorsEntry& entry : file.entries)
      data.tensors.emplace(entry.name, make_tensor(file, entry));
  }
  return weights;
}

void Weights::save(const std::filesystem::path& path, const SaveWeightsOptions& options) const {
  std::vector<io::TensorBytes> tensors;
  for (const auto& [name, tensor] : data().tensors)
    tensors.push_back({name, tensor.type, bytes(name)});
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  io::write_shards(is_folder ? path / "model.safetensors" : path, std::move(tensors),
                   data().metadata, options.max_shard_bytes);
}

std::vector<std::string> Weights::names() const { return data().names(); }
bool Weights::contains(std::string_view name) const { return data().tensors.contains(name); }
const Type& Weights::type(std::string_view name) const { return data().tensor(name).type; }

std::span<const std::byte> Weights::bytes(std::string_view name) const {
  const StoredTensor& tensor = data().tensor(name);
  if (tensor.file) tensor.file->check_size();
  return tensor.bytes;
}

Literal Weights::read(std::string_view name) const {
  return ir::from_bytes(type(name), bytes(name));
}

void Weights::set(const std::string& name, const Literal& value) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(value.numel() * dtype_bytes(value.dtype())));
  ir::to_bytes(value, bytes);
  set(name, value.type(), std::move(bytes));
}

void Weights::set(const std::string& name, const Type& type, std::vector<std::byte> bytes) {
  const auto expected = static_cast<std::size_t>(type.shape.numel() * dtype_bytes(type.dtype));
  if (bytes.size() != expected)
    throw TypeError(fmt::format("weights: {} {} has {} bytes, {} were given", in_quotes(name),
                                type.str(), expected, bytes.size()));
  auto own = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  changeable().tensors.insert_or_assign(
      name, StoredTensor{.type = type, .bytes = *own, .file = nullptr, .own = own});
}

void Weights::erase(std::string_view name) {
  data().tensor(name);
  Data& data = changeable();
  data.tensors.erase(data.place(name));
}

void Weights::rename(std::string_view from, const std::string& to) {
  data().tensor(from);
  if (from == to) return;
  if (contains(to))
    throw TypeError(fmt::format("{}: {} cannot be renamed to {}: there is one already", source(),
                                in_quotes(from), in_quotes(to)));
  Data& data = changeable();
  auto node = data.tensors.extract(data.place(from));
  node.key() = to;
  data.tensors.insert(std::move(node));
}

const std::map<std::string, std::string>& Weights::metadata() const { return data().metadata; }
void Weights::set_metadata(const std::string& key, const std::string& value) {
  changeable().metadata.insert_or_assign(key, value);
}
const std::string& Weights::source() const { return data().source; }

}  // namespace pantala
