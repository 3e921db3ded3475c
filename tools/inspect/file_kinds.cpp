#include "tools/inspect/file_kinds.h"

#include <algorithm>

#include "io/file.h"

namespace pantala::tools {

std::optional<FileKind> file_kind_of(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at has no bytes
  std::string first_bytes;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const io::FileReader file(path);
    first_bytes.resize(std::min<std::uint64_t>(file.size(), kFirstBytes));
    file.read_at(0, first_bytes);
  }
  for (const FileKind& kind : {plan_file_kind(), onnx_file_kind(), safetensors_file_kind()})
    if (kind.recognises(path, first_bytes)) return kind;
  return std::nullopt;
}

}  // namespace pantala::tools
