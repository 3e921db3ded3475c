// What is wrong with a config, for those who say where it came from.
#pragma once

#include <string>
#include <vector>

#include "pantala/zoo/llama.h"

namespace pantala::zoo {

// Every rule that the config breaks; empty if it is a model.
std::vector<std::string> problems_of(const LlamaConfig& config);

}  // namespace pantala::zoo
