#include "schedule/code_form.h"

#include <algorithm>

#include "base/hash.h"

namespace pantala::schedule {

std::size_t FormHash::operator()(const FormWords& words) const {
  std::uint64_t hash = kHashSeed;
  for (const std::uint64_t word : words) hash = hash_combine(hash, word);
  return hash;
}

CodeWalker::CodeWalker(const Context& context, Load load)
    : context_(context),
      load_(std::move(load)),
      met_(context.graph().nodes().size()),
      signatures_(context.graph().nodes().size()) {}

void CodeWalker::begin() {
  words_.clear();
  hosts_.clear();
  ++walk_;
  nodes_ = 0;
}

// What a value is moved from, itself if it is not.
std::uint32_t CodeWalker::moved_from(std::uint32_t id) const {
  while (is_movement(*context_.node(id).op)) id = context_.node(id).inputs[0].node;
  return id;
}

// A single number of the graph's own may become part of the code that reads it, wherever it lies.
bool CodeWalker::is_own_number(std::uint32_t id) const {
  const ir::Node& node = context_.node(id);
  return node.op == &ir::data_op() && node.results[0].shape.numel() == 1;
}

void CodeWalker::value(ValueId id) {
  word(id.result);
  if (const std::uint32_t source = moved_from(id.node); is_own_number(source))
    word(signature(source));
  if (load_(id)) return;
  if (context_.is_host(id) && std::ranges::find(hosts_, id) == hosts_.end()) hosts_.push_back(id);
  node(id.node);
}

void CodeWalker::node(std::uint32_t id) {
  Met& met = met_[id];
  const bool is_new = met.walk != walk_;
  if (is_new) met = {walk_, nodes_++};
  word(met.number);
  if (!is_new) return;
  word(signature(id));
  if (context_.is_host({id, 0})) return;
  for (const ValueId input : context_.node(id).inputs) value(input);
}

// What a node computes of its inputs.
std::uint64_t CodeWalker::signature(std::uint32_t id) {
  std::uint64_t& known = signatures_[id];
  if (known != 0) return known;
  const ir::Node& n = context_.node(id);
  std::uint64_t hash = fnv1a(n.op->name);
  const auto add = [&](std::uint64_t more) { hash = hash_combine(hash, more); };
  add(context_.is_host({id, 0}));
  for (const Type& type : n.results) {
    add(static_cast<std::uint64_t>(type.dtype));
    add(static_cast<std::uint64_t>(type.shape.rank()));
    for (const std::int64_t size : type.shape) add(static_cast<std::uint64_t>(size));
  }
  // Names of leaves are no part of what is computed: only constants have attributes that are.
  if (!ir::leaf_kind(*n.op) && !context_.is_host({id, 0}))
    for (const ir::AttrValue& attr : n.attrs) add(ir::hash_of(attr));
  add(n.inputs.size());
  known = hash;
  return known;
}

GroupForms::GroupForms(const Context& context)
    : context_(context), walker_(context, [this](ValueId id) { return load(id); }) {}

GroupForm GroupForms::of(const Group& group) {
  group_ = &group;
  form_ = {};
  walker_.begin();
  walker_.word(fnv1a(group.archetype->name));
  walker_.word(group.is_copy);
  for (const std::uint32_t anchor : group.anchors) walker_.node(anchor);
  for (const GroupOutput& output : group.outputs) {
    walker_.value(output.value);
    buffer(output.buffer);
  }
  form_.words = walker_.words();
  form_.hosts = walker_.hosts();
  return std::move(form_);
}

bool GroupForms::load(ValueId id) {
  const auto place = context_.decisions().places.find(id);
  if (place == context_.decisions().places.end()) return false;
  const bool is_made =
      !group_->is_copy &&
      std::ranges::find(group_->outputs, id, &GroupOutput::value) != group_->outputs.end();
  if (!is_made) buffer(place->second);
  return !is_made;
}

void GroupForms::buffer(std::uint32_t id) {
  const auto found = std::ranges::find(form_.buffers, id);
  walker_.word(static_cast<std::uint64_t>(found - form_.buffers.begin()));
  if (found != form_.buffers.end()) return;
  form_.buffers.push_back(id);
  const ProgramBuffer& buffer = context_.buffer(id);
  walker_.word(static_cast<std::uint64_t>(buffer.dtype));
  walker_.word(static_cast<std::uint64_t>(buffer.limit));
  walker_.words(buffer.shape.vec());
  walker_.words(buffer.order);
}

}  // namespace pantala::schedule
