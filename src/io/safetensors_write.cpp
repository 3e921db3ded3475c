#include "io/safetensors_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "pantala/error.h"

namespace pantala::io {

namespace {

void check(const std::vector<TensorBytes>& tensors) {
  for (const TensorBytes& tensor : tensors) {
    if (tensor.name == "__metadata__")
      throw TypeError("safetensors: no tensor can be named \"__metadata__\"");
    const std::int64_t expected = tensor.type.shape.numel() * dtype_bytes(tensor.type.dtype);
    if (static_cast<std::int64_t>(tensor.bytes.size()) != expected)
      throw TypeError(fmt::format("safetensors: {} {} has {} bytes, {} were given",
                                  in_quotes(tensor.name), tensor.type.str(), expected,
                                  tensor.bytes.size()));
  }
}

// The header's bytes with its length in front, padded with spaces so that the data is aligned.
std::string header_bytes(const std::vector<TensorBytes>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorBytes& tensor : tensors) {
    if (header.contains(tensor.name))
      throw TypeError(fmt::format("safetensors: the name {} occurs twice", in_quotes(tensor.name)));
    header[tensor.name] = {{"dtype", safetensors_dtype(tensor.type.dtype)},
                           {"shape", tensor.type.shape.vec()},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw TypeError("safetensors: a name or a text of the metadata is not valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  if (length > kMaxHeaderBytes)
    throw TypeError(fmt::format("safetensors: a header of {} bytes is above the limit of {}",
                                length, kMaxHeaderBytes));
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::vector<TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  check(tensors);
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorBytes& a, const TensorBytes& b) {
    const auto size = [](const TensorBytes& t) { return dtype_bytes(t.type.dtype); };
    return size(a) != size(b) ? size(a) > size(b) : a.name < b.name;
  });
  const std::string header = header_bytes(tensors, metadata);
  std::vector<std::string_view> parts = {header};
  for (const TensorBytes& tensor : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  write_file(path, parts);
}

}  // namespace pantala::io
