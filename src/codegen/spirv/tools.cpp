// SPIRV-Tools: what they find wrong, and what modules look like for people.
#include <spirv-tools/libspirv.hpp>

#include "codegen/spirv/spirv.h"

namespace pantala::codegen::spirv {

std::string broken_rule(std::span<const std::uint32_t> words) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::string wrong;
  tools.SetMessageConsumer(
      [&](spv_message_level_t level, const char*, const spv_position_t& at, const char* message) {
        if (level <= SPV_MSG_ERROR)
          wrong += "word " + std::to_string(at.index) + ": " + std::string(message) + "\n";
      });
  spvtools::ValidatorOptions options;
  if (tools.Validate(words.data(), words.size(), options)) return "";
  return wrong.empty() ? "it is not valid" : wrong;
}

std::string disassembly(std::span<const std::uint32_t> words) {
  const spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::string text;
  tools.Disassemble(std::vector<std::uint32_t>(words.begin(), words.end()), &text,
                    SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES);
  return text;
}

}  // namespace pantala::codegen::spirv
