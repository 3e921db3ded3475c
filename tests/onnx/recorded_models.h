// The recorded models of tests/fixtures/onnx (record_models.py): files without the data of their
// large weights, which come from the filler.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/json.h"
#include "pantala/literal.h"

namespace pantala::tests {

struct RecordedModel {
  std::string name;
  std::vector<std::byte> file;  // with all weights
  std::map<std::string, Literal> inputs;
  io::OrderedJson outputs;
};
RecordedModel recorded_model(const std::string& name);
std::vector<std::string> recorded_models();

}  // namespace pantala::tests
