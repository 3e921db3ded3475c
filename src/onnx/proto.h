// The messages of an ONNX file (protobuf, onnx/onnx_pb.h), read with limits, and tensors out of
// them. Everything here treats the file as hostile: sizes are checked against the bytes that are
// there before memory is taken.
//
// Fields and element types that are newer than the schema are skipped by protobuf; what is then
// missing is an UnsupportedError of whoever reads it.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pantala/literal.h"
#include "pantala/weights.h"

namespace pantala::onnx {

namespace pb = ::onnx;

// ParseError, with the name of the file, for what is no ONNX model.
pb::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& name);
// Without the whole file in memory beside the message. Files beyond protobuf's 2 GB are a
// ParseError.
pb::ModelProto read_model(const std::filesystem::path& path);

// An ONNX element type by its number; none for those that Pantala does not have.
std::optional<DType> dtype_of(int onnx_type);
int onnx_type(DType dtype);
// "float", "int8", ... or "type 23" for numbers that the schema does not know.
std::string onnx_type_name(int onnx_type);

// Where a model's tensors may lie.
struct TensorPlace {
  std::string name;              // of the file, for messages
  std::filesystem::path folder;  // of external data; empty: none allowed
};

// UnsupportedError for element types and forms that Pantala does not have, ParseError where the
// data do not fit the sizes.
Type tensor_type(const pb::TensorProto& tensor, const TensorPlace& source);
// Row-major and little-endian, as Weights have them.
std::vector<std::byte> tensor_bytes(const pb::TensorProto& tensor, const TensorPlace& source);
Literal tensor_literal(const pb::TensorProto& tensor, const TensorPlace& source);

}  // namespace pantala::onnx
