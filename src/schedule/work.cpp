#include "schedule/work.h"

#include <algorithm>
#include <cmath>

#include "schedule/archetype.h"

namespace pantala::schedule {

namespace {

constexpr double kLineBytes = 64;  // of a cache

double elements_of(const Context& context, std::uint32_t buffer) {
  return static_cast<double>(context.buffer(buffer).shape.numel());
}
double element_bytes(const Context& context, std::uint32_t buffer) {
  return static_cast<double>(dtype_bytes(context.buffer(buffer).dtype));
}
double count_of(const Domain& domain) {
  double count = 1;
  for (const std::int64_t size : domain.sizes) count *= static_cast<double>(size);
  return count;
}

// Several ways to use a buffer are one use: what they touch may be the same elements, and there are
// no more of them than the buffer has.
void add_use(const Context& context, const MemoryUse& more, Work& work) {
  const auto like = std::ranges::find_if(work.uses, [&](const MemoryUse& use) {
    return use.buffer == more.buffer && use.is_write == more.is_write && use.kernel == more.kernel;
  });
  MemoryUse& use =
      like != work.uses.end()
          ? *like
          : work.uses.emplace_back(
                MemoryUse{.buffer = more.buffer, .is_write = more.is_write, .kernel = more.kernel});
  const double all = elements_of(context, more.buffer);
  use.elements = std::min(use.elements + more.elements, all);
  use.bytes = std::min(use.bytes + more.bytes, all * element_bytes(context, more.buffer));
  use.accesses += more.accesses;
  use.stride = std::max(use.stride, more.stride);
  use.jumps = use.jumps || more.jumps;
}

std::size_t lane_of(const Walk& walk) {
  if (walk.lane.valid()) return walk.lane.index();
  std::size_t last = 0;
  for (std::size_t d = 0; d < walk.domain.sizes.size(); ++d)
    if (walk.domain.sizes[d] > 1) last = d;
  return last;
}

Stride stride_of(const Walk& walk, const Access& access) {
  if (!access.offset_strides.empty() && walk.is_led) return Stride::gathered;
  const std::int64_t step = std::abs(access.flat.coef[lane_of(walk)]);
  return step == 0 ? Stride::none : step == 1 ? Stride::unit : Stride::strided;
}

bool jumps(const Walk& walk, const Access& access, double element) {
  if (!walk.inner.valid()) return false;
  const std::int64_t step = std::abs(access.flat.coef[walk.inner.index()]);
  return static_cast<double>(step) * element > kLineBytes;
}

// The elements that an access reaches, and how many bytes apart they lie at least.
struct Reach {
  double elements = 1, bytes_apart = 0;
};
Reach reach_of(const Walk& walk, const Access& access, double times, double element) {
  Reach reach;
  std::int64_t least = 0;
  for (std::size_t d = 0; d < walk.domain.sizes.size(); ++d) {
    const std::int64_t step = std::abs(access.flat.coef[d]);
    if (step == 0 || walk.domain.sizes[d] == 1) continue;
    reach.elements *= static_cast<double>(walk.domain.sizes[d]);
    least = least == 0 ? step : std::min(least, step);
  }
  if (access.offset_strides.empty()) {
    // Loops that meet at the same elements (x[i + j]) touch no more than lie between the ends.
    const Interval all = range(access.flat, walk.domain);
    reach.elements = std::min(reach.elements, static_cast<double>(all.high - all.low + 1));
    reach.bytes_apart = least == 0 ? element : static_cast<double>(least) * element;
  } else {
    // Every element of the code may be led to another one.
    reach.elements = count_of(walk.domain) * times;
    reach.bytes_apart = least == 0 ? kLineBytes : static_cast<double>(least) * element;
  }
  return reach;
}

// Of an archetype whose row does not say: what the anchors read, and all outputs.
Work plain_work(const Context& context, const Group& group) {
  Work work;
  for (const std::uint32_t anchor : group.anchors) {
    const Reads reads = group.archetype->reads(context, context.info(), anchor);
    for (const Access& access : reads.accesses)
      add_access(context, {.domain = reads.domain}, context.buffer_of(access.value), false, access,
                 1, work);
    work.flops += count_of(reads.domain);
  }
  for (const GroupOutput& output : group.outputs) add_whole(context, output.buffer, true, 1, work);
  return work;
}

double sum_of(const std::vector<MemoryUse>& uses, bool is_write) {
  double bytes = 0;
  for (const MemoryUse& use : uses)
    if (use.is_write == is_write) bytes += use.bytes;
  return bytes;
}

}  // namespace

double Work::read_bytes() const { return sum_of(uses, false); }
double Work::written_bytes() const { return sum_of(uses, true); }

void add_access(const Context& context, const Walk& walk, std::uint32_t buffer, bool is_write,
                const Access& access, double times, Work& work) {
  if (walk.domain.empty()) return;
  const double element = element_bytes(context, buffer);
  const Reach reach = reach_of(walk, access, times, element);
  const double elements = std::min(reach.elements, elements_of(context, buffer));
  add_use(context,
          {.buffer = buffer,
           .is_write = is_write,
           .stride = stride_of(walk, access),
           .elements = elements,
           .accesses = count_of(walk.domain) * times,
           .bytes = elements * std::max(element, std::min(reach.bytes_apart, kLineBytes)),
           .jumps = jumps(walk, access, element),
           .kernel = walk.kernel},
          work);
}

void add_reads(const Context& context, const Walk& walk, const Footprint& footprint, Work& work) {
  Walk led = walk;
  const std::size_t lane = lane_of(walk);
  led.is_led = footprint.counted[lane] || footprint.leads[lane];
  for (std::size_t k = 0; k < footprint.accesses.size(); ++k)
    add_access(context, led, context.buffer_of(footprint.accesses[k].value), false,
               footprint.accesses[k], footprint.loads[k], work);
}

void add_write(const Context& context, const Walk& walk, std::uint32_t buffer, const Affine& write,
               Work& work) {
  double count = 1;
  for (std::size_t d = 0; d < walk.domain.sizes.size(); ++d)
    if (write.coef[d] != 0) count *= static_cast<double>(walk.domain.sizes[d]);
  add_access(context, walk, buffer, true, {{}, write, {}},
             count / std::max(count_of(walk.domain), 1.0), work);
}

void add_whole(const Context& context, std::uint32_t buffer, bool is_write, double times,
               Work& work, int kernel) {
  const double elements = elements_of(context, buffer);
  add_use(context,
          {.buffer = buffer,
           .is_write = is_write,
           .stride = Stride::unit,
           .elements = elements,
           .accesses = elements * times,
           .bytes = elements * element_bytes(context, buffer),
           .kernel = kernel},
          work);
}

Work work_of(const Context& context, const Group& group) {
  const MakingScope making(context, group.is_copy ? std::vector<GroupOutput>{} : group.outputs);
  return group.archetype->work != nullptr ? group.archetype->work(context, group)
                                          : plain_work(context, group);
}

std::vector<Work> work_of(const Decisions& decisions, const Machine& machine,
                          const ScheduleOptions& options) {
  const Context context(decisions, machine, options);
  std::vector<Work> all;
  for (const Group& group : decisions.groups) all.push_back(work_of(context, group));
  return all;
}

}  // namespace pantala::schedule
