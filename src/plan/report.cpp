// A report for people and for programs.
#include "plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace pantala {

namespace {

using Json = nlohmann::ordered_json;

// 1234567 as "1.23 M", by the prefixes of powers of `base`.
std::string scaled(double value, double base, std::span<const std::string_view> prefixes,
                   std::string_view unit) {
  std::size_t k = 0;
  for (; value >= base && k + 1 < prefixes.size(); ++k) value /= base;
  return fmt::format("{:.{}f} {}{}", value, k == 0 ? 0 : 2, prefixes[k], unit);
}
std::string flop_text(double flop) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  return scaled(flop, 1000, kPrefixes, "flop");
}
std::string bytes_text(double bytes) {
  constexpr std::string_view kPrefixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
  return scaled(bytes, 1024, kPrefixes, "B");
}

std::string kernel_table(const std::vector<Report::Kernel>& kernels) {
  if (kernels.empty()) return "";
  std::size_t width = 6;
  for (const Report::Kernel& kernel : kernels) width = std::max(width, kernel.name.size());
  std::string text =
      fmt::format("\n{:<{}} {:>8} {:>12} {:>12}\n", "kernel", width, "launches", "work", "traffic");
  for (const Report::Kernel& kernel : kernels)
    text += fmt::format("{:<{}} {:>8} {:>12} {:>12}\n", kernel.name, width, kernel.launches,
                        flop_text(kernel.flops), bytes_text(kernel.bytes));
  return text;
}

std::string unit_table(const std::vector<Report::Unit>& units) {
  if (units.empty()) return "";
  std::size_t width = 4;
  for (const Report::Unit& unit : units) width = std::max(width, unit.name.size());
  std::string text = fmt::format("\n{:<{}} {:>10} {:>12}\n", "unit", width, "ms", "code");
  for (const Report::Unit& unit : units)
    text += fmt::format("{:<{}} {:>10.2f} {:>12}\n", unit.name, width, unit.milliseconds,
                        bytes_text(static_cast<double>(unit.code_bytes)));
  return text;
}

std::string rule_table(const Report& report) {
  if (report.rules.empty()) return "";
  std::size_t width = 4;
  for (const Report::Rule& rule : report.rules) width = std::max(width, rule.name.size());
  std::string text = fmt::format("\n{:<{}} {:>8} {:>8} {:>8} {:>10}\n", "rule", width, "matches",
                                 "fired", "reached", "ms");
  for (const Report::Rule& rule : report.rules)
    text += fmt::format("{:<{}} {:>8} {:>8} {:>8} {:>10.2f}\n", rule.name, width, rule.matches,
                        rule.count, rule.reached, rule.milliseconds);
  return text + fmt::format("e-graph: {} nodes, {} classes, stopped: {}\n", report.egraph_nodes,
                            report.egraph_classes, report.stop_reason);
}

std::string candidate_table(const std::vector<Report::Candidate>& candidates) {
  if (candidates.empty()) return "";
  std::size_t width = 9;
  for (const Report::Candidate& one : candidates) width = std::max(width, one.name.size());
  std::string text =
      fmt::format("\n  {:<{}} {:>12} {:>8} {:>8} {:>12} {:>12} {:>12}\n", "candidate", width,
                  "predicted us", "nodes", "launches", "work", "traffic", "peak");
  for (const Report::Candidate& one : candidates)
    text += fmt::format("{} {:<{}} {:>12.1f} {:>8} {:>8} {:>12} {:>12} {:>12}\n",
                        one.chosen ? '*' : ' ', one.name, width, one.predicted_us, one.nodes,
                        one.launches, flop_text(one.flops), bytes_text(one.bytes),
                        bytes_text(static_cast<double>(one.peak_bytes)));
  return text;
}

std::string values_text(std::string_view what, const std::vector<Report::Recomputed>& kinds) {
  std::string text;
  for (const Report::Recomputed& one : kinds)
    text += fmt::format("{:<14} {} x {}, {}\n", what, one.count, one.values,
                        bytes_text(static_cast<double>(one.bytes)));
  return text;
}

Json values_json(const std::vector<Report::Recomputed>& kinds) {
  Json list = Json::array();
  for (const Report::Recomputed& one : kinds)
    list.push_back({{"values", one.values}, {"count", one.count}, {"bytes", one.bytes}});
  return list;
}

std::vector<Report::Recomputed> values_from_json(const nlohmann::json& list) {
  std::vector<Report::Recomputed> kinds;
  for (const auto& one : list)
    kinds.push_back({one.at("values"), one.at("count"), one.at("bytes")});
  return kinds;
}

}  // namespace

bool Report::cached() const {
  return std::any_of(stages.begin(), stages.end(),
                     [](const Stage& stage) { return stage.name == plan::kLoadStage; });
}

std::string Report::text() const {
  double total = 0;
  std::string text = fmt::format("{:<14} {:>10}\n", "stage", "ms");
  for (const Stage& stage : stages) {
    text += fmt::format("{:<14} {:>10.2f}\n", stage.name, stage.milliseconds);
    total += stage.milliseconds;
  }
  text += fmt::format("{:<14} {:>10.2f}\n\n", "total", total);
  text += fmt::format("nodes          {} -> {}\n", nodes_before, nodes_after);
  text += fmt::format("launches       {} -> {}\n", kernels_before, kernels_after);
  text += fmt::format("one step       {}, {}\n", flop_text(flops), bytes_text(bytes));
  text += fmt::format("memory         {} temporaries and scratch, {} store\n",
                      bytes_text(static_cast<double>(peak_bytes)),
                      bytes_text(static_cast<double>(store_bytes)));
  text += values_text("computed again", recomputed) + values_text("stored", stored);
  for (const std::string& kind : by_planes) text += fmt::format("by planes      {}\n", kind);
  return text + kernel_table(kernels) + unit_table(units) + rule_table(*this) +
         candidate_table(candidates);
}

std::string Report::json() const {
  Json document{{"stages", Json::array()},
                {"nodes_before", nodes_before},
                {"nodes_after", nodes_after},
                {"kernels_before", kernels_before},
                {"kernels_after", kernels_after},
                {"flops", flops},
                {"bytes", bytes},
                {"peak_bytes", peak_bytes},
                {"store_bytes", store_bytes},
                {"predicted_us", predicted_us},
                {"cost_table", cost_table},
                {"kernels", Json::array()},
                {"launches", Json::array()},
                {"units", Json::array()},
                {"rules", Json::array()},
                {"candidates", Json::array()},
                {"recomputed", values_json(recomputed)},
                {"stored", values_json(stored)},
                {"by_planes", by_planes},
                {"egraph_nodes", egraph_nodes},
                {"egraph_classes", egraph_classes},
                {"egraph_rounds", egraph_rounds},
                {"stop_reason", stop_reason}};
  for (const Stage& stage : stages)
    document["stages"].push_back({{"name", stage.name}, {"milliseconds", stage.milliseconds}});
  for (const Kernel& kernel : kernels)
    document["kernels"].push_back({{"name", kernel.name},
                                   {"launches", kernel.launches},
                                   {"unit", kernel.unit},
                                   {"flops", kernel.flops},
                                   {"bytes", kernel.bytes}});
  for (const Launch& launch : launches)
    document["launches"].push_back({{"name", launch.name},
                                    {"kernel", launch.kernel},
                                    {"layers", launch.layers},
                                    {"ops", launch.ops},
                                    {"flops", launch.flops},
                                    {"read_bytes", launch.read_bytes},
                                    {"written_bytes", launch.written_bytes},
                                    {"predicted_us", launch.predicted_us},
                                    {"group", launch.group}});
  for (const Unit& unit : units)
    document["units"].push_back({{"name", unit.name},
                                 {"milliseconds", unit.milliseconds},
                                 {"code_bytes", unit.code_bytes}});
  for (const Rule& rule : rules)
    document["rules"].push_back({{"name", rule.name},
                                 {"matches", rule.matches},
                                 {"count", rule.count},
                                 {"reached", rule.reached},
                                 {"milliseconds", rule.milliseconds}});
  for (const Candidate& one : candidates)
    document["candidates"].push_back({{"name", one.name},
                                      {"chosen", one.chosen},
                                      {"predicted_us", one.predicted_us},
                                      {"flops", one.flops},
                                      {"bytes", one.bytes},
                                      {"nodes", one.nodes},
                                      {"launches", one.launches},
                                      {"peak_bytes", one.peak_bytes}});
  // Names of layers come from users: they may be any bytes.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pantala

namespace pantala::plan {

void add_stage(Report& report, std::string_view name, double milliseconds) {
  const auto known = std::ranges::find(report.stages, name, &Report::Stage::name);
  if (known != report.stages.end())
    known->milliseconds += milliseconds;
  else
    report.stages.push_back({std::string(name), milliseconds});
}

Report report_from_json(const nlohmann::json& document) {
  Report report;
  for (const auto& stage : document.at("stages"))
    report.stages.push_back({stage.at("name"), stage.at("milliseconds")});
  for (const auto& kernel : document.at("kernels"))
    report.kernels.push_back({kernel.at("name"), kernel.at("launches"), kernel.at("unit"),
                              kernel.at("flops"), kernel.at("bytes")});
  for (const auto& launch : document.at("launches"))
    report.launches.push_back({launch.at("name"), launch.at("kernel"), launch.at("layers"),
                               launch.at("ops"), launch.at("flops"), launch.at("read_bytes"),
                               launch.at("written_bytes"), launch.at("predicted_us"),
                               launch.at("group")});
  for (const auto& unit : document.at("units"))
    report.units.push_back({unit.at("name"), unit.at("milliseconds"), unit.at("code_bytes")});
  for (const auto& rule : document.at("rules"))
    report.rules.push_back({rule.at("name"), rule.at("matches"), rule.at("count"),
                            rule.at("reached"), rule.at("milliseconds")});
  report.recomputed = values_from_json(document.at("recomputed"));
  report.stored = values_from_json(document.at("stored"));
  document.at("by_planes").get_to(report.by_planes);
  for (const auto& one : document.at("candidates"))
    report.candidates.push_back({one.at("name"), one.at("chosen"), one.at("predicted_us"),
                                 one.at("flops"), one.at("bytes"), one.at("nodes"),
                                 one.at("launches"), one.at("peak_bytes")});
  document.at("nodes_before").get_to(report.nodes_before);
  document.at("nodes_after").get_to(report.nodes_after);
  document.at("kernels_before").get_to(report.kernels_before);
  document.at("kernels_after").get_to(report.kernels_after);
  document.at("flops").get_to(report.flops);
  document.at("bytes").get_to(report.bytes);
  document.at("peak_bytes").get_to(report.peak_bytes);
  document.at("store_bytes").get_to(report.store_bytes);
  document.at("predicted_us").get_to(report.predicted_us);
  document.at("cost_table").get_to(report.cost_table);
  document.at("egraph_nodes").get_to(report.egraph_nodes);
  document.at("egraph_classes").get_to(report.egraph_classes);
  document.at("egraph_rounds").get_to(report.egraph_rounds);
  document.at("stop_reason").get_to(report.stop_reason);
  return report;
}

}  // namespace pantala::plan
