#include "egraph/symbols.h"

namespace pantala::egraph {

OpId Symbols::op(std::string_view name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  const OpId id = names_.push_back(std::string(name));
  by_name_.emplace(name, id);
  return id;
}

SymbolId Symbols::intern(OpId op, std::uint32_t arity, std::uint64_t payload) {
  const auto [at, is_new] = by_content_.try_emplace({op.index(), arity, payload});
  if (is_new) at->second = symbols_.push_back({op, arity, payload});
  return at->second;
}

std::optional<SymbolId> Symbols::find(OpId op, std::uint32_t arity, std::uint64_t payload) const {
  const auto found = by_content_.find({op.index(), arity, payload});
  if (found == by_content_.end()) return std::nullopt;
  return found->second;
}

}  // namespace pantala::egraph
