#include "device/vulkan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device/guards.h"
#include "device/vulkan/faults.h"
#include "pantala/error.h"

namespace pantala::device::vulkan {

namespace {

constexpr std::int64_t kHalf = 4 << 20;  // bytes of one half of the staging buffer
constexpr std::int64_t kMargin = 4096;
constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kReached = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                           VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Block::Block(Context& context, std::int64_t bytes, Kind kind) : context_(&context), bytes_(bytes) {
  try {
    create(std::max<std::int64_t>(rounded(bytes), 64), kind);
  } catch (...) {
    release();
    throw;
  }
}

void Block::create(std::int64_t bytes, Kind kind) {
  const vk::DeviceFunctions& f = context_->functions();
  const std::string what = fmt::format("memory of {} bytes", bytes);
  if (const std::int64_t most = context_->info().max_allocation; bytes > most)
    throw DeviceError(
        fmt::format("vulkan, {}: {} are more than the device gives at once: at most {} bytes "
                    "(maxMemoryAllocationSize)",
                    context_->info().name, what, most));
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  context_->check(f.CreateBuffer(context_->device(), &info, nullptr, &buffer_), what);
  VkMemoryRequirements needs{};
  f.GetBufferMemoryRequirements(context_->device(), buffer_, &needs);
  const bool direct = context_->info().integrated && !faults().staging;
  const auto first_of = [&](std::initializer_list<VkMemoryPropertyFlags> wishes) {
    std::optional<std::uint32_t> type;
    for (const VkMemoryPropertyFlags flags : wishes)
      if (!type) type = context_->memory_type(needs.memoryTypeBits, flags);
    if (!type) context_->check(VK_ERROR_OUT_OF_DEVICE_MEMORY, what);
    return *type;
  };
  const std::uint32_t type =
      kind == Kind::host ? first_of({kReached | kCached, kReached})
      : direct           ? first_of({kLocal | kReached | kCached, kLocal | kReached, kLocal, 0})
                         : first_of({kLocal, 0});
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  context_->check(f.AllocateMemory(context_->device(), &allocate, nullptr, &memory_), what);
  context_->check(f.BindBufferMemory(context_->device(), buffer_, memory_, 0), what);
  const bool is_reached = context_->memory_type(std::uint32_t{1} << type, kReached) == type;
  if (is_reached && (kind == Kind::host || direct)) {
    void* mapped = nullptr;
    context_->check(f.MapMemory(context_->device(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped),
                    what + " for the host");
    view_ = static_cast<std::byte*>(mapped);
  }
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = buffer_;
  address_ = f.GetBufferDeviceAddress(context_->device(), &address);
}

void Block::release() noexcept {
  if (!context_) return;
  const vk::DeviceFunctions& f = context_->functions();
  if (buffer_) f.DestroyBuffer(context_->device(), buffer_, nullptr);
  if (memory_) f.FreeMemory(context_->device(), memory_, nullptr);
  context_ = nullptr;
  buffer_ = nullptr;
  memory_ = nullptr;
}

Block::Block(Block&& other) noexcept { *this = std::move(other); }

Block& Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  release();
  context_ = std::exchange(other.context_, nullptr);
  buffer_ = std::exchange(other.buffer_, nullptr);
  memory_ = std::exchange(other.memory_, nullptr);
  address_ = std::exchange(other.address_, 0);
  view_ = std::exchange(other.view_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Memory::Memory(Context& context, bool sentinels)
    : context_(context), margin_(sentinels ? kMargin : 0) {}

MemoryId Memory::allocate(std::int64_t bytes, Block::Kind kind) {
  if (bytes < 0) throw DeviceError(fmt::format("{} bytes of memory are asked for", bytes));
  Entry entry{Block(context_, bytes + 2 * margin_, kind), bytes};
  try {
    clear(entry);
  } catch (...) {
    context_.come_to_rest();  // it may be written to
    throw;
  }
  const MemoryId id{++last_id_};
  entries_.emplace(id, std::move(entry));
  allocated_ += bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return id;
}

void Memory::clear(const Entry& entry) {
  fill(entry.block, 0, entry.block.bytes(), std::byte{0});
  if (margin_ > 0) {
    std::vector<std::byte> pattern(static_cast<std::size_t>(margin_));
    write_sentinels(pattern);
    upload(entry.block, 0, pattern);
    upload(entry.block, margin_ + entry.bytes, pattern);
  }
}

void Memory::free(MemoryId memory) {
  const Entry& entry = find(memory, "free");
  context_.come_to_rest();  // a run may still use it
  allocated_ -= entry.bytes;
  ++generation_;
  entries_.erase(memory);
}

const Memory::Entry& Memory::find(MemoryId memory, std::string_view what) const {
  const auto found = entries_.find(memory);
  if (found == entries_.end())
    throw TypeError(fmt::format("{}: there is no memory {}", what, memory.id));
  return found->second;
}

std::byte* Memory::view(MemoryId memory) const {
  std::byte* view = find(memory, "host view").block.view();
  return view ? view + margin_ : nullptr;
}

std::byte* Memory::at(const Slice& slice, std::string_view what) const {
  const Entry& entry = find(slice.memory, what);
  if (slice.offset < 0 || slice.bytes < 0 || slice.offset > entry.bytes ||
      slice.bytes > entry.bytes - slice.offset)
    throw TypeError(fmt::format("{}: {} bytes from byte {} of a memory of {} bytes", what,
                                slice.bytes, slice.offset, entry.bytes));
  return reinterpret_cast<std::byte*>(entry.block.address() +
                                      static_cast<std::uint64_t>(margin_ + slice.offset));
}

void Memory::fill(const Block& block, std::int64_t offset, std::int64_t bytes, std::byte value) {
  if (bytes == 0) return;
  if (block.view()) {
    std::memset(block.view() + offset, static_cast<int>(value), static_cast<std::size_t>(bytes));
    return;
  }
  // Whole words: blocks are made of them.
  const auto word = static_cast<std::uint32_t>(value) * 0x01010101U;
  context_.once([&](VkCommandBuffer commands) {
    context_.functions().CmdFillBuffer(commands, block.buffer(), static_cast<VkDeviceSize>(offset),
                                       static_cast<VkDeviceSize>(rounded(bytes)), word);
  });
}

void Memory::upload(const Block& block, std::int64_t offset, std::span<const std::byte> from) {
  if (block.view()) {
    context_.wait();
    std::memcpy(block.view() + offset, from.data(), from.size());
    return;
  }
  if (!staging_.view()) staging_ = Block(context_, 2 * kHalf, Block::Kind::host);
  while (!from.empty()) {
    const auto part = from.first(std::min(from.size(), static_cast<std::size_t>(kHalf)));
    half_ = 1 - half_;
    context_.wait(staging_ticket_[half_]);
    std::memcpy(staging_.view() + half_ * kHalf, part.data(), part.size());
    const VkBufferCopy region{static_cast<VkDeviceSize>(half_ * kHalf),
                              static_cast<VkDeviceSize>(offset), part.size()};
    staging_ticket_[half_] = context_.once([&](VkCommandBuffer commands) {
      context_.functions().CmdCopyBuffer(commands, staging_.buffer(), block.buffer(), 1, &region);
    });
    offset += std::ssize(part);
    from = from.subspan(part.size());
  }
}

void Memory::download(const Block& block, std::int64_t offset, std::span<std::byte> to) {
  if (block.view()) {
    context_.wait();
    std::memcpy(to.data(), block.view() + offset, to.size());
    return;
  }
  if (!staging_.view()) staging_ = Block(context_, 2 * kHalf, Block::Kind::host);
  while (!to.empty()) {
    const auto part = to.first(std::min(to.size(), static_cast<std::size_t>(kHalf)));
    half_ = 1 - half_;
    context_.wait(staging_ticket_[half_]);
    const VkBufferCopy region{static_cast<VkDeviceSize>(offset),
                              static_cast<VkDeviceSize>(half_ * kHalf), part.size()};
    staging_ticket_[half_] = context_.once([&](VkCommandBuffer commands) {
      context_.functions().CmdCopyBuffer(commands, block.buffer(), staging_.buffer(), 1, &region);
    });
    context_.wait(staging_ticket_[half_]);
    std::memcpy(part.data(), staging_.view() + half_ * kHalf, part.size());
    offset += std::ssize(part);
    to = to.subspan(part.size());
  }
}

void Memory::write(const Slice& to, std::span<const std::byte> from) {
  at(to, "write");
  if (std::ssize(from) != to.bytes)
    throw TypeError(fmt::format("write: {} bytes are given for {}", from.size(), to.bytes));
  if (!from.empty()) upload(find(to.memory, "write").block, margin_ + to.offset, from);
}

void Memory::read(const Slice& from, std::span<std::byte> to) {
  at(from, "read");
  if (std::ssize(to) != from.bytes)
    throw TypeError(
        fmt::format("read: there is room for {} bytes, {} are asked for", to.size(), from.bytes));
  if (!to.empty()) download(find(from.memory, "read").block, margin_ + from.offset, to);
}

void Memory::copy(const Slice& from, const Slice& to) {
  const auto* source = at(from, "copy");
  const auto* target = at(to, "copy");
  if (from.bytes != to.bytes)
    throw TypeError(fmt::format("copy: {} bytes to a place of {}", from.bytes, to.bytes));
  if (from.bytes == 0) return;
  // Copies of a queue may not overlap.
  if (source < target + to.bytes && target < source + from.bytes) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(from.bytes));
    read(from, bytes);
    return write(to, bytes);
  }
  context_.once([&](VkCommandBuffer commands) { record_copy(commands, from, to); });
}

Memory::Place Memory::place(const Slice& slice, std::string_view what) const {
  at(slice, what);
  return {find(slice.memory, what).block.buffer(),
          static_cast<VkDeviceSize>(margin_ + slice.offset)};
}

void Memory::record_copy(VkCommandBuffer commands, const Slice& from, const Slice& to) const {
  const Place source = place(from, "copy"), target = place(to, "copy");
  const VkBufferCopy region{source.offset, target.offset, static_cast<VkDeviceSize>(from.bytes)};
  context_.functions().CmdCopyBuffer(commands, source.buffer, target.buffer, 1, &region);
}

void Memory::check_sentinels() {
  if (margin_ == 0) return;
  for (const auto& [id, entry] : entries_)
    for (const std::int64_t offset : {std::int64_t{0}, margin_ + entry.bytes})
      check_margin(entry, id, offset);
}

void Memory::check_margin(const Entry& entry, MemoryId id, std::int64_t offset) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(margin_));
  download(entry.block, offset, bytes);
  if (const auto damaged = damaged_sentinel(bytes))
    throw InternalError(fmt::format("memory {}: byte {} {} it has changed", id.id,
                                    offset == 0 ? margin_ - *damaged : *damaged,
                                    offset == 0 ? "before" : "after"));
}

}  // namespace pantala::device::vulkan
