// Tensors of safetensors files as arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/items.h"
#include "ir/bytes.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "pantala/weights.h"

namespace pantala::data {

namespace {

// In parts: a literal takes eight bytes an element.
std::vector<float> halves(DType dtype, std::span<const std::byte> bytes) {
  constexpr std::size_t kPart = 1 << 14;
  std::vector<float> values(bytes.size() / 2);
  for (std::size_t done = 0; done < values.size(); done += kPart) {
    const std::size_t count = std::min(kPart, values.size() - done);
    const Literal part = ir::from_bytes({dtype, {static_cast<std::int64_t>(count)}},
                                        bytes.subspan(2 * done, 2 * count));
    std::transform(part.f().begin(), part.f().end(),
                   values.begin() + static_cast<std::ptrdiff_t>(done),
                   [](double value) { return static_cast<float>(value); });
  }
  return values;
}

}  // namespace

std::vector<std::string> safetensors_names(const std::filesystem::path& path) {
  return Weights::open(path).names();
}

Array read_safetensors(const std::filesystem::path& path, const std::string& name) {
  const Weights file = Weights::open(path);
  const Type& type = file.type(name);
  const std::span<const std::byte> bytes = file.bytes(name);
  if (type.dtype == f16 || type.dtype == bf16)
    return {.shape = type.shape, .values = halves(type.dtype, bytes)};
  Array array = make_array(type.dtype == boolean ? u8 : type.dtype, type.shape);
  if (!bytes.empty()) std::memcpy(bytes_of(array).data(), bytes.data(), bytes.size());
  return array;
}

}  // namespace pantala::data
