#include "pantala/zoo/presets.h"

#include <fmt/format.h>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::zoo {

// One file each, in the order of the table.
std::vector<Preset> mlp_presets();
std::vector<Preset> lenet_presets();
std::vector<Preset> resnet_presets();
std::vector<Preset> whisper_presets();
std::vector<Preset> llama_presets();

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const auto& of_file :
         {mlp_presets, lenet_presets, resnet_presets, whisper_presets, llama_presets})
      for (Preset& preset : of_file()) list.push_back(std::move(preset));
    return list;
  }();
  return all;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

const Preset& preset(std::string_view name) {
  for (const Preset& preset : presets())
    if (preset.name == name) return preset;
  throw TypeError(
      fmt::format("there is no model '{}'{}", name, did_you_mean(name, preset_names())));
}

}  // namespace pantala::zoo
