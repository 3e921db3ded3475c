// The first values of one leaf, in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "pantala/init.h"

namespace pantala::init {

// Of a float type: what make() gives. Each value is a function of its index alone, so that any part
// can be made at any time, and several threads can make theirs.
class Values {
 public:
  // TypeError as make().
  Values(const Initializer& init, const Type& type, std::string_view name, std::uint64_t seed);
  // The elements from `first` on, rounded to the type.
  void fill(std::int64_t first, std::span<double> out) const;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace pantala::init
