// pantala scale: what more ranks would bring, before anybody rents them.
#include <fmt/format.h>

#include <memory>

#include "io/file.h"
#include "io/json.h"
#include "monitor/chart.h"
#include "monitor/records.h"
#include "pantala/error.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/scale_ranks.h"
#include "tools/subject_options.h"

namespace pantala::tools {

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  pantala scale resnet18 --batch 32 --ranks 1..64 --network 10G\n"
    "  pantala scale lenet --batch 64 --ranks 1..1024 --network 100G --step-ms 9.5\n"
    "Every rank has the whole --batch. Times are the compiler's estimate, of one core of the\n"
    "processor of its cost table, unless --step-ms says what was measured (pantala bench).\n";

struct ScaleOptions {
  InspectSubject subject;
  std::string ranks = "1..1024", network = "10G", plot = "scale.svg";
  double latency_us = 30, step_ms = 0;
  bool late = false, json = false;
};

struct Row {
  distributed::StepPrediction prediction;
  std::int64_t memory, sharded;
};

std::string draw(const ScaleOptions& options, const std::vector<Row>& rows) {
  monitor::Chart chart;
  chart.title = fmt::format("{} on many ranks, {} network", options.subject.name, options.network);
  chart.x_label = "ranks";
  chart.y_label = "efficiency, %";
  chart.log_x = true;
  chart.y_from_zero = true;
  monitor::Curve curve{.label = "step of one rank / step", .stroke = monitor::Stroke::marked};
  for (const Row& row : rows)
    curve.points.push_back(
        {static_cast<double>(row.prediction.ranks), 100 * row.prediction.efficiency});
  chart.curves = {std::move(curve)};
  return monitor::svg(chart);
}

void print_table(const std::vector<Row>& rows) {
  constexpr double kMega = 1048576;
  fmt::print("{:>7}{:>12}{:>14}{:>12}{:>12}{:>14}{:>16}\n", "ranks", "step ms", "messages ms",
             "exposed ms", "efficiency", "memory MiB", "shard_optimizer");
  for (const Row& row : rows)
    fmt::print("{:>7}{:>12.3f}{:>14.3f}{:>12.3f}{:>11.1f}%{:>14.1f}{:>16.1f}\n",
               row.prediction.ranks, 1e3 * row.prediction.step, 1e3 * row.prediction.communication,
               1e3 * row.prediction.exposed, 100 * row.prediction.efficiency,
               static_cast<double>(row.memory) / kMega, static_cast<double>(row.sharded) / kMega);
}

int scale(const ScaleOptions& options) {
  const auto counts = rank_counts(options.ranks);
  const distributed::Network network = network_of(options.network, options.latency_us);
  const ScaledModel model = scaled_model(
      options.subject, options.step_ms > 0 ? std::optional(options.step_ms) : std::nullopt);
  std::vector<Row> rows;
  for (const std::int64_t ranks : counts)
    rows.push_back({distributed::predict(model.step, network, ranks, !options.late),
                    model.memory(ranks, false), model.memory(ranks, true)});
  io::write_file(options.plot, draw(options, rows));
  if (!options.json) {
    print_table(rows);
    fmt::print("plot: {}\n", options.plot);
    return 0;
  }
  io::OrderedJson json{{"model", options.subject.name},
                       {"network", options.network},
                       {"latency_us", options.latency_us},
                       {"plot", monitor::printable(options.plot)}};
  for (const Row& row : rows)
    json["ranks"].push_back({{"ranks", row.prediction.ranks},
                             {"step_ms", 1e3 * row.prediction.step},
                             {"communication_ms", 1e3 * row.prediction.communication},
                             {"exposed_ms", 1e3 * row.prediction.exposed},
                             {"efficiency", row.prediction.efficiency},
                             {"memory_bytes", row.memory},
                             {"memory_bytes_shard_optimizer", row.sharded}});
  fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace

Run scale_verb(VerbOptions& verb) {
  const auto options = std::make_shared<ScaleOptions>();
  add_subject_options(verb, options->subject);
  verb.add_option("--ranks", options->ranks, "A number, or a range whose powers of two are shown")
      ->capture_default_str();
  verb.add_option("--network", options->network, "Bits a second of a rank's network: 10G, 100G")
      ->capture_default_str();
  verb.add_option("--latency", options->latency_us, "Microseconds that a message takes at least")
      ->capture_default_str();
  verb.add_option("--step-ms", options->step_ms,
                  "Milliseconds of a step on one rank, where they were measured");
  verb.add_flag("--no-overlap", options->late,
                "Gradients travel after the backward pass (distributed.overlap = false)");
  verb.add_option("--plot", options->plot, "The SVG file")->capture_default_str();
  verb.add_flag("--json", options->json, "The numbers as one JSON object");
  verb.footer(kExamples);
  return [options] { return scale(*options); };
}

}  // namespace pantala::tools
