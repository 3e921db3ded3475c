// Compiled kernels of a device. The same code is compiled once, for as long as it is there; what
// the driver can keep of its work is kept in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/spirv/spirv.h"
#include "device/vulkan/context.h"

namespace pantala::device::vulkan {

// A file of its own for every device and driver: beside the given one, which is none if it is "".
std::filesystem::path pipeline_file(const std::filesystem::path& given, const vk::DeviceInfo& info);

class Pipelines {
 public:
  // The given file as pipeline_file() has it; it may be missing.
  Pipelines(Context& context, const std::filesystem::path& file);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  // Any thread may ask. The pipeline is there as long as the device.
  VkPipeline get(const codegen::spirv::Code& code, std::string_view name);

 private:
  struct Empty {};
  Pipelines(Context& context, const std::filesystem::path& file, Empty);
  void read_file();
  void write_file() noexcept;
  VkPipeline make(const codegen::spirv::Code& code, std::string_view name);
  Context& context_;
  const std::filesystem::path file_;
  VkPipelineCache cache_ = nullptr;
  VkDescriptorSetLayout set_layout_ = nullptr;
  VkPipelineLayout layout_ = nullptr;
  std::mutex mutex_;
  std::map<std::vector<std::uint32_t>, VkPipeline> made_;
};

}  // namespace pantala::device::vulkan
