// The proof of an export: the file, read again, computes what the graph computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "pantala/graph.h"
#include "pantala/weights.h"

namespace pantala::onnx {

// Runs both on the same drawn inputs, the file with these values of its symbolic sizes.
// InternalError listing the outputs that differ by more than rounding, or the error of the import.
struct FileToVerify {
  std::span<const std::byte> bytes;
  std::string name;
  std::filesystem::path folder;  // of external data
};
void verify_export(const Graph& graph, const Weights& weights, const FileToVerify& file,
                   const std::map<std::string, std::int64_t>& sizes);

}  // namespace pantala::onnx
