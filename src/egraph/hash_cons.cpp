#include "egraph/hash_cons.h"

#include <bit>

namespace pantala::egraph {

void HashCons::clear_for(std::size_t nodes) {
  const std::size_t size = std::bit_ceil(4 * (nodes + 16));
  slots_.assign(size, {});
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  used_ = 0;
}

}  // namespace pantala::egraph
