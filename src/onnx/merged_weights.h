// Exporters merge weights that are equal when the file is written: in a network that was not
// trained yet one tensor of ones is the weight of one norm and the running variance of another. For
// computing that is the same; for training each must be a tensor of its own again.
//
// PyTorch's older exporter leaves an `Identity` under the name of each weight that it merged, while
// weights that are tied in the network (one parameter of two layers) have one name only: an
// Identity whose result has a parameter's name is a parameter. The newer exporter lets the nodes
// read the merged tensor, and writes into each node which layer it belongs to: a tensor of equal
// numbers that several layers have for their scale or bias is one of each, and running statistics
// belong to one layer always.
#pragma once

#include <string_view>

#include "onnx/proto.h"

namespace pantala::onnx {

// Every merged weight becomes an initialiser of its own; all else stays. UnsupportedError where
// that would make far more of them than the file holds.
void separate_merged_weights(pb::ModelProto& model, const TensorSource& source);

// Whether PyTorch would give this name to a parameter rather than to something that is computed.
bool is_parameter_name(std::string_view name, const pb::ModelProto& model);
// The layer of a node, "layer1.0.bn1", and the function that made it, where the exporter wrote
// that down (the newer one of PyTorch).
struct NodeScope {
  std::string layer, function;
};
NodeScope scope_of(const pb::NodeProto& node);
// Whether the network computes the node. Those that an exporter writes for merged weights belong to
// no layer.
bool is_of_network(const pb::NodeProto& node);

}  // namespace pantala::onnx
