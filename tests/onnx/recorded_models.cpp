#include "recorded_models.h"

#include <algorithm>
#include <cstring>

#include "io/file.h"
#include "tools/fixtures/fill.h"

namespace pantala::tests {

namespace {

const std::filesystem::path kFolder = std::filesystem::path(PANTALA_FIXTURES_DIR) / "onnx";

// --- protobuf, as far as initialisers need it: field numbers of onnx.proto
constexpr int kGraphOfModel = 7, kInitializerOfGraph = 5;
constexpr int kDims = 1, kDataType = 2, kName = 8, kRawData = 9;
constexpr std::uint64_t kFloat = 1;

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}
void put_number(std::string& out, int field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, value);
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(in.at(0));
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

std::string tensor_message(const std::string& name, const Literal& value) {
  std::string message, raw(static_cast<std::size_t>(value.numel()) * sizeof(float), '\0');
  for (std::int64_t k = 0; k < value.numel(); ++k) {
    const auto number = static_cast<float>(value.f()[static_cast<std::size_t>(k)]);
    std::memcpy(raw.data() + static_cast<std::size_t>(k) * sizeof(float), &number, sizeof(float));
  }
  for (const std::int64_t size : value.shape())
    put_number(message, kDims, static_cast<std::uint64_t>(size));
  put_number(message, kDataType, kFloat);
  put_bytes(message, kName, name);
  put_bytes(message, kRawData, raw);
  return message;
}

// The model with further initialisers in its graph.
std::string with_initializers(std::string_view model, const std::string& initializers) {
  std::string out;
  while (!model.empty()) {
    const std::string_view field = model;
    const std::uint64_t key = take_varint(model);
    if ((key & 7) == 2) {
      const std::uint64_t size = take_varint(model);
      const std::string_view content = model.substr(0, size);
      model.remove_prefix(content.size());
      if (key >> 3 == kGraphOfModel) {
        put_bytes(out, kGraphOfModel, std::string(content) + initializers);
        continue;
      }
    } else {
      take_varint(model);
    }
    out.append(field.substr(0, field.size() - model.size()));
  }
  return out;
}

}  // namespace

RecordedModel recorded_model(const std::string& name) {
  const auto json = io::read_json<io::OrderedJson>(kFolder / (name + ".json"));
  std::string initializers;
  for (const io::OrderedJson& weight : json.at("weights"))
    put_bytes(initializers, kInitializerOfGraph,
              tensor_message(weight.at("name"), tools::make(tools::fill_of(weight))));
  const std::string file =
      with_initializers(io::read_file(kFolder / (name + ".onnx")), initializers);
  RecordedModel model{name, std::vector<std::byte>(file.size()), {}, json.at("outputs")};
  std::memcpy(model.file.data(), file.data(), file.size());
  for (const auto& [input, fill] : json.at("inputs").items())
    model.inputs[input] = tools::make(tools::fill_of(fill));
  return model;
}

std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pantala::tests
