// HostDevice: what devices with memory in the host's address space have in common. One lock guards
// memory and plans.
#pragma once

#include <mutex>

#include "device/device.h"
#include "device/host_memory.h"

namespace pantala::device {

class HostDevice : public Device {
 public:
  explicit HostDevice(const DeviceOptions& options)
      : sentinels_(options.sentinels), memory_(options.sentinels) {}
  MemoryId allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return memory_.allocate(bytes);
  }
  MemoryId allocate_staging(std::int64_t bytes) override { return allocate(bytes); }
  void free(MemoryId memory) override {
    const std::lock_guard lock(mutex_);
    memory_.free(memory);
  }
  void write(const Slice& to, std::span<const std::byte> from) override {
    const std::lock_guard lock(mutex_);
    memory_.write(to, from);
  }
  void read(const Slice& from, std::span<std::byte> to) override {
    const std::lock_guard lock(mutex_);
    memory_.read(from, to);
  }
  void copy(const Slice& from, const Slice& to) override {
    const std::lock_guard lock(mutex_);
    memory_.copy(from, to);
  }
  std::byte* host_view(MemoryId memory) override {
    const std::lock_guard lock(mutex_);
    return memory_.view(memory);
  }
  void check_sentinels() const override {
    const std::lock_guard lock(mutex_);
    check_all_sentinels();
  }
  // Runs are synchronous: nothing is under way once the lock is free.
  bool runs_ahead() const override { return false; }
  void wait(Ticket) override { wait(); }
  void wait() override { const std::lock_guard lock(mutex_); }

 protected:
  // With the lock held.
  virtual void check_all_sentinels() const { memory_.check_sentinels(); }

  mutable std::mutex mutex_;
  const bool sentinels_;
  HostMemory memory_;
};

}  // namespace pantala::device
