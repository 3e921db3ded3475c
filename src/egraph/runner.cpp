#include "egraph/runner.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "egraph/index.h"
#include "egraph/instantiation.h"
#include "egraph/matcher.h"

namespace pantala::egraph {

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::saturated:
      return "saturated";
    case StopReason::round_limit:
      return "round limit";
    case StopReason::node_limit:
      return "node limit";
  }
  return "";
}

namespace {

// Collects matches of each rule and applies them some at a time.
class Round {
 public:
  Round(EGraph& graph, std::span<const Rule> rules, RunResult& result, std::size_t node_limit)
      : graph_(graph),
        rules_(rules),
        result_(result),
        node_limit_(node_limit),
        matcher_(graph.symbols(), rules),
        waiting_(rules.size()) {
    for (std::size_t k = 0; k < rules.size(); ++k) {
      const MatchLayout& layout = matcher_.layout(RuleId(k));
      strides_.push_back(layout.nodes + layout.registers.size());
      instantiations_.push_back(nullptr);
      if (rules[k].right)
        instantiations_.back() =
            std::make_unique<Instantiation>(graph.symbols(), rules[k], RuleId(k), layout);
    }
  }

  void run(std::uint32_t since) {
    const Index index(graph_, since);
    graph_.begin_round();
    matcher_.run(graph_, index, [this](RuleId rule, std::span<const std::uint32_t> match) {
      take(rule.index(), match);
    });
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) flush(rule);
    graph_.rebuild();
  }

 private:
  static constexpr std::size_t kTogether = 256;

  void take(std::size_t rule, std::span<const std::uint32_t> match) {
    std::vector<std::uint32_t>& waiting = waiting_[rule];
    waiting.insert(waiting.end(), match.begin(), match.end());
    if (waiting.size() >= kTogether * match.size()) flush(rule);
  }

  bool is_full() const { return graph_.nodes() > node_limit_; }

  void flush(std::size_t rule) {
    std::vector<std::uint32_t>& waiting = waiting_[rule];
    if (!is_full() && !waiting.empty()) {
      const auto start = std::chrono::steady_clock::now();
      if (rules_[rule].condition) drop_unfit(rule);
      RuleCount& count = result_.rules[rule];
      count.matches += waiting.size() / strides_[rule];
      count.fired +=
          rules_[rule].right ? instantiations_[rule]->apply(graph_, waiting) : call(rule, waiting);
      count.milliseconds +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count();
    }
    waiting.clear();
  }

  Match view(std::size_t rule, const std::uint32_t* match) const {
    const MatchLayout& layout = matcher_.layout(RuleId(rule));
    return Match({match, layout.nodes}, {match + layout.nodes, layout.registers.size()});
  }

  void drop_unfit(std::size_t rule) {
    std::vector<std::uint32_t>& waiting = waiting_[rule];
    const std::size_t stride = strides_[rule];
    std::size_t kept = 0;
    for (std::size_t at = 0; at < waiting.size(); at += stride) {
      if (!rules_[rule].condition(graph_, view(rule, waiting.data() + at))) continue;
      std::copy_n(waiting.begin() + static_cast<std::ptrdiff_t>(at), stride,
                  waiting.begin() + static_cast<std::ptrdiff_t>(kept));
      kept += stride;
    }
    waiting.resize(kept);
  }

  std::size_t call(std::size_t rule, std::span<const std::uint32_t> matches) {
    std::size_t fired = 0;
    for (std::size_t at = 0; at < matches.size(); at += strides_[rule])
      fired += rules_[rule].apply(graph_, view(rule, matches.data() + at),
                                  {RuleId(rule), NodeId(matches[at])});
    return fired;
  }

  EGraph& graph_;
  std::span<const Rule> rules_;
  RunResult& result_;
  std::size_t node_limit_;
  Matcher matcher_;
  std::vector<std::unique_ptr<Instantiation>> instantiations_;  // of rules with a right side
  std::vector<std::size_t> strides_;
  std::vector<std::vector<std::uint32_t>> waiting_;  // matches, by rule
};

}  // namespace

RunResult saturate(EGraph& graph, std::span<const Rule> rules, const RunOptions& options) {
  RunResult result;
  result.rules.resize(rules.size());
  graph.rebuild();
  Round round(graph, rules, result, options.limits.nodes);
  std::uint32_t since = 0;  // everything is fresh to rules that have not seen it
  result.stop_reason = StopReason::round_limit;
  while (result.rounds < options.limits.rounds) {
    const std::uint64_t version = graph.version();
    const std::uint32_t now = graph.round() + 1;
    round.run(options.full_matching ? 0 : since);
    since = now;
    ++result.rounds;
    if (options.on_round) options.on_round(result.rounds);
    if (graph.nodes() > options.limits.nodes) {
      result.stop_reason = StopReason::node_limit;
      break;
    }
    if (graph.version() == version) {
      result.stop_reason = StopReason::saturated;
      break;
    }
  }
  return result;
}

}  // namespace pantala::egraph
