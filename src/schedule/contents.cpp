#include "schedule/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "schedule/archetype.h"

namespace pantala::schedule {

namespace {

constexpr std::size_t kMostNames = 4;  // more are counted

// From the group's outputs back to what is stored.
struct Nodes {
  std::set<std::uint32_t> computed, parameters;  // the latter are read
  std::set<ValueId> read;
};
Nodes nodes_of(const Context& context, const Group& group) {
  Nodes nodes;
  std::vector<ValueId> work;
  const auto visit = [&](ValueId value) {
    const ir::OpDef& op = *context.node(value.node).op;
    if (ir::leaf_kind(op) == LeafKind::parameter) nodes.parameters.insert(value.node);
    const bool stands = context.is_stored(value) || context.is_host(value) || is_leaf(op);
    if (stands) nodes.read.insert(value);
    if (!stands && nodes.computed.insert(value.node).second) work.push_back(value);
  };
  for (const GroupOutput& output : group.outputs) visit(output.value);
  while (!work.empty()) {
    const ValueId value = work.back();
    work.pop_back();
    for (const ValueId input : context.node(value.node).inputs) visit(input);
  }
  return nodes;
}

// Names with how often they occur, in order of first occurrence.
class Tally {
 public:
  void add(const std::string& name) {
    const auto known = std::ranges::find(counts_, name, &Count::name);
    if (known != counts_.end())
      ++known->times;
    else
      counts_.push_back({name, 1});
  }
  bool empty() const { return counts_.empty(); }
  // "mul x3, add"
  std::string text() const {
    std::vector<std::string> words;
    for (const Count& count : counts_)
      words.push_back(count.times == 1 ? count.name
                                       : fmt::format("{} x{}", count.name, count.times));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  // "a, b, c, d and 3 more"
  std::string names() const {
    std::vector<std::string> words;
    for (std::size_t k = 0; k < std::min(counts_.size(), kMostNames); ++k)
      words.push_back(counts_[k].name);
    const std::string rest =
        counts_.size() > kMostNames ? fmt::format(" and {} more", counts_.size() - kMostNames) : "";
    return fmt::format("{}{}", fmt::join(words, ", "), rest);
  }

 private:
  struct Count {
    std::string name;
    int times;
  };
  std::vector<Count> counts_;
};

// Where no op has a label: the layers of the parameters that are read ("fc1" of "fc1.weight"), or
// else all that is made for others to see.
Tally unlabelled_layers(const Context& context, const Group& group, const Nodes& nodes) {
  Tally layers;
  for (const std::uint32_t id : nodes.parameters) {
    const std::string& name = context.graph().leaf_name(id);
    layers.add(name.substr(0, name.rfind('.')));
  }
  if (!layers.empty()) return layers;
  for (const GroupOutput& output : group.outputs)
    if (context.buffer(output.buffer).role != Role::temporary)
      layers.add(context.buffer(output.buffer).name);
  return layers;
}

// What a group makes is computed and not loaded, unless it copies.
std::vector<GroupOutput> made_by(const Group& group) {
  return group.is_copy ? std::vector<GroupOutput>{} : group.outputs;
}

}  // namespace

std::vector<GroupNodes> nodes_of(const Decisions& decisions, const Machine& machine,
                                 const ScheduleOptions& options) {
  const Context context(decisions, machine, options);
  std::vector<GroupNodes> all;
  for (const Group& group : decisions.groups) {
    const MakingScope making(context, made_by(group));
    const Nodes nodes = nodes_of(context, group);
    GroupNodes one{
        {nodes.computed.begin(), nodes.computed.end()}, {nodes.read.begin(), nodes.read.end()}, {}};
    for (const GroupOutput& output : group.outputs) one.stored.push_back(output.value);
    all.push_back(std::move(one));
  }
  return all;
}

Contents contents_of(const Context& context, const Group& group) {
  const MakingScope making(context, made_by(group));
  Tally layers, ops;
  const Nodes nodes = nodes_of(context, group);
  for (const std::uint32_t id : nodes.computed) {
    const ir::Node& node = context.node(id);
    if (!is_movement(*node.op)) ops.add(node.op->name);
    if (!node.where.label.empty()) layers.add(node.where.label);
  }
  if (ops.empty()) ops.add("copy");
  if (layers.empty()) layers = unlabelled_layers(context, group, nodes);
  return {layers.names(), ops.text()};
}

}  // namespace pantala::schedule
