// What every kernel looks at before it does anything: whether the runs before it went well. A run
// that is started behind others copies the status word and the guard's flag of the one before into
// it; a run that was left out has left its guard as it was, so flags of earlier runs stay beside.
#pragma once

#include "device/device.h"
#include "device/vulkan/memory.h"

namespace pantala::device::vulkan {

class Gate {
 public:
  static constexpr VkDeviceSize kBytes = 8;  // codegen::spirv::kGoesOn

  explicit Gate(Context& context);
  VkBuffer buffer() const { return gate_.buffer(); }
  // The status word in front, which the host sees.
  const Block& status() const { return status_; }

  // Whether kernels of a run that comes behind none go on as it is.
  bool is_open() const { return is_open_; }
  // Into commands, which say whether they were submitted in the end.
  void note_submitted(bool open) { is_open_ = open; }
  void open(VkCommandBuffer commands);
  void stay_behind(VkCommandBuffer commands, const RunArguments& arguments, const Memory& memory);

 private:
  Context& context_;
  Block status_, gate_;
  bool is_open_ = false;
  VkDeviceSize next_flag_ = 0;
};

}  // namespace pantala::device::vulkan
