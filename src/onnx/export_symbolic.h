// A file for any batch size out of the files of two: where they differ, and how, tells what depends
// on the batch.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "onnx/proto.h"

namespace pantala::onnx {

// The name of the symbolic size.
inline constexpr const char* kBatchName = "batch";
// Two sizes that no size of a model is by chance, and above what is written as data (64 elements).
inline constexpr std::int64_t kOneBatch = 67, kOtherBatch = 71;

// Both are of the same model, for batches of kOneBatch and kOtherBatch; only the first one needs
// the data of `weights`. UnsupportedError, with what is in the way, if the two differ in more than
// sizes that are multiples of the batch.
void make_batch_symbolic(pb::ModelProto& one, const pb::ModelProto& other,
                         const std::set<std::string>& weights);

}  // namespace pantala::onnx
