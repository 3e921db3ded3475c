// Program: a scheduled graph as kernels and launches; what stands between the schedule and the plan
// (plan/plan.h). Memory has no place yet: a buffer is a number of elements with a role. Launches
// are in an order in which they can be run one after the other, so that whatever a launch reads has
// been written and no launch overwrites what a later one still reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kir/kernel.h"
#include "kir/status_message.h"
#include "pantala/graph.h"

namespace pantala::schedule {

enum class Role : std::uint8_t {
  temporary,  // lives within the step
  constant,   // its content is known
  input,      // given each step
  store,      // a parameter or state: keeps its content from step to step
  output,     // read by the caller after the step
  prepared,   // follows from the store alone, and stays until that changes (preparation.h)
};

struct ProgramBuffer {
  std::string name;  // the leaf's (input, store), the output's; for the rest a text for people
  DType dtype = DType::f32;
  Shape shape = {};             // as the graph sees it
  std::vector<int> order = {};  // the axes as they are stored, outermost first
  Role role = Role::temporary;
  std::vector<std::byte> content = {};  // of a constant
  // Of an integer input: readers need 0 <= value < limit; 0 if they take any.
  std::int64_t limit = 0;
  // A value that they take beside these, such as the class of rows to ignore.
  std::optional<std::int64_t> exempt = {};
};

// A value of the lowered graph that the host computes in double once a step, rounded to `dtype`.
struct Uniform {
  ValueId value;
  DType dtype = DType::f32;
};

// The number of a uniform in the list, to which it is added if it is not there yet.
std::size_t uniform_index(std::vector<Uniform>& uniforms, ValueId value, DType dtype);

// What a kernel's parameter is in one argument set.
struct ParamValue {
  enum class Kind : std::uint8_t { integer, real, uniform } kind = Kind::integer;
  std::int64_t integer = 0;  // or the number of the uniform
  double real = 0;
  static ParamValue of(std::int64_t value) { return {Kind::integer, value, 0}; }
  static ParamValue of_real(double value) { return {Kind::real, 0, value}; }
  static ParamValue of_uniform(std::size_t index) {
    return {Kind::uniform, static_cast<std::int64_t>(index), 0};
  }
  friend bool operator==(const ParamValue&, const ParamValue&) = default;
};

struct ProgramLaunch {
  struct Set {
    std::int64_t items = 0;
    std::vector<std::uint32_t> buffers;
    std::vector<ParamValue> params;
  };
  std::string name;
  std::uint32_t kernel = 0;
  std::vector<Set> sets;
  bool serial = false;      // too small to share out
  std::string layers, ops;  // what it is a part of and what it computes (schedule/contents.h)
  std::uint32_t group = 0, part = 0;  // of the decisions, and which of the group's kernels
  // What the schedule expects it to cost; the bytes are those that move (schedule/work.h).
  double flops = 0, read_bytes = 0, written_bytes = 0;
  double predicted_us = 0;  // by a cost table (schedule/estimate.h)
};

using kir::StatusMessage;

struct Program {
  Graph graph;  // the lowered graph that the uniforms' values belong to
  std::vector<ProgramBuffer> buffers;
  std::vector<Uniform> uniforms;
  std::vector<kir::Kernel> kernels;  // simplified; no two are the same code
  std::vector<ProgramLaunch> launches;
  std::size_t preparation = 0;  // so many first ones are run only when the store has changed
  std::vector<StatusMessage> messages;
  // Outputs and updates of the graph that the host computes itself (counters, functions of
  // scalars).
  std::vector<std::pair<std::string, ValueId>> host_outputs;
  std::vector<std::pair<std::string, ValueId>> host_updates;  // leaf, new value
  // Elements that the emitter was asked for, to decide and to build: how much work it was.
  std::uint64_t emitted = 0;
  std::uint64_t searched = 0;  // groups that fusion has looked at, to decide
};

}  // namespace pantala::schedule
