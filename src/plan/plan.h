// The plan: all that a device needs to run one step, as plain data. The compiler ends with it, the
// plan cache keeps it (plan/serialize.h) and every device (device/device.h) runs it.
//
// Memory: a buffer is a range of bytes of the arena (temporaries; offsets are decided before the
// first step, see plan/arena.h), of the constants, or of a region: memory that is bound when the
// plan is run (parameters, state and counters of the store; inputs; outputs; what is prepared).
// Buffers of one region may overlap (a weight and the packed matrix that it is a part of);
// different regions never do.
//
// The first launches may be a preparation: what they leave for the others follows from the store
// alone and lies in a region, so a run need not begin with them while neither has changed.
//
// Launches are walked in order. Two launches may run at once unless the later one names the earlier
// one in `after`, or names one that does, and so on; plan/dependencies.h finds the edges that the
// memory asks for. Within a launch a buffer that is only read overlaps no buffer that is written: a
// kernel that works in place declares its input as read_write.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kir/kernel.h"
#include "pantala/shape.h"

namespace pantala::plan {

// Every buffer starts at a multiple of this in the arena and in the constants.
constexpr std::int64_t kAlignment = 64;

enum class Storage : std::uint8_t { arena, constant, store, input, output, prepared };
std::string_view storage_name(Storage storage);
// Whether memory of this kind is bound when the plan is run.
constexpr bool is_bound(Storage storage) { return storage >= Storage::store; }

// Memory that is bound when the plan is run.
struct Region {
  std::string name;
  Storage storage = Storage::store;
  std::int64_t bytes = 0;
  friend bool operator==(const Region&, const Region&) = default;
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  Storage storage = Storage::arena;
  std::uint32_t region = 0;  // which one, if the storage is bound
  std::int64_t offset = 0;   // in bytes, in arena, constants or region
  std::int64_t bytes() const { return elements * dtype_bytes(dtype); }
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// A host scalar that may change from step to step: learning rate, step number, seed.
struct Uniform {
  std::string name;
  DType dtype = DType::f32;
  friend bool operator==(const Uniform&, const Uniform&) = default;
};

// The 64-bit slot of a scalar: i64 as it is, i32 and f32 in the low half, f64 as its bits.
template <class N>
constexpr std::int64_t slot_of(N number) {
  if constexpr (std::is_same_v<N, float>)
    return std::bit_cast<std::uint32_t>(number);
  else if constexpr (std::is_same_v<N, double>)
    return std::bit_cast<std::int64_t>(number);
  else
    return number;
}

// The value of a kernel's parameter: a number known when the plan is made, or the number of a
// uniform.
struct Scalar {
  bool is_uniform = false;
  std::int64_t value = 0;  // a slot, or an index into Plan::uniforms
  template <class N>
  static Scalar immediate(N number) {
    return {false, slot_of(number)};
  }
  static Scalar uniform(std::uint32_t index) { return {true, index}; }
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

// What a kernel takes: enough to check a launch when only compiled code is there.
struct Signature {
  struct Argument {
    DType dtype = DType::f32;
    kir::Access access = kir::Access::read;
    friend bool operator==(const Argument&, const Argument&) = default;
  };
  std::vector<Argument> buffers;
  std::vector<DType> params;
  std::int64_t scratch_bytes = 0;
  friend bool operator==(const Signature&, const Signature&) = default;
};
Signature signature_of(const kir::Kernel& kernel);

// The code of launches: as kernel IR, as a compiled object for Plan::target, or as both.
struct Unit {
  std::string entry;  // the kernel's name; unique in the plan
  Signature signature;
  std::optional<kir::Kernel> kernel = {};
  std::vector<std::byte> object = {};
};
Unit unit_of(kir::Kernel kernel);

// One row of a launch's table: its items are numbered from 0 for the kernel.
struct ArgumentSet {
  std::int64_t items = 0;
  std::vector<std::uint32_t> buffers;
  std::vector<Scalar> params;
  friend bool operator==(const ArgumentSet&, const ArgumentSet&) = default;
};

struct Launch {
  std::string name;  // for lists and traces
  std::uint32_t unit = 0;
  // The launch's items are those of the first set, then those of the second, ...
  std::vector<ArgumentSet> sets;
  std::vector<std::uint32_t> after = {};  // earlier launches that must have finished, ascending
  bool serial = false;                    // too small to share out: one worker runs it
  std::int64_t items() const;
  friend bool operator==(const Launch&, const Launch&) = default;
};

// How the world sees a buffer.
struct Port {
  std::string name;
  std::uint32_t buffer = 0;
  Shape shape = {};
  // Of an integer input: its readers need 0 <= value < limit; 0 if they take any.
  std::int64_t limit = 0;
  std::optional<std::int64_t> exempt = {};  // a value that they take beside these
  friend bool operator==(const Port&, const Port&) = default;
};

struct ParameterGradient {
  std::string name;
  std::uint32_t parameter = 0, gradient = 0;  // buffers
  friend bool operator==(const ParameterGradient&, const ParameterGradient&) = default;
};

struct Plan {
  std::string name;
  std::string target;  // what the objects were compiled for; empty if there are none
  std::vector<Region> regions;
  std::vector<Buffer> buffers;
  std::vector<std::byte> constants;
  std::vector<Uniform> uniforms;
  std::vector<Unit> units;
  std::vector<Launch> launches;
  std::uint32_t preparation = 0;   // so many of them are
  std::int64_t arena_bytes = 0;    // the exact peak of the temporaries
  std::int64_t scratch_bytes = 0;  // per worker: the largest of the units
  std::vector<Port> inputs, parameters, outputs;
  std::vector<ParameterGradient> gradients;
};

// Small steps of making a plan; each returns the new index.
std::uint32_t add_region_buffer(Plan& plan, Storage storage, std::string name, DType dtype,
                                std::int64_t elements);
std::uint32_t add_prepared_buffer(Plan& plan, std::string name, DType dtype, std::int64_t elements);
std::uint32_t add_arena_buffer(Plan& plan, std::string name, DType dtype, std::int64_t elements);
std::uint32_t add_constant(Plan& plan, std::string name, DType dtype,
                           std::vector<std::byte> content);
std::uint32_t add_uniform(Plan& plan, std::string name, DType dtype);
// Also raises the plan's scratch.
std::uint32_t add_unit(Plan& plan, kir::Kernel kernel);

// Whether a launch changes a parameter or a state.
bool writes_store(const Plan& plan);
// Memory that is kept from run to run beside the store.
std::int64_t prepared_bytes(const Plan& plan);

// Throws InternalError naming the plan, the thing and the broken rule: indices, dtypes and counts
// of arguments against signatures, ranges of buffers, items, edges that lead back, names that occur
// twice, kernels that contradict their signatures, read-only buffers that a launch writes under
// another name, a preparation that others do not leave alone or that needs more than the store.
void validate(const Plan& plan);

}  // namespace pantala::plan
