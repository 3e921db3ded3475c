// The planner of the arena: liveness over launches decides where temporaries lie in one arena.
// Nothing is allocated while a plan runs, and the peak is known before the first step. The result
// depends on the request alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace pantala::plan {

struct ArenaRequest {
  std::int64_t bytes = 0;
  bool outlives = false;  // it is read after the last launch
};

// What one launch touches: indices into the requests. A buffer that is both read and written occurs
// in both lists.
struct ArenaUse {
  std::vector<std::uint32_t> reads, writes;
  // `output` may take the place of `input`, if `input` is not needed by anything else from this
  // launch on and is at least as large.
  struct InPlace {
    std::uint32_t output = 0, input = 0;
  };
  std::vector<InPlace> in_place = {};
};

struct ArenaOptions {
  // Launches that do not depend on each other may run at once. Reusing memory between them would
  // make them wait, for a smaller arena.
  bool reuse_between_independent_launches = false;
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;   // of every request, multiples of kAlignment
  std::vector<std::uint32_t> aliases;  // the input whose place it took, or itself
  std::int64_t peak = 0;               // the largest end of a request
  std::int64_t lower_bound = 0;        // no placement with these aliases has a smaller peak
};

// Throws InternalError for a buffer that is read before it is written or never written (unless it
// has no bytes), or of negative size.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests, std::span<const ArenaUse> launches,
                     const ArenaOptions& options = {});

// Launches of one phase do not depend on each other; numbers do not fall. Equal to the number of
// barriers that an executor would need before it.
std::vector<int> launch_phases(std::size_t requests, std::span<const ArenaUse> launches);

// Gives the arena buffers of a plan their offsets, in the order and with the accesses of its
// launches, and sets arena_bytes. `outlives` lists arena buffers that are read after the step. In
// place: `in_place[k]` belongs to launch k and names buffers of the plan; it may be shorter than
// the launches.
ArenaPlan place_arena(Plan& plan, std::span<const std::uint32_t> outlives = {},
                      std::span<const std::vector<ArenaUse::InPlace>> in_place = {},
                      const ArenaOptions& options = {});

}  // namespace pantala::plan
