// The Store: everything that lives from step to step, by name. Parameters, moments, running
// statistics and accumulators lie in device memory, in one block per extend() with slices at
// multiples of plan::kAlignment (placement.h decides their order); counters and hyper-parameters
// are numbers on the host, unless a kernel of some plan reads or writes them: then they lie in
// device memory, too. Plans are bound to its slices, so that all of them see the same memory.
//
// First values come from initialisers and the seed; they are those of ref::Session. Tensors get
// them when somebody wants to see them: a model whose weights are loaded never draws any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "ir/number.h"
#include "pantala/graph.h"
#include "pantala/session.h"

namespace pantala::runtime {

// "input", "parameter", ... for messages and tables.
std::string_view kind_name(LeafKind kind);

// A leaf as a plan declares it.
struct StoreLeaf {
  LeafKind kind = LeafKind::parameter;  // parameter, state or scalar
  std::string name;
  Type type;
  bool on_host = false;
  Initializer init = {};   // of a scalar: a constant
  bool is_touched = true;  // by the plan; what it does not touch may be kept in either place
};

class Store {
 public:
  // The device must outlive the store. First values are made by so many threads.
  Store(device::Device& device, std::uint64_t seed, int threads = 1)
      : device_(device), seed_(seed), threads_(threads) {}
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Adds what is not there yet, with first values, and moves numbers to the device that the plan
  // wants there. TypeError listing every leaf that is there with another type or kind; then nothing
  // has changed. `siblings` as in placement.h.
  void extend(std::span<const StoreLeaf> leaves,
              std::span<const std::vector<std::string>> siblings);

  // Makes the first values that nobody has asked for or replaced yet: before a plan runs.
  void settle() const;

  struct Entry {
    StoreLeaf leaf;
    device::Slice slice;   // in device memory
    std::size_t host = 0;  // or the index of the number on the host
  };
  // In order of placement within each extension.
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  // TypeError with the nearest name of this kind; `what` is "parameter", "state", ...
  const Entry& get(std::string_view name, LeafKind kind, std::string_view what) const;
  std::vector<std::string> names(LeafKind kind) const;

  // A scalar or a counter, wherever it is kept, by its index in entries(), which stays the same.
  // Nothing is allocated.
  std::size_t index_of(const Entry& entry) const {
    return static_cast<std::size_t>(&entry - entries_.data());
  }
  ir::Number number(std::size_t index) const;
  void set_number(std::size_t index, const ir::Number& value);

  Literal read(const Entry& entry) const;
  void read(const Entry& entry, const HostBuffer& into) const;
  // Checked as set_input checks (convert.h).
  void write(const Entry& entry, const Literal& value);
  void write(const Entry& entry, const HostElements& value);
  // Elements as a file holds them, of a dtype that fits (convert.h: storable, check_stored).
  void write_stored(const Entry& entry, DType dtype, std::span<const std::byte> bytes);
  // The memory of an entry where the host can reach it; nothing for a number of the host.
  std::span<const std::byte> memory(const Entry& entry) const;
  // The same to write into; nothing has read it as it was.
  std::span<std::byte> own_memory(const Entry& entry);
  // The bytes of an entry; `space` keeps them where the device's memory cannot be seen.
  std::span<const std::byte> bytes(const Entry& entry, std::vector<std::byte>& space) const;

  std::int64_t device_bytes(LeafKind kind) const;

  // --- for copies that are gone back to

  // Whether an entry has another value than its first one that nobody has asked for.
  bool is_settled(std::size_t index) const;
  // Its first value is made again when somebody wants to see it.
  void unsettle(std::size_t index);
  void write_bytes(const Entry& entry, std::span<const std::byte> bytes);
  // The numbers on the host.
  const std::vector<ir::Number>& numbers() const { return numbers_; }
  void set_numbers(const std::vector<ir::Number>& numbers) { numbers_ = numbers; }
  // Grows whenever something in device memory is set from outside, and with every extension.
  std::uint64_t changes() const { return changes_; }
  // Grows whenever device memory gets other values, by whomever: whoever keeps what follows from
  // them looks at it. Plans that write to the store say so.
  std::uint64_t writes() const { return writes_; }
  void note_write() const { ++writes_; }

 private:
  void check(std::span<const StoreLeaf> leaves) const;
  void place_on_device(std::vector<Entry>& added,
                       std::span<const std::vector<std::string>> siblings);
  void move_to_device(Entry& entry);
  void begin(Entry& entry);
  void settle(const Entry& entry) const;
  void make_first_values(std::span<const std::size_t> entries) const;

  device::Device& device_;
  std::uint64_t seed_;
  int threads_;
  std::vector<device::MemoryId> blocks_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<ir::Number> numbers_;
  std::uint64_t changes_ = 0;
  mutable std::uint64_t writes_ = 0;
  mutable std::vector<std::size_t> unsettled_;  // entries in device memory without first values
};

}  // namespace pantala::runtime
