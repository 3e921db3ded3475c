// GPU code generation: a kernel of the kernel IR becomes a module of SPIR-V 1.5 for Vulkan 1.2,
// with one compute entry point, "main". Lanes become scalars; nothing may be contracted. Division,
// square root and fma are computed in integers where the device does not round them correctly;
// subnormals are what the device makes of them: docs/gpu.md.
//
// Arguments: binding 0 of set 0 is a uniform buffer with one row of 64-bit slots: [status address,
// scratch address, items, buffer addresses..., parameters...] (kRowHead, row_slots). A parameter
// that all launches give the same number is a constant of the code and its slot is not read; that
// of any other holds the address of its value. Binding 1 is a uniform
// buffer with kGoesOn in front: a kernel that finds something else there does nothing.
//
// Invocations: a kernel of several threads takes a workgroup per item. Otherwise an invocation
// takes an item; one with scratch, which lies in device memory, takes every n-th item, n being the
// number of invocations, so that there need not be scratch for all items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kir/kernel.h"

namespace pantala::codegen::spirv {

// What a device offers to kernels.
struct Target {
  bool storage8 = false, storage16 = false;  // memory of bytes and halves of words
  bool float64 = false;                      // numbers of double precision between others
  bool keeps_subnormals = false, keeps_special = false, rounds_to_even = false;
  bool divides = true, takes_roots = true, fuses = true;  // correctly rounded
  // Goes through loops to their ends, however many rounds they have; otherwise kernels that may
  // have many of them look, and set the status kir::kLoopEnded.
  bool finishes_loops = true;
  int subgroup = 0;                        // invocations that can exchange values; 0: none can
  std::int64_t max_subgroups = INT64_MAX;  // of a workgroup that exchanges values
  std::int64_t shared_bytes = 16 << 10;
  std::int64_t max_invocations = 128;
  friend bool operator==(const Target&, const Target&) = default;
};

// What is known of a parameter in all launches of a kernel: slots as plan::slot_of makes them.
struct ParamFacts {
  bool uniform = false;  // changes from step to step
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  bool is_constant() const { return !uniform && low == high; }
  // The row has the address of the value. So it is with sizes that differ between launches, too: a
  // driver that finds the end of a loop in a uniform buffer may build the kernel anew for every
  // dispatch (Mesa's lavapipe does, which takes it milliseconds).
  bool in_memory() const { return uniform || low != high; }
  friend bool operator==(const ParamFacts&, const ParamFacts&) = default;
};
struct Facts {
  std::vector<ParamFacts> params;      // none: nothing is known
  std::vector<std::int64_t> elements;  // of every buffer, at most; none: nothing is known
  std::int64_t items = INT64_MAX;      // at most
  friend bool operator==(const Facts&, const Facts&) = default;
};

constexpr int kStatusSlot = 0, kScratchSlot = 1, kItemsSlot = 2, kRowHead = 3;
int row_slots(const kir::Kernel& kernel);
// The status of the run before, and the flags that guards of runs before have left.
constexpr std::uint64_t kGoesOn = std::uint64_t{0x01010101} << 32;

struct Code {
  std::vector<std::uint32_t> words;
  int invocations = 1;             // of a workgroup
  bool group_per_item = false;     // otherwise an item is an invocation's
  bool exchanges = false;          // between the invocations of full subgroups of Target::subgroup
  std::int64_t scratch_bytes = 0;  // of device memory, per invocation
  std::int64_t shared_bytes = 0;   // of a workgroup
};

// UnsupportedError for a kernel that this device cannot run, which names what it lacks.
Code emit(const kir::Kernel& kernel, const Target& target, const Facts& facts = {});

// What SPIRV-Tools find wrong, or "".
std::string broken_rule(std::span<const std::uint32_t> words);
std::string disassembly(std::span<const std::uint32_t> words);

}  // namespace pantala::codegen::spirv
