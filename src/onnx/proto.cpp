#include "onnx/proto.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "io/file.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int32_t>::max();

void parse(google::protobuf::io::CodedInputStream& stream, pb::ModelProto& model,
           const std::string& name) {
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  // The partial form says nothing on the error stream; the schema has no required fields.
  if (!model.ParsePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    throw ParseError(
        fmt::format("{}: at byte {}: not an ONNX file: its protobuf message is damaged", name,
                    stream.CurrentPosition()));
  if (!model.has_graph())
    throw ParseError(fmt::format("{}: not an ONNX model: it has no graph", name));
}

// protobuf's reader over a file.
class FileStream : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileStream(const io::FileReader& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    const std::uint64_t count =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(size), file_.size() - position_);
    file_.read_at(position_, {static_cast<char*>(buffer), count});
    position_ += count;
    return static_cast<int>(count);
  }

 private:
  const io::FileReader& file_;
  std::uint64_t position_ = 0;
};

struct TypeRow {
  int number;
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr std::array kTypes{
    TypeRow{1, "float", f32},        TypeRow{2, "uint8", u8},
    TypeRow{3, "int8", {}},          TypeRow{4, "uint16", {}},
    TypeRow{5, "int16", {}},         TypeRow{6, "int32", i32},
    TypeRow{7, "int64", i64},        TypeRow{8, "string", {}},
    TypeRow{9, "bool", boolean},     TypeRow{10, "float16", f16},
    TypeRow{11, "double", f64},      TypeRow{12, "uint32", {}},
    TypeRow{13, "uint64", {}},       TypeRow{14, "complex64", {}},
    TypeRow{15, "complex128", {}},   TypeRow{16, "bfloat16", bf16},
    TypeRow{17, "float8e4m3fn", {}}, TypeRow{18, "float8e4m3fnuz", {}},
    TypeRow{19, "float8e5m2", {}},   TypeRow{20, "float8e5m2fnuz", {}},
    TypeRow{21, "uint4", {}},        TypeRow{22, "int4", {}},
    TypeRow{23, "float4e2m1", {}},   TypeRow{24, "float8e8m0", {}},
    TypeRow{25, "uint2", {}},        TypeRow{26, "int2", {}},
};
const TypeRow* type_row(int number) {
  for (const TypeRow& row : kTypes)
    if (row.number == number) return &row;
  return nullptr;
}

std::string place(const pb::TensorProto& tensor, const TensorPlace& source) {
  return fmt::format("{}: tensor '{}'", source.name, tensor.name());
}

std::uint64_t number_entry(const pb::TensorProto& tensor, const std::string& text,
                           std::string_view key, const TensorPlace& source) {
  std::uint64_t value = 0;
  if (text.empty()) throw ParseError(fmt::format("{}: empty {}", place(tensor, source), key));
  for (const char c : text) {
    if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
      throw ParseError(fmt::format("{}: external {} is no number: '{}'", place(tensor, source), key,
                                   text.substr(0, 40)));
  }
  return value;
}

// Beside the model: a relative path without "..", which no symbolic link leads out of the folder.
std::filesystem::path external_path(const pb::TensorProto& tensor, const std::string& location,
                                    const TensorPlace& source) {
  const std::filesystem::path given(location);
  const auto refuse = [&](std::string_view why) {
    throw ParseError(
        fmt::format("{}: external data '{}' {}", place(tensor, source), location, why));
  };
  if (source.folder.empty()) refuse("cannot be read: the model did not come from a folder");
  if (location.empty() || location.find('\0') != std::string::npos) refuse("is no file name");
  if (given.is_absolute()) refuse("must lie beside the model, but its path is absolute");
  for (const std::filesystem::path& part : given)
    if (part == "..") refuse("must lie in the folder of the model, but its path leads out of it");
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::weakly_canonical(source.folder, error);
  const std::filesystem::path full = std::filesystem::weakly_canonical(folder / given, error);
  if (error ||
      std::mismatch(folder.begin(), folder.end(), full.begin(), full.end()).first != folder.end())
    refuse("must lie in the folder of the model, but a link leads out of it");
  if (!std::filesystem::is_regular_file(full, error)) refuse("is no file in the model's folder");
  return full;
}

std::vector<std::byte> external_bytes(const pb::TensorProto& tensor, std::uint64_t expected,
                                      const TensorPlace& source) {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const pb::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_entry(tensor, entry.value(), "offset", source);
    if (entry.key() == "length") length = number_entry(tensor, entry.value(), "length", source);
  }
  if (length.value_or(expected) != expected)
    throw ParseError(fmt::format("{}: external data have {} bytes, its shape needs {}",
                                 place(tensor, source), *length, expected));
  const io::FileReader file(external_path(tensor, location, source));
  if (offset > file.size() || expected > file.size() - offset)
    throw ParseError(fmt::format("{}: external data end at byte {} + {}, but {} has {} bytes",
                                 place(tensor, source), offset, expected, file.path().string(),
                                 file.size()));
  std::vector<std::byte> bytes(expected);
  file.read_at(offset, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  return bytes;
}

template <class To, class From>
std::vector<std::byte> narrowed(const From& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(values.size()) * sizeof(To));
  std::byte* to = bytes.data();
  for (const auto value : values) {
    const auto element = static_cast<To>(value);
    std::memcpy(to, &element, sizeof(To));
    to += sizeof(To);
  }
  return bytes;
}

std::vector<std::byte> typed_bytes(const pb::TensorProto& tensor, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return narrowed<float>(tensor.float_data());
    case DType::f64:
      return narrowed<double>(tensor.double_data());
    case DType::f16:
    case DType::bf16:
      return narrowed<std::uint16_t>(tensor.int32_data());
    case DType::i32:
      return narrowed<std::int32_t>(tensor.int32_data());
    case DType::i64:
      return narrowed<std::int64_t>(tensor.int64_data());
    case DType::u8:
      return narrowed<std::uint8_t>(tensor.int32_data());
    case DType::boolean:
      return narrowed<bool>(tensor.int32_data());
  }
  throw InternalError("an element type without bytes");
}

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

double float_element(std::span<const std::byte> bytes, std::size_t k, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return element<double>(bytes, k);
    case DType::f16:
      return half_value(element<std::uint16_t>(bytes, k));
    case DType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(element<std::uint16_t>(bytes, k))
                                  << 16);
    default:
      return element<float>(bytes, k);
  }
}
std::int64_t integer_element(std::span<const std::byte> bytes, std::size_t k, DType dtype) {
  switch (dtype) {
    case DType::i64:
      return element<std::int64_t>(bytes, k);
    case DType::i32:
      return element<std::int32_t>(bytes, k);
    case DType::boolean:
      return element<std::uint8_t>(bytes, k) != 0;
    default:
      return element<std::uint8_t>(bytes, k);
  }
}

}  // namespace

pb::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() > kMostBytes)
    throw ParseError(
        fmt::format("{}: {} bytes are more than an ONNX file may have (2 GB)", name, bytes.size()));
  pb::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  parse(stream, model, name);
  return model;
}

pb::ModelProto read_model(const std::filesystem::path& path) {
  const io::FileReader file(path);
  if (file.size() > kMostBytes)
    throw ParseError(fmt::format("{}: {} bytes are more than an ONNX file may have (2 GB)",
                                 path.string(), file.size()));
  FileStream source(file);
  google::protobuf::io::CopyingInputStreamAdaptor adaptor(&source, 1 << 16);
  google::protobuf::io::CodedInputStream stream(&adaptor);
  pb::ModelProto model;
  parse(stream, model, path.string());
  return model;
}

std::optional<DType> dtype_of(int onnx_type) {
  const TypeRow* row = type_row(onnx_type);
  return row != nullptr ? row->dtype : std::nullopt;
}

int onnx_type(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.number;
  throw InternalError("an element type without an ONNX number");
}

std::string onnx_type_name(int onnx_type) {
  const TypeRow* row = type_row(onnx_type);
  return row != nullptr ? std::string(row->name) : fmt::format("type {}", onnx_type);
}

Type tensor_type(const pb::TensorProto& tensor, const TensorPlace& source) {
  const std::optional<DType> dtype = dtype_of(tensor.data_type());
  if (!dtype)
    throw UnsupportedError(fmt::format("{}: elements of type {} are not available",
                                       place(tensor, source), onnx_type_name(tensor.data_type())));
  if (tensor.has_segment())
    throw UnsupportedError(
        fmt::format("{}: tensors in segments are not read", place(tensor, source)));
  if (tensor.dims_size() > Shape::kMaxRank)
    throw UnsupportedError(fmt::format("{}: {} axes, at most {} are available",
                                       place(tensor, source), tensor.dims_size(), Shape::kMaxRank));
  try {
    return {*dtype, Shape(std::vector<std::int64_t>(tensor.dims().begin(), tensor.dims().end()))};
  } catch (const TypeError& error) {
    throw ParseError(fmt::format("{}: {}", place(tensor, source), error.what()));
  }
}

std::vector<std::byte> tensor_bytes(const pb::TensorProto& tensor, const TensorPlace& source) {
  const Type type = tensor_type(tensor, source);
  const auto expected = static_cast<std::uint64_t>(type.shape.numel()) *
                        static_cast<std::uint64_t>(dtype_bytes(type.dtype));
  if (tensor.data_location() == pb::TensorProto::EXTERNAL)
    return external_bytes(tensor, expected, source);
  std::vector<std::byte> bytes;
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != expected)
      throw ParseError(fmt::format("{}: {} bytes of data, {} needs {}", place(tensor, source),
                                   tensor.raw_data().size(), type.str(), expected));
    const auto* from = reinterpret_cast<const std::byte*>(tensor.raw_data().data());
    bytes.assign(from, from + expected);
  } else {
    bytes = typed_bytes(tensor, type.dtype);
  }
  if (bytes.size() != expected)
    throw ParseError(fmt::format("{}: {} elements of data, {} needs {}", place(tensor, source),
                                 bytes.size() / static_cast<std::size_t>(dtype_bytes(type.dtype)),
                                 type.str(), type.shape.numel()));
  return bytes;
}

Literal tensor_literal(const pb::TensorProto& tensor, const TensorPlace& source) {
  const Type type = tensor_type(tensor, source);
  const std::vector<std::byte> bytes = tensor_bytes(tensor, source);
  Literal literal(type);
  const auto count = static_cast<std::size_t>(literal.numel());
  for (std::size_t k = 0; k < count; ++k) {
    if (literal.is_float())
      literal.f()[k] = float_element(bytes, k, type.dtype);
    else
      literal.i()[k] = integer_element(bytes, k, type.dtype);
  }
  return literal;
}

}  // namespace pantala::onnx
