// Memory of a Vulkan device: buffers with addresses. Where the device shares the host's memory it
// is reached directly, otherwise through a staging buffer and copies on the queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "device/address_space.h"
#include "device/device.h"
#include "device/vulkan/context.h"

namespace pantala::device::vulkan {

// A buffer with memory of its own.
class Block {
 public:
  enum class Kind : std::uint8_t {
    device,  // fast for the device; the host may reach it
    host,    // reached by both, for small things and staging
  };
  Block() = default;
  Block(Context& context, std::int64_t bytes, Kind kind);
  ~Block() { release(); }
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;

  VkBuffer buffer() const { return buffer_; }
  std::uint64_t address() const { return address_; }
  std::byte* view() const { return view_; }  // null: the host cannot reach it
  std::int64_t bytes() const { return bytes_; }

 private:
  void create(std::int64_t bytes, Kind kind);
  void release() noexcept;
  Context* context_ = nullptr;
  VkBuffer buffer_ = nullptr;
  VkDeviceMemory memory_ = nullptr;
  std::uint64_t address_ = 0;
  std::byte* view_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Memory : public AddressSpace {
 public:
  Memory(Context& context, bool sentinels);
  MemoryId allocate(std::int64_t bytes, Block::Kind kind = Block::Kind::device);
  void free(MemoryId memory);
  std::byte* view(MemoryId memory) const;
  // Addresses of the device; only to compare and to hand on.
  std::byte* at(const Slice& slice, std::string_view what) const override;
  std::uint64_t generation() const override { return generation_; }

  // All come after what was submitted before; write and copy need not have happened on return.
  void write(const Slice& to, std::span<const std::byte> from);
  void read(const Slice& from, std::span<std::byte> to);
  void copy(const Slice& from, const Slice& to);
  // Into a command buffer; the slices must not overlap.
  void record_copy(VkCommandBuffer commands, const Slice& from, const Slice& to) const;
  struct Place {
    VkBuffer buffer;
    VkDeviceSize offset;
  };
  Place place(const Slice& slice, std::string_view what) const;
  void check_sentinels();
  std::int64_t allocated() const { return allocated_; }
  std::int64_t peak_allocated() const { return peak_allocated_; }

 private:
  struct Entry {
    Block block;
    std::int64_t bytes = 0;
  };
  const Entry& find(MemoryId memory, std::string_view what) const;
  // Zeros, and around them what must not change.
  void clear(const Entry& entry);
  void fill(const Block& block, std::int64_t offset, std::int64_t bytes, std::byte value);
  void check_margin(const Entry& entry, MemoryId id, std::int64_t offset);
  // Through staging; the slice lies in the block.
  void upload(const Block& block, std::int64_t offset, std::span<const std::byte> from);
  void download(const Block& block, std::int64_t offset, std::span<std::byte> to);

  Context& context_;
  const std::int64_t margin_;  // bytes around every memory that must not change
  std::map<MemoryId, Entry> entries_;
  Block staging_;
  std::uint64_t staging_ticket_[2] = {};  // of the last use of each half
  int half_ = 0;
  std::uint64_t last_id_ = 0, generation_ = 0;
  std::int64_t allocated_ = 0, peak_allocated_ = 0;
};

}  // namespace pantala::device::vulkan
