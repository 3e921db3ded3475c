// A plan as bytes: what the plan cache keeps on disk.
//
// Layout, all numbers little-endian: "PANTPLAN", the version (u32), the length of the content
// (u64), a hash of the content (u64), the content. The content is the fields of plan/plan.h in
// order: lists and texts are preceded by their length (u64), kernels are their text form
// (kir/text.h). A reader trusts nothing: every length is checked against what is left before memory
// is taken, and the plan is validated.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace pantala::plan {

constexpr std::uint32_t kPlanVersion = 4;

std::vector<std::byte> serialize(const Plan& plan);

// Throws ParseError with `file` and the position for anything that is not a valid plan of this
// version.
Plan deserialize(std::span<const std::byte> bytes, std::string_view file = "plan");

// The hash that stands in the header.
std::uint64_t content_hash(std::span<const std::byte> content);

}  // namespace pantala::plan
