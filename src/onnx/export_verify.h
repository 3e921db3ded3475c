// The proof of an export: the file, read again, computes what the graph computes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "pantala/graph.h"
#include "pantala/weights.h"

namespace pantala::onnx {

// Runs both on the same drawn inputs. InternalError listing the outputs that differ by more than
// rounding, or the error of the import.
void verify_export(const Graph& graph, const Weights& weights, std::span<const std::byte> file,
                   const std::string& name, const std::filesystem::path& folder);

}  // namespace pantala::onnx
