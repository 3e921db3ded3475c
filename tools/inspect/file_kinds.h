// Files that `pantala inspect` shows as they are, a row for each kind: how it is recognised and how
// it is shown. A new kind is a file file_NAME.cpp with a function NAME_file_kind() and its line in
// file_kinds.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pantala::tools {

struct FileKind {
  std::string_view name;  // "safetensors file"
  // By the path, which may be a folder or not there at all, and by the first bytes of a file (at
  // most kFirstBytes).
  bool (*recognises)(const std::filesystem::path& path, std::string_view first_bytes);
  // Text or JSON; the errors are those of reading such a file.
  std::string (*show)(const std::filesystem::path& path, bool json);
  bool compiles = false;  // it holds a graph: pictures of what is made of it can be asked for
};
inline constexpr std::size_t kFirstBytes = 64;

FileKind safetensors_file_kind();
FileKind plan_file_kind();
FileKind onnx_file_kind();

// The kind of what is there under this name; empty for anything else: a graph in text form, or
// nothing at all.
std::optional<FileKind> file_kind_of(const std::filesystem::path& path);

}  // namespace pantala::tools
