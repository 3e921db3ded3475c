// Memory of devices that compute in the host's memory, and the binding of it to a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "device/address_space.h"
#include "device/device.h"
#include "device/guards.h"

namespace pantala::device {

// Zeroed memory. Large blocks start at a huge page's boundary and ask for huge pages; blocks with
// sentinels start at a page's boundary.
class HostBlock {
 public:
  HostBlock() = default;
  // DeviceError if there is no memory.
  explicit HostBlock(std::int64_t bytes, bool sentinels = false);
  ~HostBlock() { release(); }
  HostBlock(HostBlock&& other) noexcept;
  HostBlock& operator=(HostBlock&& other) noexcept;

  std::byte* data() const { return data_; }  // null only if there are no bytes
  std::int64_t bytes() const { return bytes_; }
  // InternalError that starts with `what` if the sentinels have changed.
  void check_sentinels(std::string_view what) const;

 private:
  void map(std::size_t bytes);
  void release() noexcept;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  bool sentinels_ = false;
};

// The blocks of a device by number. Not locked: the device does that.
class HostMemory : public AddressSpace {
 public:
  explicit HostMemory(bool sentinels = false) : sentinels_(sentinels) {}
  MemoryId allocate(std::int64_t bytes);
  void free(MemoryId memory);
  std::byte* view(MemoryId memory) const;
  std::byte* at(const Slice& slice, std::string_view what) const override;
  void write(const Slice& to, std::span<const std::byte> from);
  void read(const Slice& from, std::span<std::byte> to) const;
  void copy(const Slice& from, const Slice& to);
  void check_sentinels() const;
  std::uint64_t generation() const override { return generation_; }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t peak_allocated() const { return peak_allocated_; }

 private:
  const HostBlock& find(MemoryId memory, std::string_view what) const;
  const bool sentinels_;
  std::map<MemoryId, HostBlock> blocks_;
  std::uint64_t last_id_ = 0, generation_ = 0;
  std::int64_t allocated_ = 0, peak_allocated_ = 0;
};

// The addresses of a plan's memory: [arena, constants, regions...]. Checks what is bound, once for
// as long as it does not change.
class Binder {
 public:
  explicit Binder(const plan::Plan& plan);
  // The constants lie somewhere else.
  Binder(const plan::Plan& plan, std::byte* constants);
  // Returns whether an address has changed. TypeError if something does not fit the plan.
  bool bind(const plan::Plan& plan, const RunArguments& arguments, const AddressSpace& memory);
  const std::vector<std::byte*>& bases() const { return bases_; }
  const ArenaGaps& gaps() const { return gaps_; }
  // The index of a buffer's memory in bases().
  static std::size_t base_of(const plan::Buffer& buffer);

 private:
  void check(const plan::Plan& plan, const RunArguments& arguments, const AddressSpace& memory);
  void check_overlaps(const plan::Plan& plan);

  struct Extent {
    const std::byte* begin;
    std::int64_t bytes;
    std::size_t base;
  };
  HostBlock constants_;
  ArenaGaps gaps_;
  std::vector<std::byte*> bases_;
  bool bound_ = false;
  std::uint64_t generation_ = 0;
  Slice arena_;
  std::vector<Slice> regions_;
  std::vector<Extent> extents_;
};

}  // namespace pantala::device
