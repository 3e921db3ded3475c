// Gradients that travel together: neighbours in the order in which the backward pass completes
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace pantala::train {

struct Bucket {
  std::size_t first = 0, last = 0;          // elements, of all gradients one behind the other
  std::size_t first_sum = 0, last_sum = 0;  // gradients
};

// A gradient with so many elements is a bucket of its own.
inline constexpr std::size_t kAlone = std::size_t{1} << 17;

// Of gradients with so many elements each. Buckets are large enough that a message is worth its
// way, and several, so that most can travel early. None goes across the gradient `cut`.
std::vector<Bucket> buckets_of(std::span<const std::size_t> elements, std::size_t cut = 0);

// After so many launches of the plan nothing of the store's entry is touched any more.
std::int64_t last_launch(const plan::Plan& plan, const std::string& name);

}  // namespace pantala::train
