// ONNX files: read as graphs that can be trained, and written from graphs. docs/onnx.md lists the
// operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
  // The first size of an input in `shapes` or `bind` may be another one than the file's: that of a
  // batch.
  bool any_batch = false;
  // Inputs that become constants: those that determine shapes.
  std::map<std::string, Literal> bind = {};
  // Floating initialisers become parameters; false: constants.
  bool trainable = true;
  // Batch norm with the statistics of the batch (running ones become states), dropout active.
  bool training = false;
  // With `training`: layers that the file has in evaluation mode stay so. A batch norm is in
  // training mode where `training_mode` (before version 14 its results) or PyTorch's newer exporter
  // says so, dropout where it is there and `training_mode` does not say that it is off.
  bool as_exported = false;
  // Batch norm with running statistics, no dropout, also where the file asks for training. Neither
  // of the two: as the file says.
  bool evaluation = false;
};

struct Model {
  Graph graph;       // inputs and outputs have the file's names
  Weights weights;   // of its parameters and states
  std::string name;  // of the file's graph
  std::int64_t opset = 0;
  // Of a model for training: what would not be trained as PyTorch trains the network that the file
  // was made from, a line each.
  std::vector<std::string> warnings = {};
};
// Constants and shapes are computed when the file is read; what is left is the graph. Nodes may
// stand in any order, and external data lie beside the file (never outside of its folder). IoError,
// ParseError for a damaged file, TypeError for a graph that is not right, UnsupportedError listing
// all operators that are missing, with the names of their nodes.
Model import_model(const std::filesystem::path& path, const ImportOptions& options = {});
// `folder` is where external data are looked for; none: there may be no external data.
Model import_model(std::span<const std::byte> file, const std::string& name,
                   const ImportOptions& options = {}, const std::filesystem::path& folder = {});

// What a file says about itself; its operators need not be supported.
struct Summary {
  struct Axis {
    std::int64_t size = -1;  // -1: not fixed
    std::string symbol = {};
  };
  struct Value {
    std::string name;
    std::string dtype;                           // "f32", or ONNX's name of what Pantala lacks
    std::optional<std::vector<Axis>> axes = {};  // none: any shape
    std::string str() const;                     // "f32[batch,3,224,224]"
  };
  struct Tensor {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    std::string external = {};  // the file that holds it, if it is another one
  };
  std::string name, producer;
  std::int64_t opset = 0;
  std::vector<Value> inputs, outputs;             // inputs without those that are initialisers
  std::map<std::string, std::int64_t> operators;  // how many nodes of each
  std::vector<Tensor> tensors;                    // initialisers
  std::vector<std::pair<std::string, std::string>> metadata;  // what the file says about itself
};
// IoError, or ParseError for what is no ONNX file.
Summary summarize(const std::filesystem::path& path);

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
  // Names and texts that go with the file: names of classes, how inputs are normalised.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};
// Outputs of the graph, forward only; parameters and states become initialisers, as do all values
// that depend on constants alone. Weights that no output needs are left out. UnsupportedError
// listing all ops that ONNX lacks, TypeError for weights that are missing or of another type. The
// file is written in one step.
void export_model(const Graph& graph, const Weights& weights, const std::filesystem::path& path,
                  const ExportOptions& options = {});

// The same of a model that can be made for any batch size: the file's inputs and outputs have the
// symbolic size "batch" where the graphs of two sizes differ. Before the file gets its name it is
// read for batches of 1 and 3 and compared with the graphs of these sizes.
using GraphOfBatch = std::function<Graph(std::int64_t batch)>;
struct ExportedBatch {
  bool symbolic = true;
  std::string reason = {};  // why it is not: the file is that of a batch of 1 then
};
ExportedBatch export_model(const GraphOfBatch& graph, const Weights& weights,
                           const std::filesystem::path& path, const ExportOptions& options = {});

}  // namespace pantala::onnx
