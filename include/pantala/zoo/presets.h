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
  LlamaSizes sizes = {};     // of the Llama family alone: the others have one size
};

struct Preset {
  std::string name;   // "resnet18"
  std::string about;  // one line
  Type item;          // of one item of the input, without the batch
  std::int64_t classes = 0;
  // A model with input, labels, loss and logits, as zoo::Model says. TypeError for an item that the
  // model cannot take.
  std::function<Model(const Request&)> make;
  // --- for programs that train it with data of any kind
  std::string in_help = {};  // what a list of models says of it; "": a neighbour's says it
  std::string takes = {};  // which images, where it does not take all of them, and whether it does
  std::function<bool(const Shape& item)> accepts = {};
  // How many positions of such an item have a class each; empty: an item has one class.
  std::function<std::int64_t(const Shape& item)> positions = {};
};

// In the order of their files.
const std::vector<Preset>& presets();
std::vector<std::string> preset_names();
// TypeError with the nearest name.
const Preset& preset(std::string_view name);

}  // namespace pantala::zoo
