#include "io/safetensors_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "pantala/error.h"

namespace pantala::io {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is copied as it is");

namespace {

std::string_view format_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
    case DType::boolean:
      return "BOOL";
  }
  throw InternalError("safetensors: a dtype without a name");
}

void check(const std::vector<TensorBytes>& tensors) {
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const TensorBytes& tensor = tensors[k];
    const std::int64_t expected = tensor.type.shape.numel() * dtype_bytes(tensor.type.dtype);
    if (static_cast<std::int64_t>(tensor.bytes.size()) != expected)
      throw TypeError(fmt::format("safetensors: {} {} has {} bytes, {} were given",
                                  pantala::quoted(tensor.name), tensor.type.str(), expected,
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
      throw TypeError(
          fmt::format("safetensors: the name {} occurs twice", pantala::quoted(tensor.name)));
    header[tensor.name] = {{"dtype", format_name(tensor.type.dtype)},
                           {"shape", tensor.type.shape.vec()},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) { throw TypeError("safetensors: a name is not valid UTF-8"); }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
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
