// A lowered graph with the decisions about it, as they stand: what groups are made with, and what
// kernels are built from. Which values are stored, where and in which order of axes, which the host
// computes, and what is known about the numbers of index tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph_data.h"
#include "schedule/decisions.h"
#include "schedule/emitter.h"
#include "schedule/machine.h"

namespace pantala::schedule {

class Context {
 public:
  // With nothing decided but where leaves lie and what the host computes.
  Context(const Graph& lowered, const Machine& machine, const ScheduleOptions& options);
  Context(Decisions decisions, const Machine& machine, const ScheduleOptions& options);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ir::GraphData& graph() const { return *graph_; }
  const ir::Node& node(std::uint32_t id) const { return graph_->node(id); }
  const Type& type(ValueId id) const { return graph_->type(id); }
  const ValueInfo& info() const { return info_; }
  const Decisions& decisions() const { return decisions_; }
  Decisions take_decisions() { return std::move(decisions_); }

  bool is_host(ValueId id) const { return decisions_.host[id.node]; }
  // Leaves and constants with data have buffers from the start; other values get one when they are
  // stored.
  bool is_stored(ValueId id) const {
    return (decisions_.places.contains(id) || (planned_ != nullptr && planned_->contains(id))) &&
           !making_.contains(id);
  }
  std::uint32_t buffer_of(ValueId id) const { return decisions_.places.at(id); }
  void store(ValueId id, std::uint32_t buffer) { decisions_.places.insert_or_assign(id, buffer); }
  std::uint32_t add_temporary(ValueId id, std::vector<int> order = {});
  std::uint32_t add_buffer(ProgramBuffer buffer);

  // How often a kernel's index was asked about: what was found out then holds for its node alone.
  std::uint64_t index_checks() const { return index_checks_; }

  // Between two parts of the work, each of which takes a moment: throws if it was called off.
  void check() const {
    if (options.check) options.check();
  }

  // While groups are made: values that will be stored.
  void plan_to_store(const std::set<ValueId>* values) { planned_ = values; }

  // Element strides of the axes of a buffer, or of a value whose buffer is not decided.
  std::vector<std::int64_t> strides(std::uint32_t buffer) const;
  std::vector<std::int64_t> strides(const GroupOutput& output) const {
    return output.buffer == kNoBuffer ? strides_of(output.value) : strides(output.buffer);
  }
  // The order of axes of a temporary that its archetype has chosen; empty: none has.
  const std::vector<int>& order_of(ValueId id) const;
  const ProgramBuffer& buffer(std::uint32_t id) const { return decisions_.buffers[id]; }

  const ArchetypeTable& archetypes;
  const Target target;
  const ScheduleOptions options;

 private:
  void add_leaves();
  void choose_orders();
  std::vector<std::int64_t> strides_of(ValueId id) const;
  bool in_range(ValueId index, std::int64_t limit);
  bool constant_in_range(std::uint32_t id, std::int64_t limit);
  struct Replaced {
    ValueId value;
    std::int64_t number;
  };
  ValueId numbers_of(ValueId id) const;
  std::optional<Replaced> replaced_number(ValueId id, std::int64_t limit) const;
  std::int64_t report_code(std::uint32_t node, std::int64_t limit);

  friend class MakingScope;

  Decisions decisions_;
  const ir::GraphData* graph_;
  const std::set<ValueId>* planned_ = nullptr;
  mutable std::set<ValueId> making_;  // by the kernel that is being built: they cannot be read yet
  ValueInfo info_;
  std::map<ValueId, std::vector<int>> orders_;  // of temporaries, while decisions are made
  std::uint64_t index_checks_ = 0;
  std::map<std::uint32_t, Interval> constant_numbers_;  // of integer data, once it was asked for
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
