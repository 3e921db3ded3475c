// The models of the zoo by name, for programs that let their users choose one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/zoo.h"

namespace pantala::zoo {

// What is asked of a model. What is not said is the preset's own.
struct Request {
  std::int64_t batch = 1;
  Shape item = {};           // of one item of the input, without the batch; rank 0: the preset's
  std::int64_t classes = 0;  // of the output (of a language model: its vocabulary); 0: the preset's
  bool training = true;      // false: evaluation, with running statistics and without dropout
};

struct Preset {
  std::string name;   // "resnet18"
  std::string about;  // one line
  Type item;          // of one item of the input, without the batch
  std::int64_t classes = 0;
  // A model with input, labels, loss and logits, as zoo::Model says. TypeError for an item that the
  // model cannot take.
  std::function<Model(const Request&)> make;
};

// In the order of their files.
const std::vector<Preset>& presets();
std::vector<std::string> preset_names();
// TypeError with the nearest name.
const Preset& preset(std::string_view name);

}  // namespace pantala::zoo
