#include "schedule/gpu/map/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/common/map.h"
#include "schedule/gpu/elements.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

constexpr int kThreads = 128;
constexpr int kLanes = 4;
constexpr std::int64_t kManyItems = 4096;  // more than these take several elements a thread
constexpr std::int64_t kMostElements = 16;

KernelDraft build_map(Building& building, const std::vector<GroupOutput>& outputs) {
  const Context& context = building.context();
  const ElementwiseBody body = map_body(context, outputs);
  const std::vector<Loop> loops = collapse(body.domain, context.buffer(outputs[0].buffer).order,
                                           all_walks(body), body.footprint.counted);
  // Four neighbours a thread where lines are whole fours.
  const bool in_fours = !loops.empty() && loops.back().extent % kLanes == 0;
  std::vector<Loop> places = loops;
  if (in_fours) places.back().extent /= kLanes;
  const std::int64_t elements = body.domain.empty() ? 0 : total(places);
  const int threads = std::min(kThreads, context.target.group_threads);
  const std::int64_t each =
      std::clamp<std::int64_t>(elements / (threads * kManyItems), 1, kMostElements);

  Arguments arguments = building.arguments();
  announce(context, body, arguments);
  kir::Builder b("map", threads);
  arguments.declare_buffers(b);
  const Var count = arguments.integer(b, "elements", elements),
            step = arguments.integer(b, "item_elements", threads * each);
  const LoopNest nest(b, places, arguments);
  BodyEmitter emitter(b, context, body, arguments);
  const auto element = [&](Var number) {
    Site site;
    nest.place(b, site, number);
    if (in_fours) {
      site.lane_loop = loops.back().dim;
      site.lanes = kLanes;
      Var& first = site.loops[site.lane_loop.index()];
      first = first * kLanes;
    }
    emitter.run(site);
  };
  const Var first = b.item() * step;
  if (each == 1) {
    const Var number = first + b.thread();
    b.branch(lt(number, count), [&] { element(number); });
  } else {
    b.loop(first + b.thread(), min(first + step, count), b.i64(threads), element);
  }
  KernelDraft draft;
  draft.name = fmt::format("map.{}", context.node(outputs[0].value.node).op->name);
  draft.flops = static_cast<double>(elements) * (in_fours ? kLanes : 1) * body.footprint.cost;
  draft.set.items = ceil_div(elements, threads * each);
  return finished(std::move(draft), b, arguments);
}

}  // namespace

const Archetype& map_archetype() {
  static const Archetype row = map_row([](Building& building, const Group& group) {
    return std::vector{build_map(building, group.outputs)};
  });
  return row;
}

}  // namespace pantala::schedule::gpu
