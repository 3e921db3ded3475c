// ONNX files: read as graphs that can be trained, and written from graphs. docs/onnx.md lists the
// operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "pantala/weights.h"

namespace pantala::onnx {

struct ImportOptions {
  // Of symbolic dimensions, by their names. One that has no size is an error that lists all of
  // them.
  std::map<std::string, std::int64_t> sizes = {};
  // Of whole inputs, where the file does not say their shapes (or says others for symbolic ones).
  std::map<std::string, Shape> shapes = {};
  // Inputs that become constants: those that determine shapes.
  std::map<std::string, Literal> bind = {};
  // Floating initialisers become parameters; false: constants.
  bool trainable = true;
  // Batch norm with the statistics of the batch (running ones become states), dropout active.
  bool training = false;
};

struct Model {
  Graph graph;       // inputs and outputs have the file's names
  Weights weights;   // of its parameters and states
  std::string name;  // of the file's graph
  std::int64_t opset = 0;
};
// Constants and shapes are computed when the file is read; what is left is the graph. Nodes may
// stand in any order, and external data lie beside the file (never outside of its folder). IoError,
// ParseError for a damaged file, TypeError for a graph that is not right, UnsupportedError listing
// all operators that are missing, with the names of their nodes.
Model import_model(const std::filesystem::path& path, const ImportOptions& options = {});
// `folder` is where external data are looked for; none: there may be no external data.
Model import_model(std::span<const std::byte> file, const std::string& name,
                   const ImportOptions& options = {}, const std::filesystem::path& folder = {});

struct ExportOptions {
  std::int64_t opset = 17;  // 14 to 21
  // Empty: all but "loss" and what depends on the input "labels", or all if that leaves none.
  std::vector<std::string> outputs = {};
  // Runs the file (imported again) and the graph on the same inputs before it gets its name, and
  // throws what differs.
  bool verify = true;
  // Weights of more bytes go beside the file, as external data NAME.onnx.data: a file of the format
  // cannot be larger than 2 GB.
  std::uint64_t max_inline_bytes = std::uint64_t{3} << 29;
};
// Outputs of the graph, forward only; parameters and states become initialisers, as do all values
// that depend on constants alone. Weights that no output needs are left out. UnsupportedError
// listing all ops that ONNX lacks, TypeError for weights that are missing or of another type. The
// file is written in one step.
void export_model(const Graph& graph, const Weights& weights, const std::filesystem::path& path,
                  const ExportOptions& options = {});

}  // namespace pantala::onnx
