#include "schedule/group_form.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"

namespace pantala::schedule {

namespace {

// Walks the code of a group from its results to what is stored. Nodes and buffers get numbers in
// the order in which they are met.
class Walker {
 public:
  Walker(const Context& context, const Group& group) : context_(context), group_(group) {}

  GroupForm run() {
    word(fnv1a(group_.archetype->name));
    word(group_.is_copy);
    for (const std::uint32_t anchor : group_.anchors) node(anchor);
    for (const GroupOutput& output : group_.outputs) {
      value(output.value);
      buffer(output.buffer);
    }
    return std::move(form_);
  }

 private:
  void word(std::uint64_t value) { form_.words.push_back(value); }
  template <class Numbers>
  void words(const Numbers& numbers) {
    word(numbers.size());
    for (const auto number : numbers) word(static_cast<std::uint64_t>(number));
  }

  // Whether the group loads it.
  bool is_loaded(ValueId id) const {
    if (!context_.decisions().places.contains(id)) return false;
    return group_.is_copy ||
           std::ranges::find(group_.outputs, id, &GroupOutput::value) == group_.outputs.end();
  }

  void value(ValueId id) {
    word(id.result);
    if (is_loaded(id))
      buffer(context_.buffer_of(id));
    else
      node(id.node);
  }

  void buffer(std::uint32_t id) {
    const auto found = std::ranges::find(form_.buffers, id);
    word(static_cast<std::uint64_t>(found - form_.buffers.begin()));
    if (found != form_.buffers.end()) return;
    form_.buffers.push_back(id);
    const ProgramBuffer& buffer = context_.buffer(id);
    word(static_cast<std::uint64_t>(buffer.dtype));
    word(static_cast<std::uint64_t>(buffer.limit));
    words(buffer.shape.vec());
    words(buffer.order);
  }

  void node(std::uint32_t id) {
    const auto [at, is_new] = nodes_.try_emplace(id, nodes_.size());
    word(at->second);
    if (!is_new) return;
    const ir::Node& n = context_.node(id);
    word(fnv1a(n.op->name));
    if (context_.is_host({id, 0})) return;
    // Names of leaves are no part of what is computed: only constants have attributes that are.
    if (!ir::leaf_kind(*n.op))
      for (const ir::AttrValue& attr : n.attrs) word(ir::hash_of(attr));
    for (const Type& type : n.results) {
      word(static_cast<std::uint64_t>(type.dtype));
      words(type.shape.vec());
    }
    word(n.inputs.size());
    for (const ValueId input : n.inputs) value(input);
  }

  const Context& context_;
  const Group& group_;
  GroupForm form_;
  std::unordered_map<std::uint32_t, std::uint64_t> nodes_;
};

}  // namespace

GroupForm form_of(const Context& context, const Group& group) {
  return Walker(context, group).run();
}

}  // namespace pantala::schedule
