// What a file lacks to be trained as PyTorch would train the network that it was made from.
#pragma once

#include <string>
#include <vector>

#include "onnx/proto.h"

namespace pantala::onnx {

// A line for each kind of thing, with the names of the first ones. Merged weights are separate
// already, those in `guessed` without the file saying so.
std::vector<std::string> training_notes(const pb::ModelProto& model, const TensorPlace& source,
                                        const std::vector<std::string>& guessed);

}  // namespace pantala::onnx
