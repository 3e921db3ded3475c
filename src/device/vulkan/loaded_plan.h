// A plan on a Vulkan device: pipelines, the table of arguments, and the command buffer of a whole
// run, which is recorded once. Where things lie stands in the table, and scalars that change from
// step to step in a block that a run updates, so neither changes the commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/spirv/spirv.h"
#include "device/host_memory.h"
#include "device/vulkan/gate.h"
#include "device/vulkan/memory.h"
#include "device/vulkan/pipelines.h"

namespace pantala::device::vulkan {

class LoadedPlan {
 public:
  // Kernels are compiled by so many threads.
  LoadedPlan(plan::Plan plan, Context& context, Pipelines& pipelines, Gate& gate, int threads);
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  const plan::Plan& plan() const { return plan_; }
  const ArenaGaps& gaps() const { return binder_.gaps(); }
  std::int64_t scratch_bytes() const { return scratch_.bytes(); }
  std::int64_t constant_bytes() const { return std::ssize(plan_.constants); }

  // Starts a run: returns once it is submitted, or, if times are asked for, once it has finished.
  Ticket run(const RunArguments& arguments, const Memory& memory);

 private:
  struct Empty {};
  LoadedPlan(plan::Plan plan, Context& context, Pipelines& pipelines, Gate& gate, Empty);
  struct Dispatch {  // of one argument set
    std::uint32_t unit = 0;
    std::uint32_t row = 0;  // its byte in the table
    std::uint32_t groups[3] = {1, 1, 1};
  };

  void check_dtypes() const;
  void generate(int threads);
  void lay_out();
  void add_set(const plan::Launch& launch, const plan::ArgumentSet& set);
  void spread(Dispatch& dispatch, std::int64_t items);
  void make_descriptors();
  void record(VkCommandBuffer commands, bool timed);
  // InternalError if a launch may run beside one that it must wait for.
  void check_barriers() const;
  void record_launch(VkCommandBuffer commands, std::size_t launch);
  void write_rows();
  void write_block(const Block& block, std::span<const std::byte> bytes);
  std::uint64_t submit(const RunArguments& arguments, const Memory& memory,
                       VkCommandBuffer commands);
  void update_uniforms(VkCommandBuffer commands) const;
  void run_timed(const RunArguments& arguments, const Memory& memory);

  plan::Plan plan_;
  Context& context_;
  Pipelines& pipelines_;
  Gate& gate_;
  std::vector<codegen::spirv::Facts> facts_;
  std::vector<codegen::spirv::Code> code_;  // by unit; the words are given up
  std::vector<VkPipeline> pipeline_;        // by unit
  std::vector<bool> barrier_;               // before each launch
  std::vector<std::size_t> first_;          // dispatch of each launch, and one more
  std::vector<Dispatch> dispatches_;
  std::vector<std::int64_t> table_;  // slots of all rows
  // As they are on the device: the plan's own, and those that are the same in every run.
  std::vector<std::int64_t> uniforms_;
  std::int64_t scratch_needed_ = 0;
  std::int64_t row_bytes_ = 0;  // of the longest row
  Block constants_, rows_, uniform_block_, scratch_;
  Binder binder_;
  VkDescriptorPool pool_ = nullptr;
  VkDescriptorSet set_ = nullptr;
  VkCommandBuffer commands_ = nullptr, timed_ = nullptr;
  VkQueryPool queries_ = nullptr;
  bool uniforms_known_ = false;  // whether the device has them
  bool rows_known_ = false;      // the same of the table
};

}  // namespace pantala::device::vulkan
