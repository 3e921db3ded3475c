// The safetensors format, read only: eight bytes of header length, a JSON header {name: {dtype,
// shape, data_offsets}}, then the data. A model may be split into several files that
// NAME.safetensors.index.json lists ({"weight_map": {tensor: file}}). A file is checked completely
// when it is opened; nothing in it is trusted, and memory is taken only for what the file really
// holds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "pantala/literal.h"

namespace pantala::io {

class SafeTensors {
 public:
  // NAME.safetensors, or NAME.safetensors.index.json, which is also taken where NAME.safetensors
  // does not exist. IoError, ParseError, or UnsupportedError for dtypes that Pantala does not have.
  explicit SafeTensors(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return entries_.contains(name); }
  const Type& type(std::string_view name) const;  // TypeError with the nearest name
  Literal read(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    Type type;
    std::size_t file = 0;
    std::uint64_t begin = 0, bytes = 0;  // in the file
  };

  void open_index(const std::filesystem::path& path);
  void add_file(const std::filesystem::path& path);
  const Entry& entry(std::string_view name) const;

  std::vector<FileReader> files_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace pantala::io
