#include "train/packed_batch.h"

#include <cstring>

#include "data/items.h"
#include "io/json.h"

namespace pantala::train {

namespace {

using io::Json;

Json header_of(const data::Array& array) {
  return {{"dtype", dtype_name(array.dtype())}, {"shape", array.shape.vec()}};
}

// Takes its bytes from the front of the text.
data::Array array_of(const Json& header, std::string_view& bytes) {
  data::Array array = data::make_array(*parse_dtype(header.at("dtype").get<std::string>()),
                                       Shape(header.at("shape").get<std::vector<std::int64_t>>()));
  const std::span<std::byte> into = data::bytes_of(array);
  if (!into.empty()) std::memcpy(into.data(), bytes.data(), into.size());
  bytes.remove_prefix(into.size());
  return array;
}

}  // namespace

// The headers of all arrays on a line, then their bytes.
std::string packed(const data::Batch& batch) {
  Json header{{"whole", batch.whole}, {"first", batch.first}, {"names", Json::array()}};
  std::string bytes;
  const auto add = [&](const data::Array& array) {
    header["arrays"].push_back(header_of(array));
    const std::span<const std::byte> own = data::bytes_of(array);
    bytes.append(reinterpret_cast<const char*>(own.data()), own.size());
  };
  add(batch.data);
  add(batch.labels);
  for (const data::NamedArray& other : batch.more) {
    header["names"].push_back(other.name);
    add(other.array);
  }
  return header.dump() + '\n' + bytes;
}

data::Batch unpacked(const std::string& text) {
  const std::size_t end = text.find('\n');
  const Json header = Json::parse(text.substr(0, end));
  std::string_view bytes = std::string_view(text).substr(end + 1);
  data::Batch batch;
  batch.whole = header.at("whole");
  batch.first = header.at("first");
  batch.data = array_of(header.at("arrays").at(0), bytes);
  batch.labels = array_of(header.at("arrays").at(1), bytes);
  for (std::size_t k = 0; k < header.at("names").size(); ++k)
    batch.more.push_back(
        {header.at("names").at(k), array_of(header.at("arrays").at(k + 2), bytes)});
  return batch;
}

}  // namespace pantala::train
