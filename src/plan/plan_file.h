// A compiled plan as a file: what CompiledPlan::save() writes, load_plan() reads and the plan cache
// keeps.
//
// Layout: "PANTSTEP", the version (u32), SHA-256 of all that follows, the key (32 bytes), the
// length of a JSON text (u64) and the text (all but the plans), then for each step the length (u64)
// and the bytes of its plan (plan/serialize.h). Numbers are little-endian. A reader trusts nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "plan/compiled_plan.h"

namespace pantala::plan {

inline constexpr std::string_view kPlanFileMagic = "PANTSTEP";
inline constexpr std::uint32_t kPlanFileVersion = 4;
inline constexpr std::uint64_t kMaxPlanFileBytes = std::uint64_t{4} << 30;

std::string encode_plan(const CompiledPlan::Data& data);

// The version that a plan file claims; empty if the bytes are not a plan file at all.
std::optional<std::uint32_t> plan_file_version(std::string_view bytes);
// Checks everything up to the checksum and gives the key. ParseError otherwise.
Digest verified_key(std::string_view bytes, std::string_view file);
// ParseError for anything that is not a plan file of this version. Reports have no times.
std::shared_ptr<CompiledPlan::Data> decode_plan(std::string_view bytes, std::string_view file);

}  // namespace pantala::plan
