#include "schedule/archetype.h"

#include <fmt/format.h>

#include "pantala/error.h"
#include "schedule/context.h"

namespace pantala::schedule {

bool is_leaf(const ir::OpDef& op) {
  return op.leaf || &op == &ir::constant_op() || &op == &ir::data_op();
}

ArchetypeTable::ArchetypeTable(const Archetype& map, const std::vector<const Archetype*>& anchored)
    : map_(map) {
  for (const Archetype* archetype : anchored)
    for (const ir::OpDef* op : archetype->ops)
      if (const auto [it, fresh] = anchors_.emplace(op, archetype); !fresh)
        throw InternalError(
            fmt::format("schedule: '{}' is anchored by the archetypes '{}' and '{}'", op->name,
                        it->second->name, archetype->name));
}

const Archetype* ArchetypeTable::find(const ir::OpDef& op) const {
  if (is_leaf(op)) return nullptr;
  if (const auto it = anchors_.find(&op); it != anchors_.end()) return it->second;
  return is_elemental(op) ? &map_ : nullptr;
}

bool ArchetypeTable::keeps(const ir::OpDef& op) const { return is_leaf(op) || find(op) != nullptr; }

Reads reads_of(const ValueInfo& info, ValueId value, const Shape& shape) {
  const Domain domain{shape.vec()};
  Footprint found = trace(info, domain, {value}, loop_indices(shape.rank()));
  return {domain, std::move(found.accesses), found.size, std::move(found.conditional)};
}

Reads reads_of_operand(const Context& context, const ValueInfo& info, std::uint32_t node) {
  const ValueId operand = context.node(node).inputs[0];
  return reads_of(info, operand, context.type(operand).shape);
}

Reads reads_whole(const Shape& domain, const std::vector<ValueId>& values) {
  Reads reads{{domain.vec()}, {}, values.size()};
  for (const ValueId value : values) reads.accesses.push_back({value, {}, {}});
  return reads;
}

}  // namespace pantala::schedule
