// What the builders of kernels share while a graph is scheduled: which values are stored, where and
// in which order of axes, which the host computes, and the program that grows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph_data.h"
#include "schedule/emitter.h"
#include "schedule/program.h"
#include "schedule/schedule.h"
#include "schedule/target.h"

namespace pantala::schedule {

// A kernel and one launch of it; buffers are those of the program.
struct KernelDraft {
  std::string name;
  kir::Kernel kernel;
  ProgramLaunch::Set set;
  bool serial = false;
  double flops = 0;
};

// Where a group leaves a value.
constexpr std::uint32_t kNoBuffer = UINT32_MAX;  // not decided yet: row-major
struct GroupOutput {
  ValueId value;
  std::uint32_t buffer = kNoBuffer;
};

class Context {
 public:
  Context(const Graph& lowered, const Target& target, const ScheduleOptions& options);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ir::GraphData& graph() const { return *graph_; }
  const ir::Node& node(std::uint32_t id) const { return graph_->node(id); }
  const Type& type(ValueId id) const { return graph_->type(id); }
  const ValueInfo& info() const { return info_; }

  bool is_host(ValueId id) const { return host_[id.node]; }
  // Leaves and constants with data have buffers from the start; other values get one when they are
  // stored.
  bool is_stored(ValueId id) const {
    return (buffers_.contains(id) || (planned_ != nullptr && planned_->contains(id))) &&
           !making_.contains(id);
  }
  std::uint32_t buffer_of(ValueId id) const { return buffers_.at(id); }
  void store(ValueId id, std::uint32_t buffer) { buffers_.insert_or_assign(id, buffer); }
  std::uint32_t add_temporary(ValueId id, std::vector<int> order = {});
  std::uint32_t add_scratch_tensor(const std::string& name, DType dtype, const Shape& shape);
  std::uint32_t add_buffer(ProgramBuffer buffer);

  // While groups are made: values that will be stored.
  void plan_to_store(const std::set<ValueId>* values) { planned_ = values; }

  // A value of the host as a parameter.
  ParamValue uniform(ValueId value, DType dtype);

  // Element strides of the axes of a buffer, or of a value whose buffer is not decided.
  std::vector<std::int64_t> strides(std::uint32_t buffer) const;
  std::vector<std::int64_t> strides(const GroupOutput& output) const {
    return output.buffer == kNoBuffer ? type(output.value).shape.strides() : strides(output.buffer);
  }
  const ProgramBuffer& buffer(std::uint32_t id) const { return program.buffers[id]; }

  Target target;
  ScheduleOptions options;
  Program program;

 private:
  void add_leaves();
  bool in_range(ValueId index, std::int64_t limit);
  struct Replaced {
    ValueId value;
    std::int64_t number;
  };
  ValueId numbers_of(ValueId id) const;
  std::optional<Replaced> replaced_number(ValueId id, std::int64_t limit) const;
  std::int64_t report_code(std::uint32_t node, std::int64_t limit);

  friend class MakingScope;

  const ir::GraphData* graph_;
  std::vector<bool> host_;  // by node: ops/host_scalars.h
  const std::set<ValueId>* planned_ = nullptr;
  mutable std::set<ValueId> making_;  // by the kernel that is being built: they cannot be read yet
  std::map<ValueId, std::uint32_t> buffers_;
  ValueInfo info_;
};

// While a kernel is built or judged, what it makes is computed and not loaded.
class MakingScope {
 public:
  MakingScope(const Context& context, const std::vector<GroupOutput>& outputs) : context_(context) {
    for (const GroupOutput& output : outputs) context_.making_.insert(output.value);
  }
  ~MakingScope() { context_.making_.clear(); }
  MakingScope(const MakingScope&) = delete;
  MakingScope& operator=(const MakingScope&) = delete;

 private:
  const Context& context_;
};

}  // namespace pantala::schedule
