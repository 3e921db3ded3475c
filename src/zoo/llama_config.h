// The known configs of the Llama family, and what is wrong with one, for those who say where it
// came from.
#pragma once

#include <string>
#include <vector>

#include "pantala/zoo/llama.h"

namespace pantala::zoo {

struct LlamaPreset {
  std::string name, about;
  LlamaConfig config;
  std::string in_help = {};  // as Preset has it
};
const std::vector<LlamaPreset>& llama_configs();

// Every rule that the config breaks; empty if it is a model.
std::vector<std::string> problems_of(const LlamaConfig& config);

}  // namespace pantala::zoo
