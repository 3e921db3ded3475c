// E-graphs of models after saturation, for a solver that finds the best selection of all
// (extraction_exact.py). An object a line: classes are numbers, a node is [class, cost, classes
// that it reads]; the cost is the one that extraction minimises, `ours` what it found.
//   bench_extraction --json > graphs.jsonl
// With a seed behind it, costs are drawn instead: bytes leave few choices that are close.
#include "rewrite/extraction.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hash.h"
#include "pantala/zoo.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "search/weigh.h"
#include "support/lowered_step.h"
#include "tools/bench/workloads.h"

namespace {

using namespace pantala;
using Json = nlohmann::ordered_json;

// What the roots may need, whichever nodes are selected.
std::vector<bool> reachable(const rewrite::Joint& joint, std::vector<std::size_t> work,
                            const std::vector<std::vector<rewrite::NodeId>>& members) {
  std::vector<bool> seen(members.size());
  while (!work.empty()) {
    const std::size_t id = work.back();
    work.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    for (const rewrite::NodeId node : members[id])
      for (std::uint32_t k = 0; k < joint.equal().arity(node); ++k)
        work.push_back(joint.equal().find(joint.equal().child(node, k)).index());
  }
  return seen;
}

std::vector<std::size_t> roots_of(const rewrite::Joint& joint) {
  std::vector<std::size_t> roots;
  const ir::GraphData& graph = *joint.graph().data();
  const auto add = [&](ValueId value) {
    roots.push_back(joint.equal().find(joint.class_of(value)).index());
  };
  for (const auto& [name, value] : graph.outputs()) add(value);
  for (const auto& [leaf, value] : graph.updates()) add(value);
  return roots;
}

Json nodes_of(const rewrite::Joint& joint, const std::vector<std::size_t>& roots,
              const rewrite::NodeCost& cost) {
  const egraph::EGraph& equal = joint.equal();
  std::vector<std::vector<rewrite::NodeId>> members(equal.class_ids());
  for (std::size_t k = 0; k < equal.node_ids(); ++k)
    if (equal.is_live(rewrite::NodeId(k)))
      members[equal.class_of(rewrite::NodeId(k)).index()].push_back(rewrite::NodeId(k));
  const std::vector<bool> needed = reachable(joint, roots, members);
  Json nodes = Json::array();
  for (std::size_t id = 0; id < members.size(); ++id)
    for (const rewrite::NodeId node : needed[id] ? members[id] : std::vector<rewrite::NodeId>{}) {
      Json children = Json::array();
      for (std::uint32_t k = 0; k < equal.arity(node); ++k)
        children.push_back(equal.find(equal.child(node, k)).index());
      nodes.push_back({id, cost(node), std::move(children)});
    }
  return nodes;
}

double drawn_cost(std::uint64_t seed, rewrite::NodeId node) {
  return static_cast<double>(1 + hash_combine(seed, node.index()) % 1000);
}

Json described(const std::string& name, const Graph& lowered, std::optional<std::uint64_t> seed) {
  const rewrite::Saturation all(
      lowered, rewrite::allowed_rules(rewrite::step_rules(), rewrite::Promise::finite));
  const rewrite::Joint& joint = all.joint();
  const rewrite::NodeCost cost = [&](rewrite::NodeId node) {
    return seed ? drawn_cost(*seed, node) : search::bytes_of(joint, node);
  };
  const rewrite::Selection given = rewrite::given_selection(joint);
  const std::vector<std::size_t> roots = roots_of(joint);
  return {{"name", name},
          {"given", rewrite::cost_of(joint, given, cost)},
          {"ours", rewrite::cost_of(joint, rewrite::improved(joint, given, cost), cost)},
          {"roots", roots},
          {"nodes", nodes_of(joint, roots, cost)}};
}

tools::Workload small_llama(bool trains) {
  const zoo::Model model = zoo::llama(zoo::llama_bytes(), {.batch = 2, .sequence = 64});
  tools::Workload workload;
  workload.name = "llama_bytes";
  workload.graph = trains ? model.graph : model.graph.with_outputs({{"logits", model.logits}});
  if (trains) workload.loss = workload.graph.value(model.loss.id());
  workload.optimizer = optim::adamw(1e-4);
  return workload;
}

void print(const Json& graph, bool json) {
  if (json)
    fmt::print("{}\n", graph.dump());
  else
    fmt::print("{:24} {:6} nodes  {:16.0f} given  {:16.0f} ours\n",
               graph.at("name").get<std::string>(), graph.at("nodes").size(),
               graph.at("given").get<double>(), graph.at("ours").get<double>());
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::optional<std::uint64_t> seed;
  for (int k = 1; k < argc; ++k) {
    const char* end = argv[k] + std::strlen(argv[k]);
    std::uint64_t value = 0;
    if (!std::strcmp(argv[k], "--json")) {
      json = true;
    } else if (std::from_chars(argv[k], end, value).ptr == end) {
      seed = value;
    } else {
      fmt::print(stderr, "usage: bench_extraction [--json] [SEED]\n");
      return 2;
    }
  }
  for (const bool trains : {true, false}) {
    const auto show = [&](const tools::Workload& workload) {
      CompileOptions options;
      if (trains) options.optimizer = workload.optimizer;
      print(described(workload.name + (trains ? ", training" : ", inference"),
                      tests::lowered_step(workload.graph, workload.loss, options), seed),
            json);
    };
    show(small_llama(trains));
    for (const std::string& name : tools::workload_names())
      show(tools::make_workload(name, trains ? tools::BenchMode::train : tools::BenchMode::infer));
  }
}
