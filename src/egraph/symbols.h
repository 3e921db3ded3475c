// Symbols: what stands at a node beside its children. The e-graph compares them by number, so that
// two convolutions that differ in their stride alone are different nodes; what a payload means is
// known to whoever interned it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "egraph/ids.h"

namespace pantala::egraph {

struct Symbol {
  OpId op;
  std::uint32_t arity = 0;
  std::uint64_t payload = 0;
};

class Symbols {
 public:
  // The op of that name, which is made if it is new.
  OpId op(std::string_view name);
  const std::string& name(OpId op) const { return names_[op]; }
  std::size_t ops() const { return names_.size(); }

  SymbolId intern(OpId op, std::uint32_t arity, std::uint64_t payload = 0);
  std::optional<SymbolId> find(OpId op, std::uint32_t arity, std::uint64_t payload) const;
  const Symbol& operator[](SymbolId id) const { return symbols_[id]; }
  std::size_t size() const { return symbols_.size(); }

 private:
  IdVector<OpId, std::string> names_;
  std::map<std::string, OpId, std::less<>> by_name_;
  IdVector<SymbolId, Symbol> symbols_;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint64_t>, SymbolId> by_content_;
};

}  // namespace pantala::egraph
