#include "pantala/zoo/presets.h"

#include <fmt/format.h>

#include "base/text.h"
#include "pantala/error.h"
#include "zoo/model.h"

namespace pantala::zoo {

namespace {

void append(std::vector<Preset>& all, std::vector<Preset> more) {
  for (Preset& preset : more) all.push_back(std::move(preset));
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    append(list, mlp_presets());
    append(list, lenet_presets());
    append(list, resnet_presets());
    append(list, whisper_presets());
    append(list, llama_presets());
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
