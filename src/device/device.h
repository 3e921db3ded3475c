// The interface of devices: the one place of Pantala where inheritance is used. A device owns
// memory and code and runs plans (plan/plan.h).
//
// Life: allocate memory, load() a plan once, then run() it as often as needed with memory bound to
// its regions and numbers to its uniforms. Whatever is still there when the device goes, goes with
// it. A device computes the same bits for any number of workers.
//
// Threads: any thread may call any function; runs and copies are taken one after the other. Errors:
// DeviceError for what the device cannot do (memory, code for another processor), TypeError for
// bindings that do not fit the plan, InternalError for a plan that breaks a rule.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace pantala::device {

// Memory of a device, and a plan that it has loaded. 0 is none; numbers are never given twice.
struct MemoryId {
  std::uint64_t id = 0;
  friend auto operator<=>(const MemoryId&, const MemoryId&) = default;
};
struct PlanId {
  std::uint64_t id = 0;
  friend auto operator<=>(const PlanId&, const PlanId&) = default;
};
// A run that was started.
struct Ticket {
  std::uint64_t number = 0;
};

// A part of some memory.
struct Slice {
  MemoryId memory;
  std::int64_t offset = 0, bytes = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Bytes that are copied from one place to another of the same size; they do not overlap.
struct Move {
  Slice from, to;
};

// When a launch ran, in nanoseconds. A launch is shared out over the workers of a device.
struct LaunchTime {
  std::int64_t begin = 0;     // of worker 0's share, since RunTimes::begin
  std::int64_t duration = 0;  // of worker 0's share
  std::int64_t longest = 0;   // of the share that took longest
  friend bool operator==(const LaunchTime&, const LaunchTime&) = default;
};
// When one worker took its share of a launch, in nanoseconds since RunTimes::begin. Between the end
// of one and the beginning of the next a worker waits for the others.
struct ShareTime {
  std::int64_t begin = 0, end = 0;
  std::int64_t items = 0;  // 0: it had no part in the launch
  friend bool operator==(const ShareTime&, const ShareTime&) = default;
};
// Of one run. One that is used again for the same plan allocates nothing.
struct RunTimes {
  std::chrono::steady_clock::time_point begin;
  std::int64_t duration = 0;           // nanoseconds
  std::vector<LaunchTime> launches;    // as in the plan
  std::vector<ShareTime> shares = {};  // all launches of worker 0, of worker 1, ...

  std::size_t workers() const { return launches.empty() ? 0 : shares.size() / launches.size(); }
  std::span<const ShareTime> shares_of(std::size_t worker) const {
    return std::span(shares).subspan(worker * launches.size(), launches.size());
  }
  // Sets `launches` from the shares.
  void sum_up();
};

struct RunArguments {
  Slice arena;  // at least the plan's arena_bytes; plans may share it
  // One per region of the plan, of exactly its size; none overlaps another or the arena.
  std::span<const Slice> regions;
  std::span<const std::int64_t> uniforms;  // one slot per uniform of the plan (plan::slot_of)
  RunTimes* times = nullptr;               // filled in if it is asked for
  // What the plan's preparation leaves is there from a run before, and the store is what it was: a
  // device may leave these launches out.
  bool is_prepared = false;
  // Grows while the plan runs: so many of its first launches have finished, and what they have
  // written can be read by other threads. Of the CPU alone; others leave it as it is.
  std::atomic<std::int64_t>* finished = nullptr;

  // --- for devices that run ahead (runs_ahead)

  // Copied when everything that was started before has finished and before the first launch.
  std::span<const Move> before = {};
  // Another run comes before this one, and its status has not been taken. If that one has reported
  // something, has left a 0 in its guard, or has itself been left out, then this run changes
  // nothing but what `before` copies. At most four runs come behind one whose guard nobody knows.
  bool is_behind = false;
  Slice guard = {};          // of the run before, a byte; none: only its status counts
  Slice status_before = {};  // with is_behind: gets the 4 bytes of the status of the run before
};

struct MemorySummary {
  std::int64_t allocated = 0;       // by allocate() and not yet freed
  std::int64_t peak_allocated = 0;  // the most that it ever was
  std::int64_t scratch = 0;         // of all workers
  std::int64_t constants = 0;       // of all loaded plans
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view name() const = 0;    // "cpu"
  virtual std::string description() const = 0;  // "cpu, 2 workers, x86_64 ..."

  // Memory starts at a multiple of plan::kAlignment at least and is filled with zeros.
  virtual MemoryId allocate(std::int64_t bytes) = 0;
  // The same, always reached by the host: for what runs copy.
  virtual MemoryId allocate_staging(std::int64_t bytes) = 0;
  virtual void free(MemoryId memory) = 0;
  // Copies wait for runs. The slice says how many bytes; the host's side must have as many.
  virtual void write(const Slice& to, std::span<const std::byte> from) = 0;
  virtual void read(const Slice& from, std::span<std::byte> to) = 0;
  virtual void copy(const Slice& from, const Slice& to) = 0;
  // The memory itself where the host can reach it, otherwise null. Valid until free(); not to be
  // touched during a run that uses it.
  virtual std::byte* host_view(MemoryId memory) = 0;

  // Compiles or loads the code, takes scratch and the constants. The plan is kept by the device.
  virtual PlanId load(plan::Plan plan) = 0;
  virtual void unload(PlanId plan) = 0;

  // Whether runs go on after run() has returned.
  virtual bool runs_ahead() const = 0;
  // Starts the plan; returns when it is under way, which for a CPU is when it has finished. After
  // its first run a plan allocates nothing.
  virtual Ticket run(PlanId plan, const RunArguments& arguments) = 0;
  // Returns when the run, and everything that was started before it, has finished.
  virtual void wait(Ticket run) = 0;
  // Returns when everything that was started has finished.
  virtual void wait() = 0;
  // The status word: waits, gives the code of a kernel's report since the last call, or 0, and
  // clears it.
  virtual std::int32_t take_status() = 0;

  virtual MemorySummary memory() const = 0;

  // With DeviceOptions::sentinels: InternalError that names the memory if the bytes around it have
  // changed. Every run ends with it.
  virtual void check_sentinels() const = 0;

 protected:
  Device() = default;
};

inline constexpr int kMaxWorkers = 1024;
// One per CPU that this process may use.
int default_workers();

struct DeviceOptions {
  int workers = 0;  // threads that compute, the caller's among them; 0: default_workers()
  // How long a waiting worker spins before it sleeps, if there is a CPU for each worker.
  int spin_microseconds = 200;
  // For tests: memory is surrounded by bytes that must not change, and so are the buffers of the
  // arena where there is room between them.
  bool sentinels = false;
  // Where a driver's work on kernels is kept, with what tells the device and the driver behind the
  // name; "": nowhere.
  std::filesystem::path cache_file = {};
};

// "cpu"; "kir": the interpreter of kernels, which checks bounds and races; "vulkan": the first GPU,
// "vulkan:1" one by its number, "vulkan:radeon" by a part of its name; "auto": the first GPU if
// there is one, otherwise the CPU. UnsupportedError with the list for other names, DeviceError if
// there is no such GPU.
std::unique_ptr<Device> make_device(std::string_view name, const DeviceOptions& options = {});
// Those that there are code and tables for.
std::vector<std::string> device_names();
// Whether it is one of these, with a choice behind it or not.
bool is_device_name(std::string_view name);
// Whether a driver makes the device's code and takes its times, of which there are many: what it
// computes is tried before it is trusted.
bool has_driver(std::string_view name);
// As device_names(), with each of the GPUs of this machine.
std::vector<std::string> devices_here();

}  // namespace pantala::device
