// The recorded transformers of tests/fixtures/onnx, written with the layers of the library and from
// the zoo: what their files are compared with.
#pragma once

#include <string>
#include <vector>

#include "pantala/graph.h"

namespace pantala::tests {

struct Counterpart {
  std::string name;    // of the fixture; NAME_dynamo is the same model
  std::string output;  // of the graph and of the file
  std::int64_t batch = 0, heads = 0, sequence = 0;
  Graph (*make)() = nullptr;
};
const std::vector<Counterpart>& counterparts();

}  // namespace pantala::tests
