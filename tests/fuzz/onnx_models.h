// Small ONNX models for the fuzzer: a convolutional network, an attention block with computed
// shapes, operators whose options are inputs, and pointwise ones.
#pragma once

#include <onnx/onnx_pb.h>

#include <vector>

namespace pantala::tests {

std::vector<::onnx::ModelProto> onnx_models();

}  // namespace pantala::tests
