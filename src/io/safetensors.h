// The safetensors format: eight bytes of header length, a JSON header {name: {dtype, shape,
// data_offsets}, "__metadata__": {text: text}}, then the data, without overlaps or holes. This is
// the reader of one file; io/weights.cpp makes models of files. Everything in a file is checked
// when it is opened; nothing in it is trusted, and memory is taken only for what the header really
// holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "pantala/shape.h"

namespace pantala::io {

struct SafeTensorsEntry {
  std::string name;
  std::string_view format;     // the dtype as the format calls it: "BF16"
  std::optional<DType> dtype;  // empty: part of the format, but not of Pantala
  // Of an integer type that is not Pantala's: the one that holds its values (io/widen.h).
  std::optional<DType> widened;
  Shape shape;
  std::uint64_t begin = 0, bytes = 0;  // in the file
};

struct SafeTensorsFile {
  std::shared_ptr<const MappedFile> file;
  std::vector<SafeTensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// IoError or ParseError; dtypes that are not Pantala's are left to the caller.
SafeTensorsFile open_safetensors(const std::filesystem::path& path);

// The files of a model: the file itself, or those that an index lists.
struct SafeTensorsModel {
  std::filesystem::path path;  // what was opened: the file, or the index
  std::vector<SafeTensorsFile> files;
};
// What Weights::open() takes.
SafeTensorsModel open_safetensors_model(const std::filesystem::path& path);

// "F32"; the name of the dtype in the format.
std::string_view safetensors_dtype(DType dtype);

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr std::string_view kSafeTensorsEnding = ".safetensors", kIndexEnding = ".index.json";

}  // namespace pantala::io
