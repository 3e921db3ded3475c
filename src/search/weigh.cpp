#include "search/weigh.h"

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

Graph Scales::lowered(const Graph& graph) const {
  return schedule::lower(graph, options_.archetypes);
}

const Candidate& Scales::weigh(const Graph& lowered) {
  const auto [at, is_new] = known_.try_emplace(content_hash(*lowered.data()));
  if (!is_new) return at->second;
  const schedule::Machine machine{options_.archetypes, options_.table.target};
  const schedule::ScheduleOptions how{.workers = static_cast<int>(options_.table.workers),
                                      .check = options_.check};
  const schedule::Estimate estimate = schedule::estimate(
      schedule::decide(lowered, machine, how), options_.archetypes, options_.table, memo_);
  at->second = {.name = "",
                .microseconds = estimate.microseconds,
                .flops = estimate.flops,
                .bytes = estimate.bytes,
                .nodes = static_cast<std::int64_t>(lowered.size()),
                .launches = estimate.launches,
                .peak_bytes = estimate.peak_bytes,
                .verdict = ""};
  return at->second;
}

}  // namespace pantala::search
