#include "train/own_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "distributed/collectives.h"
#include "io/json.h"
#include "pantala/error.h"
#include "plan/compiled_plan.h"
#include "plan/step_names.h"
#include "runtime/session_data.h"

namespace pantala::train {

namespace {

using runtime::Store;

constexpr std::string_view kOptimizer = "optim.";

struct Parameter {
  std::string name;
  std::int64_t bytes;
};

std::vector<Parameter> trained(const Graph& graph, const TrainingStepOptions& options) {
  std::vector<Parameter> list;
  for (const Leaf& leaf : graph.leaves(LeafKind::parameter)) {
    const optim::ParameterGroup* group = optim::find_group(options.groups, leaf.name);
    if (!is_float(leaf.value.dtype()) || (group && group->frozen)) continue;
    list.push_back({leaf.name, leaf.value.numel() * dtype_bytes(leaf.value.dtype())});
  }
  return list;
}

// A state of one parameter, `optim.m.fc1.weight`, and not one that all share, `optim.step`.
bool is_of_one(const Store::Entry& entry, const Store& store) {
  const std::string& name = entry.leaf.name;
  if (entry.leaf.kind != LeafKind::state || !name.starts_with(kOptimizer)) return false;
  const std::size_t dot = name.find('.', kOptimizer.size());
  return dot != std::string::npos && store.find(name.substr(dot + 1)) != nullptr;
}

std::vector<const Store::Entry*> states_of_one(const Store& store) {
  std::vector<const Store::Entry*> states;
  for (const Store::Entry& entry : store.entries())
    if (is_of_one(entry, store)) states.push_back(&entry);
  return states;
}

}  // namespace

std::vector<std::string> own_parameters(const Graph& graph, const TrainingStepOptions& options,
                                        const distributed::Communicator& ranks) {
  if (options.ema_decay)
    throw UnsupportedError(
        "distributed.shard_optimizer does not go with averages of the weights (ema.decay), which "
        "every rank would have to keep whole; leave one of the two out");
  std::vector<Parameter> parameters = trained(graph, options);
  std::ranges::stable_sort(parameters, std::ranges::greater{}, &Parameter::bytes);
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks.size()), 0);
  std::vector<std::string> own;
  for (const Parameter& parameter : parameters) {
    const auto least = std::ranges::min_element(load);
    *least += parameter.bytes;
    if (least - load.begin() == ranks.rank()) own.push_back(parameter.name);
  }
  return own;
}

OwnUpdates::OwnUpdates(std::shared_ptr<distributed::Communicator> ranks)
    : ranks_(std::move(ranks)) {}

void OwnUpdates::find_parts(Session& session) {
  const Store& store = session.data().store();
  const CompiledPlan compiled = session.compiled();
  std::string own;
  for (const plan::CompiledLeaf& leaf : compiled.data()->step(plan::kApply).leaves)
    if (leaf.kind == LeafKind::parameter && leaf.updated) own += leaf.name + '\n';
  for (const std::string& names : distributed::gather_texts(*ranks_, own)) {
    Part& part = parts_.emplace_back();
    std::istringstream lines(names);
    std::size_t bytes = 0;
    for (std::string name; std::getline(lines, name);) {
      part.entries.push_back(store.index_of(*store.find(name)));
      bytes += static_cast<std::size_t>(store.find(name)->slice.bytes);
    }
    part.bytes.resize(bytes + 1);  // and whether the update was made
  }
}

void OwnUpdates::share(Session& session) {
  Store& store = session.data().settled().store();
  if (parts_.empty()) find_parts(session);
  const auto rank = static_cast<std::size_t>(ranks_->rank());
  std::vector<std::byte> space;
  std::size_t at = 0;
  for (const std::size_t entry : parts_[rank].entries) {
    const std::span<const std::byte> bytes = store.bytes(store.entries()[entry], space);
    std::ranges::copy(bytes, parts_[rank].bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += bytes.size();
  }
  const auto is_made = static_cast<std::byte>(session.data().finite());
  parts_[rank].bytes.back() = is_made;
  std::vector<distributed::Send> sends;
  std::vector<distributed::Receive> receives;
  for (std::size_t other = 0; other < parts_.size(); ++other) {
    if (other == rank) continue;
    sends.push_back({static_cast<int>(other), parts_[rank].bytes});
    receives.push_back({static_cast<int>(other), parts_[other].bytes});
  }
  ranks_->exchange(distributed::Channel::gradients, sends, receives);
  for (const Part& part : parts_)
    if (part.bytes.back() != is_made)
      throw distributed::AstrayError(
          "some ranks have made an update that others have refused because its numbers are at the "
          "edge of what floats hold; go on from the last checkpoint");
  for (std::size_t other = 0; other < parts_.size(); ++other) {
    if (other == rank) continue;
    std::span<const std::byte> rest = parts_[other].bytes;
    for (const std::size_t index : parts_[other].entries) {
      const Store::Entry& entry = store.entries()[index];
      const auto bytes = static_cast<std::size_t>(entry.slice.bytes);
      store.write_bytes(entry, rest.first(bytes));
      rest = rest.subspan(bytes);
    }
  }
}

// Names and types go first, then the bytes to rank 0 alone.
OwnUpdates::States OwnUpdates::gather_states(const Session& session) const {
  const Store& store = session.data().settled().store();
  const std::vector<const Store::Entry*> own = states_of_one(store);
  io::Json list = io::Json::array();
  for (const Store::Entry* entry : own)
    list.push_back(
        {entry->leaf.name, dtype_name(entry->leaf.type.dtype), entry->leaf.type.shape.vec()});
  const std::vector<std::string> lists = distributed::gather_texts(*ranks_, list.dump());
  States states;
  if (ranks_->rank() > 0) {
    std::vector<std::byte> space;
    for (const Store::Entry* entry : own) {
      const distributed::Send send{0, store.bytes(*entry, space)};
      ranks_->exchange(distributed::Channel::control, {&send, 1}, {});
    }
    return states;
  }
  for (std::size_t rank = 1; rank < lists.size(); ++rank)
    for (const io::Json& one : io::Json::parse(lists[rank])) {
      const Type type{*parse_dtype(one.at(1).get<std::string>()),
                      Shape(one.at(2).get<std::vector<std::int64_t>>())};
      States::State state{one.at(0).get<std::string>(), type, {}};
      state.bytes.resize(static_cast<std::size_t>(type.shape.numel() * dtype_bytes(type.dtype)));
      const distributed::Receive receive{static_cast<int>(rank), state.bytes};
      ranks_->exchange(distributed::Channel::control, {}, {&receive, 1});
      states.states_.push_back(std::move(state));
    }
  return states;
}

std::int64_t OwnUpdates::States::bytes() const {
  std::int64_t bytes = 0;
  for (const State& state : states_) bytes += std::ssize(state.bytes);
  return bytes;
}

std::vector<io::TensorBytes> OwnUpdates::States::tensors() const {
  std::vector<io::TensorBytes> tensors;
  for (const State& state : states_) tensors.push_back({state.name, state.type, state.bytes});
  return tensors;
}

}  // namespace pantala::train
