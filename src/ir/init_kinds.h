// Names and arguments of the initialisers, shared by printer and parser.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "pantala/init.h"

namespace pantala::init {

struct KindInfo {
  Initializer::Kind kind;
  std::string_view name;
  int arguments;  // how many of a, b, low, high are written
};
std::span<const KindInfo> kinds();
std::string_view kind_text(Initializer::Kind kind);
// TypeError where the arguments or the shape make no sense.
void check(const Initializer& init, const Type& type);

}  // namespace pantala::init
