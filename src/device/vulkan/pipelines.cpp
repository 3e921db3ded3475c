#include "device/vulkan/pipelines.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "io/file.h"
#include "pantala/error.h"

namespace pantala::device::vulkan {

namespace spirv = codegen::spirv;

std::filesystem::path pipeline_file(const std::filesystem::path& given,
                                    const vk::DeviceInfo& info) {
  if (given.empty()) return given;
  std::filesystem::path file = given;
  return file += fmt::format("-{:016x}", fnv1a(info.identity));
}

Pipelines::Pipelines(Context& context, const std::filesystem::path& file, Empty)
    : context_(context), file_(pipeline_file(file, context.info())) {}

// What was made before something fails is given back: the destructor is that of an empty one.
Pipelines::Pipelines(Context& context, const std::filesystem::path& file)
    : Pipelines(context, file, Empty{}) {
  const vk::DeviceFunctions& f = context_.functions();
  read_file();
  VkDescriptorSetLayoutBinding bindings[2] = {};
  for (std::uint32_t k = 0; k < 2; ++k) {
    bindings[k].binding = k;
    bindings[k].descriptorType =
        k == 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    bindings[k].descriptorCount = 1;
    bindings[k].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = 2;
  set.pBindings = bindings;
  context_.check(f.CreateDescriptorSetLayout(context_.device(), &set, nullptr, &set_layout_),
                 "a layout");
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  context_.check(f.CreatePipelineLayout(context_.device(), &layout, nullptr, &layout_), "a layout");
}

Pipelines::~Pipelines() {
  write_file();
  const vk::DeviceFunctions& f = context_.functions();
  for (const auto& [words, pipeline] : made_)
    f.DestroyPipeline(context_.device(), pipeline, nullptr);
  if (layout_) f.DestroyPipelineLayout(context_.device(), layout_, nullptr);
  if (set_layout_) f.DestroyDescriptorSetLayout(context_.device(), set_layout_, nullptr);
  if (cache_) f.DestroyPipelineCache(context_.device(), cache_, nullptr);
}

// The driver knows by the file's head whether it is its own.
void Pipelines::read_file() {
  std::string content;
  if (!file_.empty() && std::filesystem::exists(file_)) {
    try {
      content = io::read_file(file_.string(), std::uint64_t{256} << 20);
    } catch (const Error&) { content.clear(); }
  }
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  if (context_.functions().CreatePipelineCache(context_.device(), &info, nullptr, &cache_) !=
      VK_SUCCESS)
    cache_ = nullptr;
}

void Pipelines::write_file() noexcept {
  if (file_.empty() || !cache_ || made_.empty()) return;
  try {
    const vk::DeviceFunctions& f = context_.functions();
    std::size_t bytes = 0;
    f.GetPipelineCacheData(context_.device(), cache_, &bytes, nullptr);
    std::string content(bytes, '\0');
    if (f.GetPipelineCacheData(context_.device(), cache_, &bytes, content.data()) != VK_SUCCESS)
      return;
    content.resize(bytes);
    io::write_file(file_, content);
  } catch (...) {
    // It only saves time.
  }
}

VkPipeline Pipelines::get(const spirv::Code& code, std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = made_.find(code.words); found != made_.end()) return found->second;
  }
  const VkPipeline fresh = make(code, name);
  const std::lock_guard lock(mutex_);
  const auto [place, added] = made_.try_emplace(code.words, fresh);
  // Another thread was faster.
  if (!added) context_.functions().DestroyPipeline(context_.device(), fresh, nullptr);
  return place->second;
}

VkPipeline Pipelines::make(const spirv::Code& code, std::string_view name) {
  const vk::DeviceFunctions& f = context_.functions();
  const std::string what = fmt::format("kernel '{}'", name);
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code.words.size() * 4;
  module_info.pCode = code.words.data();
  VkShaderModule module = nullptr;
  context_.check(f.CreateShaderModule(context_.device(), &module_info, nullptr, &module), what);
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups{};
  subgroups.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroups.requiredSubgroupSize = static_cast<std::uint32_t>(context_.info().subgroup);
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  if (code.exchanges && context_.info().sizes_subgroups) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.pNext = &subgroups;
  }
  info.layout = layout_;
  VkPipeline pipeline = nullptr;
  const VkResult result =
      f.CreateComputePipelines(context_.device(), cache_, 1, &info, nullptr, &pipeline);
  f.DestroyShaderModule(context_.device(), module, nullptr);
  if (result != VK_SUCCESS)
    if (const std::string wrong = spirv::broken_rule(code.words); !wrong.empty())
      throw InternalError(fmt::format("SPIR-V of '{}': {}", name, wrong));
  context_.check(result, what);
  return pipeline;
}

}  // namespace pantala::device::vulkan
