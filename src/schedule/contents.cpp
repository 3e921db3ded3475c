#include "schedule/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "schedule/archetype.h"

namespace pantala::schedule {

namespace {

constexpr std::size_t kMostNames = 4;  // more are counted

// The nodes that the group computes: from its outputs back to what is stored.
std::set<std::uint32_t> computed_nodes(const Context& context, const Group& group) {
  std::set<std::uint32_t> nodes;
  std::vector<ValueId> work;
  const auto visit = [&](ValueId value) {
    const bool stands =
        context.is_stored(value) || context.is_host(value) || is_leaf(*context.node(value.node).op);
    if (!stands && nodes.insert(value.node).second) work.push_back(value);
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

}  // namespace

Contents contents_of(const Context& context, const Group& group) {
  const MakingScope making(context, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
  Tally layers, ops;
  for (const std::uint32_t id : computed_nodes(context, group)) {
    const ir::Node& node = context.node(id);
    if (!is_movement(*node.op)) ops.add(node.op->name);
    if (!node.where.label.empty()) layers.add(node.where.label);
  }
  if (ops.empty()) ops.add("copy");
  if (layers.empty())
    for (const GroupOutput& output : group.outputs)
      if (context.buffer(output.buffer).role != Role::temporary)
        layers.add(context.buffer(output.buffer).name);
  return {layers.names(), ops.text()};
}

}  // namespace pantala::schedule
