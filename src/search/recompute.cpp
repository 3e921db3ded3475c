#include "search/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "ir/rewriter.h"
#include "ops/table.h"

namespace pantala::search {

namespace {

// Of the kinds of values that lie in memory at the peak, so many are looked at.
constexpr std::size_t kMostHeld = 12;
// How much of the peak must go, or it is not worth a look.
constexpr double kLeastGain = 0.005;

std::int64_t bytes_of(const Type& type) { return type.shape.numel() * dtype_bytes(type.dtype); }

// Nodes whose values leave the step: they are stored in any case.
std::set<std::uint32_t> results_of(const ir::GraphData& graph) {
  std::set<std::uint32_t> results;
  for (const auto& [name, value] : graph.outputs()) results.insert(value.node);
  for (const auto& [leaf, value] : graph.updates()) results.insert(value.node);
  return results;
}

std::set<std::uint32_t> anchors_of(const schedule::Decisions& decisions) {
  std::set<std::uint32_t> anchors;
  for (const schedule::Group& group : decisions.groups)
    anchors.insert(group.anchors.begin(), group.anchors.end());
  return anchors;
}

// Whether there is more to do than to compute elements from what is stored.
bool needs_anchor(const schedule::Decisions& decisions, const std::set<std::uint32_t>& anchors,
                  std::uint32_t node) {
  if (anchors.contains(node)) return true;
  const auto& inputs = decisions.graph->data()->node(node).inputs;
  return std::ranges::any_of(inputs, [&](ValueId input) {
    const bool is_there = decisions.places.contains(input) || decisions.host[input.node];
    return !is_there && needs_anchor(decisions, anchors, input.node);
  });
}

// What reads this is another node than what reads the value, and is not computed with it.
Tensor apart(const Tensor& value) { return ops::apply("apart", {value}, {})[0]; }

// Writes the graph twice over: up to the node `early` as it is, and behind it with the late
// versions of what is computed again.
class Late {
 public:
  Late(const Judged& judged, const std::vector<std::uint32_t>& again, std::uint32_t early)
      : judged_(judged),
        source_(*judged.graph().data()),
        early_(early),
        first_(source_, made_.data()),
        second_(
            source_, made_.data(),
            [this](ir::Rewriter& into, const ir::Node& node, const std::vector<Tensor>& inputs) {
              return made_again(into, node, inputs);
            }) {
    for (const std::uint32_t id : again) add_with_what_is_not_stored(id);
    for (const std::uint32_t id : again_) nodes_.insert(&source_.node(id));
  }

  Graph run() {
    first_.copy(values_of(0, early_ + 1));
    find_late_versions();
    // What is computed again stands right before its first reader: so it is run then.
    std::uint32_t begin = early_ + 1;
    for (std::uint32_t id = begin; id < source_.nodes().size(); ++id) {
      if (!reads_late_version(id)) continue;
      second_.copy(values_of(begin, id));
      second_.copy(values_of(id, id + 1));
      begin = id + 1;
    }
    second_.copy_needed();
    second_.write_outputs();
    second_.write_updates();
    return ir::rewrite(made_, {});  // without what nobody reads any more
  }

 private:
  std::vector<ValueId> values_of(std::uint32_t begin, std::uint32_t end) const {
    std::vector<ValueId> values;
    for (std::uint32_t id = begin; id < end; ++id)
      for (std::uint32_t k = 0; k < source_.node(id).results.size(); ++k) values.push_back({id, k});
    return values;
  }

  // What a value is made of on the way from what is stored is made again with it: were it read by
  // both versions, it would have to be stored itself.
  void add_with_what_is_not_stored(std::uint32_t id) {
    if (!again_.insert(id).second) return;
    for (const ValueId input : source_.node(id).inputs) {
      const bool is_there = source_.node(input.node).inputs.empty() ||
                            judged_.decisions.host[input.node] ||
                            judged_.decisions.places.contains(input);
      if (!is_there) add_with_what_is_not_stored(input.node);
    }
  }

  // Early nodes that late ones must not read as they are: those that are computed again, and what
  // is made of them wherever it is read.
  void find_late_versions() {
    has_late_.assign(early_ + 1, false);
    for (std::uint32_t id = 0; id <= early_; ++id) {
      const ir::Node& node = source_.node(id);
      const bool is_stored = judged_.decisions.places.contains({id, 0});
      has_late_[id] = again_.contains(id) || (!is_stored && reads_late_version(id));
      if (has_late_[id]) continue;
      for (std::uint32_t k = 0; k < node.results.size(); ++k)
        second_.set({id, k}, first_.at({id, k}));
    }
  }
  bool reads_late_version(std::uint32_t id) const {
    return std::ranges::any_of(source_.node(id).inputs, [&](ValueId input) {
      return input.node <= early_ && has_late_[input.node];
    });
  }

  ir::Rewriter::Results made_again(ir::Rewriter& into, const ir::Node& node,
                                   const std::vector<Tensor>& inputs) const {
    if (!nodes_.contains(&node)) return {};
    const auto has_late_version = [&](ValueId input) { return has_late_[input.node]; };
    const bool is_another = std::ranges::any_of(node.inputs, has_late_version);
    std::vector<Tensor> others = inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      const bool is_made = judged_.decisions.places.contains(input) &&
                           !schedule::is_leaf(*source_.node(input.node).op);
      if (!has_late_[input.node] && (is_made || (!is_another && k == 0)))
        others[k] = apart(inputs[k]);
    }
    return into.target()->append(*node.op, others, node.attrs, node.where);
  }

  const Judged& judged_;
  const ir::GraphData& source_;
  std::set<std::uint32_t> again_;
  std::unordered_set<const ir::Node*> nodes_;
  std::uint32_t early_;
  Graph made_;
  ir::Rewriter first_, second_;
  std::vector<bool> has_late_;
};

// One kind of values after another, beginning with those that free most for their time.
class Freeing {
 public:
  Freeing(Judged given, Scales& scales, std::int64_t limit)
      : best_(std::move(given)), scales_(scales), limit_(limit) {}

  // Until the limit is kept or no round brings anything.
  Judged run(std::vector<Held>& again) {
    while (best_.peak() > limit_ && round(again)) {}
    return std::move(best_);
  }

 private:
  struct Gain {
    Held held;
    double freed = 0, time = 0;
  };

  bool round(std::vector<Held>& again) {
    const Judged start = best_;
    const std::uint32_t early = last_node_at_peak(start);
    std::vector<std::uint32_t> nodes;
    for (const Gain& gain : gains(start, early)) {
      std::vector<std::uint32_t> more = nodes;
      more.insert(more.end(), gain.held.nodes.begin(), gain.held.nodes.end());
      Judged next = try_again(start, more, early);
      if (!frees(best_, next)) continue;
      best_ = std::move(next);
      nodes = std::move(more);
      again.push_back(gain.held);
      if (best_.peak() <= limit_) break;
    }
    return !nodes.empty();
  }

  std::vector<Gain> gains(const Judged& start, std::uint32_t early) {
    std::vector<Gain> gains;
    for (const Held& held : held_at_peak(start)) {
      if (gains.size() == kMostHeld) break;
      const Judged one = try_again(start, held.nodes, early);
      if (!frees(start, one)) continue;
      gains.push_back({held, static_cast<double>(start.peak() - one.peak()),
                       one.estimate.microseconds - start.estimate.microseconds});
    }
    // What takes no time comes first, the largest of it before the others.
    std::ranges::stable_sort(gains, [](const Gain& a, const Gain& b) {
      const double least = 1;  // us
      return a.freed / std::max(a.time, least) > b.freed / std::max(b.time, least);
    });
    return gains;
  }

  static bool frees(const Judged& before, const Judged& after) {
    return static_cast<double>(after.peak()) <
           (1 - kLeastGain) * static_cast<double>(before.peak());
  }

  Judged try_again(const Judged& start, const std::vector<std::uint32_t>& nodes,
                   std::uint32_t early) {
    scales_.check();
    return scales_.judge(computed_again(start, nodes, early));
  }

  Judged best_;
  Scales& scales_;
  std::int64_t limit_;
};

}  // namespace

std::uint32_t last_node_at_peak(const Judged& judged) {
  std::uint32_t last = 0;
  if (judged.decisions.groups.empty()) return last;
  const schedule::Group& group = judged.decisions.groups.at(judged.estimate.peak_group);
  for (const schedule::GroupOutput& output : group.outputs)
    last = std::max(last, output.value.node);
  return last;
}

std::vector<Held> held_at_peak(const Judged& judged) {
  const schedule::Decisions& decisions = judged.decisions;
  const ir::GraphData& graph = *decisions.graph->data();
  const std::set<std::uint32_t> results = results_of(graph);
  const std::uint32_t early = last_node_at_peak(judged);
  const std::set<std::uint32_t> anchors = anchors_of(decisions);
  std::map<std::string, Held> by_name;
  for (const schedule::Group& group : decisions.groups)
    for (const schedule::GroupOutput& output : group.outputs) {
      const auto [node, result] = std::pair(output.value.node, output.value.result);
      if (result != 0 || node > early || results.contains(node) || graph.node(node).inputs.empty())
        continue;
      const schedule::ProgramBuffer& buffer = decisions.buffers[output.buffer];
      const schedule::Life& life = judged.estimate.lives[output.buffer];
      const std::size_t peak = judged.estimate.peak_group;
      if (buffer.role != schedule::Role::temporary || !life.spans(peak) || life.last == peak)
        continue;
      const ir::Node& made = graph.node(node);
      const std::string name = fmt::format("{} {}", made.op->name, made.results[0].str());
      Held& held = by_name[name];
      held.name = name;
      held.nodes.push_back(node);
      held.bytes += bytes_of(made.results[0]);
      held.is_plain &= !needs_anchor(decisions, anchors, node);
    }
  std::vector<Held> all;
  for (auto& [name, held] : by_name) all.push_back(std::move(held));
  std::ranges::stable_sort(all, std::ranges::greater(), &Held::bytes);
  return all;
}

Graph computed_again(const Judged& judged, const std::vector<std::uint32_t>& nodes,
                     std::uint32_t early) {
  return Late(judged, nodes, early).run();
}

Judged less_stored(Judged given, Scales& scales, const StoringBounds& most,
                   std::vector<Held>& again) {
  const std::uint32_t early = last_node_at_peak(given);
  Judged best = given;
  std::vector<std::uint32_t> nodes;
  std::size_t looked_at = 0;
  for (const Held& held : held_at_peak(given)) {
    looked_at += given.graph().size();
    if (looked_at > most.nodes) break;
    if (!held.is_plain) continue;
    scales.check();
    std::vector<std::uint32_t> more = nodes;
    more.insert(more.end(), held.nodes.begin(), held.nodes.end());
    Judged next = scales.judge(computed_again(given, more, early));
    if (!pays(next, best, most.microseconds)) continue;
    best = std::move(next);
    nodes = std::move(more);
    again.push_back(held);
  }
  return best;
}

Judged within_limit(Judged given, Scales& scales, std::int64_t limit, std::vector<Held>& again) {
  return Freeing(std::move(given), scales, limit).run(again);
}

}  // namespace pantala::search
