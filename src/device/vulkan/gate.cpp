#include "device/vulkan/gate.h"

#include <cstring>

#include "codegen/spirv/spirv.h"

namespace pantala::device::vulkan {

namespace {

constexpr std::int64_t kStatusBytes = 64;
// The status comes first. There are more flags than runs can be behind one another and not looked
// at, so the flag that is overwritten is of a run that went well.
constexpr VkDeviceSize kFlagsAt = 4, kFlags = 4;

}  // namespace

Gate::Gate(Context& context)
    : context_(context),
      status_(context, kStatusBytes, Block::Kind::host),
      gate_(context, kBytes, Block::Kind::device) {
  std::memset(status_.view(), 0, static_cast<std::size_t>(kStatusBytes));
}

void Gate::open(VkCommandBuffer commands) {
  if (is_open_) return;
  context_.functions().CmdUpdateBuffer(commands, gate_.buffer(), 0, kBytes,
                                       &codegen::spirv::kGoesOn);
}

void Gate::stay_behind(VkCommandBuffer commands, const RunArguments& arguments,
                       const Memory& memory) {
  const vk::DeviceFunctions& f = context_.functions();
  const VkBufferCopy status{0, 0, 4};
  f.CmdCopyBuffer(commands, status_.buffer(), gate_.buffer(), 1, &status);
  if (arguments.guard.bytes > 0) {
    const auto [buffer, offset] = memory.place(arguments.guard, "guard");
    const VkBufferCopy guard{offset, kFlagsAt + next_flag_, 1};
    f.CmdCopyBuffer(commands, buffer, gate_.buffer(), 1, &guard);
    next_flag_ = (next_flag_ + 1) % kFlags;
  }
  if (arguments.status_before.bytes > 0) {
    const auto [buffer, offset] = memory.place(arguments.status_before, "status");
    const VkBufferCopy kept{0, offset, 4};
    f.CmdCopyBuffer(commands, status_.buffer(), buffer, 1, &kept);
  }
}

}  // namespace pantala::device::vulkan
