// Exporters merge weights that are equal when the file is written: in a network that was not
// trained yet one tensor of ones is the weight of one norm and the running variance of another. For
// computing that is the same; for training each must be a tensor of its own again.
//
// PyTorch's older exporter leaves an `Identity` under the name of each weight that it merged, while
// weights that are tied in the network (one parameter of two layers) have one name only: an
// Identity whose result has a parameter's name is a parameter. The newer exporter lets the nodes
// read the merged tensor, and writes into each node of which call it is, with which parameters, and
// to which layer it belongs. Where the call is not there or not clear, a tensor of equal numbers
// that several layers have for their scale or bias is one of each, and running statistics and first
// states of recurrent layers belong to one layer always.
//
// Other tools merge files of the older exporter in place, too; where equal weights stand side by
// side nobody did, and what several nodes read is one weight. In a file that tells no layers each
// node has its own norm and bias.
#pragma once

#include <string>
#include <vector>

#include "onnx/proto.h"

namespace pantala::onnx {

// Every merged weight becomes an initialiser of its own; all else stays. Gives the names of weights
// that were taken apart without the file saying so. UnsupportedError where that would make far more
// of them than the file holds.
std::vector<std::string> separate_merged_weights(pb::ModelProto& model, const TensorPlace& source);

// Whether the input is no weight: running statistics, and the states that a recurrent layer begins
// with.
bool is_state_input(const pb::NodeProto& node, int input);

}  // namespace pantala::onnx
