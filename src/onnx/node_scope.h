// What PyTorch's exporters tell of a file's nodes.
//
// The older one puts the layer into the node's name: "/layer1/layer1.0/bn1/BatchNormalization", and
// "bn1_1" where the layer is used a second time. The newer one writes metadata: the layer, and the
// call that the node was made of, with the parameters that it got.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/proto.h"

namespace pantala::onnx {

struct NodeScope {
  bool is_told = false;
  std::string layer;     // "layer1.0.bn1"; the network itself is ""
  std::string function;  // of the layer, "conv2d"; the newer exporter only
};

class Scopes {
 public:
  explicit Scopes(const pb::ModelProto& model);

  NodeScope of(const pb::NodeProto& node) const;
  // Whether the node is of a call for training that writes no `training_mode` of its own: the newer
  // exporter's files tell the two forms of a batch norm apart by the name of the call alone.
  static bool is_of_training_call(const pb::NodeProto& node);
  // Whether the node is of a detach(), which the newer exporter writes as an identity.
  static bool is_of_detach(const pb::NodeProto& node);
  // Of an embedding's rows: the one that is padding, if there is one, and whether gradients are
  // divided by how often a row is read.
  struct EmbeddingCall {
    std::int64_t padding = -1;
    bool scales_by_frequency = false;
  };
  static EmbeddingCall embedding_call(const pb::NodeProto& node);
  // The parameters and buffers of the call that the node was made of, as they stand there; none
  // where the file does not tell.
  std::vector<std::string> parameters(const pb::NodeProto& node) const;
  // Whether calls may have a parameter of this name.
  bool has_parameter(std::string_view name) const { return called_.contains(name); }

 private:
  void add_layers(std::string_view weight);
  std::string layer_of_name(std::string_view node) const;

  std::set<std::string, std::less<>> layers_;                   // that have weights
  std::map<std::string, std::string, std::less<>> parameters_;  // by their names in calls
  std::set<std::string, std::less<>> called_;                   // these parameters
};

// "val_12": a value inside of a layer, as the newer exporter names it.
bool is_counted_name(std::string_view name);

// Whether PyTorch would give this name to a parameter rather than to something that is computed.
bool is_parameter_name(std::string_view name, const pb::ModelProto& model);

// Whether the network computes the node. Those that an exporter writes for merged weights belong to
// no layer.
bool is_of_network(const pb::NodeProto& node);

}  // namespace pantala::onnx
