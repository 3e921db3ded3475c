// The e-graph engine on the reference workload: an object per round with the nodes after it and the
// milliseconds that it took. `--json` prints them one per line; the best of three runs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <vector>

#include "egraph/runner.h"
#include "support/math_workload.h"

namespace {

using namespace pantala;

struct Row {
  std::size_t nodes = 0;
  double milliseconds = 0;
};

std::vector<Row> run(std::size_t rounds) {
  egraph::EGraph graph;
  const std::vector<egraph::Rule> rules = tests::math_rules(graph);
  tests::add_math_terms(graph);
  std::vector<Row> rows = {{graph.nodes(), 0}};
  auto last = std::chrono::steady_clock::now();
  egraph::RunOptions options;
  options.limits = {rounds, 1'000'000'000};
  options.on_round = [&](std::size_t) {
    const auto now = std::chrono::steady_clock::now();
    rows.push_back({graph.nodes(), std::chrono::duration<double, std::milli>(now - last).count()});
    last = std::chrono::steady_clock::now();
  };
  egraph::saturate(graph, rules, options);
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::size_t rounds = 11;
  for (int k = 1; k < argc; ++k) {
    const char* end = argv[k] + std::strlen(argv[k]);
    if (!std::strcmp(argv[k], "--json"))
      json = true;
    else if (std::from_chars(argv[k], end, rounds).ptr != end) {
      fmt::print(stderr, "usage: bench_egraph [ROUNDS] [--json]\n");
      return 2;
    }
  }
  std::vector<Row> best = run(rounds);
  for (int again = 0; again < 2; ++again) {
    const std::vector<Row> rows = run(rounds);
    for (std::size_t k = 0; k < rows.size(); ++k)
      best[k].milliseconds = std::min(best[k].milliseconds, rows[k].milliseconds);
  }
  for (std::size_t k = 0; k < best.size(); ++k)
    fmt::print(fmt::runtime(json ? "{{\"step\": {}, \"nodes\": {}, \"milliseconds\": {:.3f}}}\n"
                                 : "step {:2}  {:8} nodes  {:9.3f} ms\n"),
               k, best[k].nodes, best[k].milliseconds);
}
