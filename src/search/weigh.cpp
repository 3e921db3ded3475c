#include "search/weigh.h"

#include <algorithm>

#include "base/hash.h"
#include "schedule/schedule.h"

namespace pantala::search {

namespace {

std::uint64_t content_hash(const ir::GraphData& graph) {
  std::uint64_t hash = kHashSeed;
  const auto add = [&](std::uint64_t value) { hash = hash_combine(hash, value); };
  const auto add_value = [&](ValueId value) {
    add(value.node);
    add(value.result);
  };
  for (const ir::Node& node : graph.nodes()) {
    add(fnv1a(node.op->name));
    for (const ValueId input : node.inputs) add_value(input);
    for (const ir::AttrValue& value : node.attrs) add(ir::hash_of(value));
  }
  for (const auto& [name, value] : graph.outputs()) add_value(value);
  for (const auto& [leaf, value] : graph.updates()) {
    add(leaf);
    add_value(value);
  }
  return hash;
}

}  // namespace

double bytes_of(const rewrite::Joint& joint, rewrite::NodeId node) {
  const ir::OpDef* op = joint.op(node);
  if (op == nullptr || schedule::is_leaf(*op)) return 1;
  double bytes = 1;
  const auto add = [&](const Type& type) {
    bytes += static_cast<double>(type.shape.numel() * dtype_bytes(type.dtype));
  };
  for (const Type& type : joint.types(joint.equal().class_of(node))) add(type);
  for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k)
    add(joint.type(joint.equal().child(node, k)));
  return bytes;
}

bool Scales::are_same(const Graph& one, const Graph& other) {
  return one.size() == other.size() && content_hash(*one.data()) == content_hash(*other.data());
}

Graph Scales::lowered(const Graph& graph) const {
  return schedule::lower(graph, options_.archetypes);
}

bool is_better(const Candidate& one, const Candidate& than) {
  constexpr double kRounding = 1e-6;  // of sums in another order
  constexpr double kLessMemory = 0.99;
  if (one.microseconds < (1 - kRounding) * than.microseconds) return true;
  return one.microseconds <= than.microseconds &&
         static_cast<double>(one.peak_bytes) < kLessMemory * static_cast<double>(than.peak_bytes);
}

bool pays(const Judged& moved, const Judged& from, double most_microseconds) {
  constexpr double kMemoryWorth = 0.1;
  constexpr double kWorthIt = 0.995;  // a smaller gain is none: estimates are no better
  const double before = from.estimate.microseconds, after = moved.estimate.microseconds;
  const auto peak = static_cast<double>(std::max<std::int64_t>(moved.peak(), 1)),
             most = static_cast<double>(std::max<std::int64_t>(from.peak(), 1));
  return after <= most_microseconds &&
         after * (1 + kMemoryWorth * (peak / most - 1)) <= kWorthIt * before;
}

Candidate candidate_of(const Judged& judged, std::string name) {
  return {.name = std::move(name),
          .microseconds = judged.estimate.microseconds,
          .flops = judged.estimate.flops,
          .bytes = judged.estimate.bytes,
          .nodes = static_cast<std::int64_t>(judged.graph().size()),
          .launches = judged.estimate.launches,
          .peak_bytes = judged.peak()};
}

Judged Scales::judge(const Graph& lowered) {
  const schedule::Machine machine{options_.archetypes, options_.table.target};
  const schedule::ScheduleOptions how{.workers = static_cast<int>(options_.table.workers),
                                      .prepares = options_.prepares,
                                      .check = options_.check};
  Judged judged{.decisions = schedule::decide(lowered, machine, how, decided_), .estimate = {}};
  judged.estimate =
      schedule::estimate(judged.decisions, options_.archetypes, options_.table, memo_);
  return judged;
}

const Candidate& Scales::weigh(const Graph& lowered) {
  const auto [at, is_new] = known_.try_emplace(content_hash(*lowered.data()));
  if (is_new) at->second = candidate_of(judge(lowered), "");
  return at->second;
}

}  // namespace pantala::search
