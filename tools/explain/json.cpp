// The explanation for programs, and for the script of the page.
#include <nlohmann/json.hpp>

#include "tools/explain/text.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

Json node_json(const KernelNode& node) {
  Json json{{"id", node.id}, {"op", node.op}, {"type", node.type}};
  if (!node.place.empty()) json["place"] = node.place;
  if (!node.label.empty()) json["label"] = node.label;
  if (!node.inputs.empty()) json["inputs"] = node.inputs;
  for (const ir::Rewriting& one : node.rewrites)
    json["rewrites"].push_back({{"rule", one.rule}, {"from", one.from}});
  return json;
}

Json kernel_json(const ExplainedKernel& kernel) {
  Json json{{"name", kernel.name()}, {"launches", kernel.launches},
            {"codes", kernel.codes}, {"layers", kernel.layers},
            {"ops", kernel.ops},     {"flops", kernel.flops},
            {"bytes", kernel.bytes}, {"predicted_us", kernel.predicted_us}};
  if (kernel.measured_us > 0) json["measured_us"] = kernel.measured_us;
  json["places"] = kernel.places();
  json["rules"] = kernel.rules();
  json["reads"] = kernel.reads;
  json["nodes"] = Json::array();
  for (const KernelNode& node : kernel.nodes) json["nodes"].push_back(node_json(node));
  json["leaves"] = Json::array();
  for (const KernelNode& node : kernel.leaves) json["leaves"].push_back(node_json(node));
  return json;
}

Json kernels_json(const std::vector<ExplainedKernel>& kernels) {
  Json json = Json::array();
  for (const ExplainedKernel& kernel : kernels) json.push_back(kernel_json(kernel));
  return json;
}

Json candidates_json(const search::Outcome& found) {
  Json json = Json::array();
  for (std::size_t k = 0; k < found.candidates.size(); ++k) {
    const search::Candidate& one = found.candidates[k];
    json.push_back({{"name", one.name},
                    {"chosen", k == found.chosen},
                    {"verdict", one.verdict},
                    {"predicted_us", one.microseconds},
                    {"flops", one.flops},
                    {"bytes", one.bytes},
                    {"nodes", one.nodes},
                    {"launches", one.launches},
                    {"peak_bytes", one.peak_bytes}});
  }
  return json;
}

Json rules_json(const std::vector<ExplainedRule>& rules) {
  Json json = Json::array();
  for (const ExplainedRule& rule : rules)
    json.push_back({{"name", rule.use.name},
                    {"matches", rule.use.matches},
                    {"count", rule.use.fired},
                    {"reached", rule.use.reached},
                    {"predicted_us_without", rule.without_us}});
  return json;
}

Json trials_json(const std::vector<search::Trial>& trials) {
  Json json = Json::array();
  for (const search::Trial& one : trials)
    json.push_back({{"rule", one.rule},
                    {"type", one.type},
                    {"with", one.with},
                    {"predicted_us", one.microseconds},
                    {"kept", one.kept}});
  return json;
}

Json values_json(const std::vector<search::Recomputed>& kinds) {
  Json json = Json::array();
  for (const search::Recomputed& one : kinds)
    json.push_back({{"values", one.values}, {"count", one.count}, {"bytes", one.bytes}});
  return json;
}

Json times_json(const auto& list) {
  Json json = Json::array();
  for (const auto& one : list)
    json.push_back({{"name", one.name}, {"milliseconds", one.milliseconds}});
  return json;
}

Json canonical_json(const std::vector<Report::Rule>& rules) {
  Json list = Json::array();
  for (const Report::Rule& rule : rules)
    list.push_back({{"name", rule.name},
                    {"matches", rule.matches},
                    {"count", rule.count},
                    {"reached", rule.reached}});
  return list;
}

}  // namespace

std::string explanation_json(const Explanation& explanation) {
  Json document{{"subject", explanation.subject},
                {"stages", times_json(explanation.stages)},
                {"canonical", canonical_json(explanation.canonical)},
                {"steps", Json::array()}};
  for (const ExplainedStep& step : explanation.steps)
    document["steps"].push_back({{"role", step.role},
                                 {"candidates", candidates_json(step.found)},
                                 {"trials", trials_json(step.found.trials)},
                                 {"rules", rules_json(step.rules)},
                                 {"stored", values_json(step.found.stored)},
                                 {"recomputed", values_json(step.found.recomputed)},
                                 {"by_planes", step.found.by_planes},
                                 {"egraph_nodes", step.found.nodes},
                                 {"egraph_classes", step.found.classes},
                                 {"egraph_rounds", step.found.rounds},
                                 {"stop_reason", step.found.stop_reason},
                                 {"search_ms", step.search_ms()},
                                 {"stages", times_json(step.stages)},
                                 {"search_phases", times_json(step.found.phases)},
                                 {"given", kernels_json(step.given)},
                                 {"chosen", kernels_json(step.chosen)}});
  if (explanation.is_measured()) {
    document["given_ms"] = explanation.given_ms;
    document["chosen_ms"] = explanation.chosen_ms;
  }
  // Names come from users: they may be any bytes.
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pantala::tools
