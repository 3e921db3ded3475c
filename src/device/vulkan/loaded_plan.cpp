#include "device/vulkan/loaded_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/parallel.h"
#include "device/vulkan/facts.h"
#include "device/vulkan/faults.h"
#include "device/vulkan/watched.h"
#include "pantala/error.h"
#include "plan/dependencies.h"

namespace pantala::device::vulkan {

namespace spirv = codegen::spirv;

namespace {

constexpr std::int64_t kMaxRow = 16 << 10;  // that every device can bind
// Kernels with scratch in device memory run as many invocations as this has room for.
constexpr std::int64_t kScratch = 64 << 20;
constexpr std::int64_t kMostGroups = 64;
constexpr std::int64_t kMostItems = (std::int64_t{1} << 32) - 1;

std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool checks_modules() {
#ifdef NDEBUG
  return faults().watches;
#else
  return true;
#endif
}

// As host addresses are kept; the first base is the arena, the second the constants.
std::byte* address(const Block& block) { return reinterpret_cast<std::byte*>(block.address()); }

}  // namespace

LoadedPlan::LoadedPlan(plan::Plan plan, Context& context, Pipelines& pipelines, Gate& gate, Empty)
    : plan_(std::move(plan)),
      context_(context),
      pipelines_(pipelines),
      gate_(gate),
      constants_(context, std::ssize(plan_.constants), Block::Kind::device),
      binder_(plan_, plan_.constants.empty() ? nullptr : address(constants_)) {}

// What was made before something fails is given back: the destructor is that of an empty one.
LoadedPlan::LoadedPlan(plan::Plan plan, Context& context, Pipelines& pipelines, Gate& gate,
                       int threads)
    : LoadedPlan(std::move(plan), context, pipelines, gate, Empty{}) {
  check_dtypes();
  generate(threads);
  lay_out();
  if (!plan_.constants.empty()) write_block(constants_, plan_.constants);
  commands_ = context_.new_commands();
  make_descriptors();
  context_.begin(commands_, false);
  record(commands_, false);
  context_.end(commands_);
  if (faults().watches) check_barriers();
}

LoadedPlan::~LoadedPlan() {
  const vk::DeviceFunctions& f = context_.functions();
  context_.come_to_rest();
  context_.free_commands(commands_);
  context_.free_commands(timed_);
  if (queries_) f.DestroyQueryPool(context_.device(), queries_, nullptr);
  if (pool_) f.DestroyDescriptorPool(context_.device(), pool_, nullptr);
}

// Few GPUs compute in f64 at a speed that anybody wants: what is given in it is not for them.
void LoadedPlan::check_dtypes() const {
  for (const plan::Buffer& buffer : plan_.buffers)
    if (plan::is_bound(buffer.storage) && buffer.dtype == DType::f64 && buffer.elements > 1)
      throw UnsupportedError(fmt::format(
          "plan '{}': '{}' is f64; the device vulkan computes in f32: use that, or the CPU",
          plan_.name, buffer.name));
}

void LoadedPlan::generate(int threads) {
  facts_ = facts_of(plan_);
  code_.resize(plan_.units.size());
  pipeline_.resize(plan_.units.size());
  spirv::Target target = code_target(context_.info());
  if (faults().plain)
    target.storage8 = target.storage16 = target.float64 = false, target.subgroup = 0;
  parallel_for(plan_.units.size(), threads, [&](std::size_t k) {
    const plan::Unit& unit = plan_.units[k];
    if (!unit.kernel)
      throw DeviceError(fmt::format("plan '{}': unit '{}' is compiled code for {}", plan_.name,
                                    unit.entry, plan_.target));
    code_[k] =
        spirv::emit(faults().is_perturbed(unit.entry) ? perturbed(*unit.kernel) : *unit.kernel,
                    target, facts_[k]);
    if (checks_modules())
      if (const std::string wrong = spirv::broken_rule(code_[k].words); !wrong.empty())
        throw InternalError(fmt::format("SPIR-V of '{}': {}", unit.entry, wrong));
    pipeline_[k] = pipelines_.get(code_[k], unit.entry);
    code_[k].words = {};
  });
}

void LoadedPlan::lay_out() {
  uniforms_.resize(plan_.uniforms.size());
  // All launches run at once unless an edge says otherwise, but for those that share scratch.
  for (plan::Launch& launch : plan_.launches) launch.serial = false;
  barrier_ = plan::barriers(plan_.launches);
  bool scratch_in_use = false;
  for (std::size_t k = 0; k < plan_.launches.size(); ++k) {
    const plan::Launch& launch = plan_.launches[k];
    first_.push_back(dispatches_.size());
    if (barrier_[k]) scratch_in_use = false;
    if (code_[launch.unit].scratch_bytes > 0) {
      barrier_[k] = barrier_[k] || scratch_in_use;
      scratch_in_use = true;
    }
    for (const plan::ArgumentSet& set : launch.sets)
      if (set.items > 0) add_set(launch, set);
  }
  first_.push_back(dispatches_.size());
  // The binding has one size: the last row must have room for it.
  row_bytes_ = std::max<std::int64_t>(row_bytes_, 16);
  table_.resize(table_.size() + static_cast<std::size_t>(row_bytes_ / 8));
  rows_ = Block(context_, std::ssize(table_) * 8, Block::Kind::device);
  uniform_block_ = Block(context_, std::ssize(uniforms_) * 8, Block::Kind::device);
  if (scratch_needed_ > 0) scratch_ = Block(context_, scratch_needed_, Block::Kind::device);
}

void LoadedPlan::add_set(const plan::Launch& launch, const plan::ArgumentSet& set) {
  const plan::Unit& unit = plan_.units[launch.unit];
  const std::int64_t bytes = rounded(std::int64_t{8} * spirv::row_slots(*unit.kernel), 16);
  if (bytes > kMaxRow)
    throw UnsupportedError(
        fmt::format("Vulkan: kernel '{}' has {} arguments, at most {} are "
                    "possible",
                    unit.entry, spirv::row_slots(*unit.kernel), kMaxRow / 8));
  row_bytes_ = std::max(row_bytes_, bytes);
  const std::int64_t row = rounded(std::ssize(table_) * 8,
                                   std::max<std::int64_t>(context_.info().uniform_alignment, 16));
  Dispatch dispatch{.unit = launch.unit, .row = static_cast<std::uint32_t>(row)};
  spread(dispatch, set.items);
  table_.resize(static_cast<std::size_t>((row + bytes) / 8));
  std::int64_t* slots = table_.data() + row / 8;
  slots[spirv::kStatusSlot] = static_cast<std::int64_t>(gate_.status().address());
  slots[spirv::kItemsSlot] = set.items;
  slots += spirv::kRowHead + std::ssize(set.buffers);
  for (std::size_t k = 0; k < set.params.size(); ++k) {
    const plan::Scalar& scalar = set.params[k];
    slots[k] = scalar.value;
    if (!facts_[launch.unit].params[k].in_memory()) continue;
    // The number of its slot for now; it becomes an address.
    if (scalar.is_uniform) continue;
    slots[k] = std::ssize(uniforms_);
    uniforms_.push_back(scalar.value);
  }
  dispatches_.push_back(dispatch);
}

// Groups in three directions, no more in each than the device takes.
void LoadedPlan::spread(Dispatch& dispatch, std::int64_t items) {
  const spirv::Code& code = code_[dispatch.unit];
  if (items > kMostItems)
    throw UnsupportedError(
        fmt::format("Vulkan: a kernel of {} items, at most {} are possible", items, kMostItems));
  std::int64_t groups =
      code.group_per_item ? items : (items + code.invocations - 1) / code.invocations;
  if (code.scratch_bytes > 0) {
    const std::int64_t of_group = code.scratch_bytes * code.invocations;
    groups = std::min({groups, kMostGroups, std::max<std::int64_t>(1, kScratch / of_group)});
    scratch_needed_ = std::max(scratch_needed_, groups * of_group);
  }
  const std::int64_t most = std::min<std::int64_t>(context_.info().max_groups, 65535);
  for (std::uint32_t& size : dispatch.groups) {
    size = static_cast<std::uint32_t>(std::min(groups, most));
    groups = (groups + size - 1) / size;
  }
}

void LoadedPlan::make_descriptors() {
  const vk::DeviceFunctions& f = context_.functions();
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = 1;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  context_.check(f.CreateDescriptorPool(context_.device(), &pool, nullptr, &pool_), "descriptors");
  const VkDescriptorSetLayout layout = pipelines_.set_layout();
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = pool_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  context_.check(f.AllocateDescriptorSets(context_.device(), &info, &set_), "descriptors");
  const VkDescriptorBufferInfo buffers[] = {
      {rows_.buffer(), 0, static_cast<VkDeviceSize>(row_bytes_)},
      {gate_.buffer(), 0, Gate::kBytes}};
  VkWriteDescriptorSet writes[2] = {};
  for (std::uint32_t k = 0; k < 2; ++k) {
    writes[k].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[k].dstSet = set_;
    writes[k].dstBinding = k;
    writes[k].descriptorCount = 1;
    writes[k].descriptorType = sizes[k].type;
    writes[k].pBufferInfo = &buffers[k];
  }
  f.UpdateDescriptorSets(context_.device(), 2, writes, 0, nullptr);
}

void LoadedPlan::record(VkCommandBuffer commands, bool timed) {
  const vk::DeviceFunctions& f = context_.functions();
  const auto stamp = [&](std::size_t number) {
    f.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                        static_cast<std::uint32_t>(number));
  };
  if (timed) {
    f.CmdResetQueryPool(commands, queries_, 0,
                        static_cast<std::uint32_t>(plan_.launches.size() + 1));
    stamp(0);
  }
  for (std::size_t k = 0; k < plan_.launches.size(); ++k) {
    // A launch that is timed runs alone.
    if (barrier_[k] || (timed && k > 0)) context_.barrier(commands);
    record_launch(commands, k);
    if (timed) stamp(k + 1);
  }
}

void LoadedPlan::check_barriers() const {
  const std::vector<bool> of_dispatches = recorded_barriers(commands_);
  std::vector<bool> before(plan_.launches.size());
  std::optional<std::size_t> in_scratch;  // the last launch, which needs its scratch to itself
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (first_[k] == first_[k + 1]) continue;
    before[k] = of_dispatches.at(first_[k]);
    if (before[k]) in_scratch.reset();
    if (code_[plan_.launches[k].unit].scratch_bytes == 0) continue;
    if (in_scratch)
      throw InternalError(fmt::format("plan '{}': launches {} and {} share scratch at once",
                                      plan_.name, *in_scratch, k));
    in_scratch = k;
  }
  plan::check_barriers(plan_, before);
}

void LoadedPlan::record_launch(VkCommandBuffer commands, std::size_t launch) {
  const vk::DeviceFunctions& f = context_.functions();
  if (first_[launch] == first_[launch + 1]) return;
  f.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                    pipeline_[plan_.launches[launch].unit]);
  for (std::size_t k = first_[launch]; k < first_[launch + 1]; ++k) {
    const Dispatch& dispatch = dispatches_[k];
    f.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1,
                            &set_, 1, &dispatch.row);
    f.CmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  }
}

void LoadedPlan::write_block(const Block& block, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  context_.wait();
  if (block.view()) {
    std::memcpy(block.view(), bytes.data(), bytes.size());
    return;
  }
  const Block staging(context_, std::ssize(bytes), Block::Kind::host);
  std::memcpy(staging.view(), bytes.data(), bytes.size());
  const VkBufferCopy region{0, 0, bytes.size()};
  context_.wait(context_.once([&](VkCommandBuffer commands) {
    context_.functions().CmdCopyBuffer(commands, staging.buffer(), block.buffer(), 1, &region);
  }));
}

// The addresses of everything, once memory is bound to the plan.
void LoadedPlan::write_rows() {
  std::vector<std::int64_t> table = table_;
  std::size_t next = 0;
  for (const plan::Launch& launch : plan_.launches)
    for (const plan::ArgumentSet& set : launch.sets) {
      if (set.items == 0) continue;
      std::int64_t* slots = table.data() + dispatches_[next++].row / 8;
      slots[spirv::kScratchSlot] = static_cast<std::int64_t>(scratch_.address());
      for (std::size_t k = 0; k < set.buffers.size(); ++k) {
        const plan::Buffer& buffer = plan_.buffers[set.buffers[k]];
        const std::byte* base = binder_.bases()[Binder::base_of(buffer)];
        slots[spirv::kRowHead + static_cast<int>(k)] =
            static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base)) + buffer.offset;
      }
      slots += spirv::kRowHead + std::ssize(set.buffers);
      for (std::size_t k = 0; k < set.params.size(); ++k)
        if (facts_[launch.unit].params[k].in_memory())
          slots[k] = static_cast<std::int64_t>(uniform_block_.address()) + slots[k] * 8;
    }
  write_block(rows_, std::as_bytes(std::span(table)));
}

// Of everything that changes from run to run only what is not there already is sent. A run that is
// under way has its own.
std::uint64_t LoadedPlan::submit(const RunArguments& arguments, const Memory& memory,
                                 VkCommandBuffer commands) {
  const std::span own = std::span(uniforms_).first(plan_.uniforms.size());
  const bool same = uniforms_known_ && std::ranges::equal(own, arguments.uniforms);
  if (same && !arguments.is_behind && gate_.is_open() && arguments.before.empty())
    return context_.submit(std::span(&commands, 1));
  std::ranges::copy(arguments.uniforms, own.begin());
  uniforms_known_ = false;
  const std::uint64_t ticket = context_.before(
      [&](VkCommandBuffer first) {
        if (!same) update_uniforms(first);
        if (arguments.is_behind)
          gate_.stay_behind(first, arguments, memory);
        else
          gate_.open(first);
        for (const Move& move : arguments.before) memory.record_copy(first, move.from, move.to);
      },
      commands);
  uniforms_known_ = true;
  gate_.note_submitted(!arguments.is_behind);
  return ticket;
}

void LoadedPlan::update_uniforms(VkCommandBuffer commands) const {
  const auto bytes = std::as_bytes(std::span(uniforms_));
  constexpr std::size_t kAtOnce = 65536;
  for (std::size_t at = 0; at < bytes.size(); at += kAtOnce)
    context_.functions().CmdUpdateBuffer(commands, uniform_block_.buffer(), at,
                                         std::min(kAtOnce, bytes.size() - at), bytes.data() + at);
}

Ticket LoadedPlan::run(const RunArguments& arguments, const Memory& memory) {
  if (binder_.bind(plan_, arguments, memory)) rows_known_ = false;
  if (!rows_known_) write_rows();
  rows_known_ = true;
  if (!arguments.times) return {submit(arguments, memory, commands_)};
  run_timed(arguments, memory);
  return {context_.last_ticket()};
}

void LoadedPlan::run_timed(const RunArguments& arguments, const Memory& memory) {
  RunTimes& times = *arguments.times;
  const vk::DeviceFunctions& f = context_.functions();
  const std::size_t launches = plan_.launches.size();
  const auto stamps = static_cast<std::uint32_t>(launches + 1);
  if (!timed_) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = stamps;
    context_.check(f.CreateQueryPool(context_.device(), &info, nullptr, &queries_), "timestamps");
    timed_ = context_.new_commands();
    context_.begin(timed_, false);
    record(timed_, context_.info().timestamp_ns > 0);
    context_.end(timed_);
  }
  times.launches.resize(launches);
  times.shares.resize(launches);
  times.begin = std::chrono::steady_clock::now();
  context_.wait(submit(arguments, memory, timed_));
  times.duration = std::chrono::nanoseconds(std::chrono::steady_clock::now() - times.begin).count();
  std::vector<std::uint64_t> ticks(stamps);
  if (context_.info().timestamp_ns > 0)
    context_.check(
        f.GetQueryPoolResults(context_.device(), queries_, 0, stamps, stamps * 8ULL, ticks.data(),
                              8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "timestamps");
  const auto since = [&](std::size_t k) {
    return static_cast<std::int64_t>(static_cast<double>(ticks[k] - ticks[0]) *
                                     context_.info().timestamp_ns);
  };
  for (std::size_t k = 0; k < launches; ++k)
    times.shares[k] = {since(k), since(k + 1), plan_.launches[k].items()};
  times.sum_up();
}

}  // namespace pantala::device::vulkan
