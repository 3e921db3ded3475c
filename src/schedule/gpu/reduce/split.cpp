// Few long rows: blocks of them are reduced by items of their own, and combined in order.
#include <fmt/format.h>

#include "schedule/gpu/reduce/parts.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

// An item is one block of one row, or of as many rows as there are threads.
KernelDraft build_blocks(Building& building, const TracedReduce& traced, const RowSharing& sharing,
                         const std::vector<std::uint32_t>& partials) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.footprint, arguments);
  for (const std::uint32_t id : partials) arguments.will_write(id, context.buffer(id).dtype);
  kir::Builder b("blocks", sharing.threads);
  arguments.declare_buffers(b);
  const std::int64_t blocks = ceil_div(traced.count, kSumBlock), row_count = total(traced.rows);
  const Var block_count = arguments.integer(b, "blocks", blocks),
            rows = arguments.integer(b, "rows", row_count);
  const LoopNest nest(b, traced.rows, arguments);
  RowReducer reducer(b, context, traced, sharing, arguments);
  const Var group = b.item() / block_count, block = b.item() - group * block_count;
  const Var begin = block * kSumBlock, end = min(begin + kSumBlock, reducer.count());
  const auto run_row = [&](Var row) {
    Site site;
    nest.place(b, site, row);
    const std::vector<Var> results = reducer.reduce(site, begin, end, 1);
    const auto store = [&] {
      for (std::size_t k = 0; k < results.size(); ++k)
        b.store(arguments.id(partials[k]), block * rows + row, results[k]);
    };
    if (sharing.by_group)
      b.branch(eq(b.thread(), 0), store);
    else
      store();
  };
  KernelDraft draft;
  if (sharing.by_group) {
    run_row(group);
    draft.set.items = row_count * blocks;
  } else {
    const Var row = group * sharing.threads + b.thread();
    b.branch(lt(row, rows), [&] { run_row(row); });
    draft.set.items = ceil_div(row_count, sharing.threads) * blocks;
  }
  draft.name = fmt::format("blocks.{}", context.node(traced.reductions[0].value.node).op->name);
  draft.flops = traced.flops();
  return finished(std::move(draft), b, arguments);
}

// A thread per row adds up its blocks and makes the outputs.
KernelDraft build_combine(Building& building, const TracedReduce& traced, int threads,
                          const std::vector<std::uint32_t>& partials) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.made_of_rows, arguments);
  for (const std::uint32_t id : partials) arguments.will_read(id, context.buffer(id).dtype);
  for (const ReduceOutput& o : traced.outputs)
    arguments.will_write(o.to.buffer, context.type(o.to.value).dtype);
  kir::Builder b("combine", threads);
  arguments.declare_buffers(b);
  const std::int64_t row_count = total(traced.rows);
  const Var blocks = arguments.integer(b, "blocks", ceil_div(traced.count, kSumBlock)),
            rows = arguments.integer(b, "rows", row_count);
  const LoopNest nest(b, traced.rows, arguments);
  ReduceStores stores(b, traced, arguments);
  Emitter emitter = make_emitter(b, context, traced.domain, traced.made_of_rows, arguments);
  const Var row = b.item() * threads + b.thread();
  b.branch(lt(row, rows), [&] {
    std::vector<Var> totals;
    for (const Reduction& r : traced.reductions) totals.push_back(nothing(b, r));
    totals = b.loop(b.i64(0), blocks, b.i64(1), totals, [&](Var block, std::span<const Var> sums) {
      std::vector<Var> next;
      for (std::size_t k = 0; k < sums.size(); ++k)
        next.push_back(combine(b, traced.reductions[k], sums[k],
                               b.load(arguments.id(partials[k]), block * rows + row)));
      return next;
    });
    Site site;
    nest.place(b, site, row);
    for (std::size_t k = 0; k < totals.size(); ++k)
      provide_result(emitter, traced.reductions[k], totals[k]);
    emitter.enter(site);
    stores.run(emitter, site, [](const ReduceOutput&) { return true; });
  });
  KernelDraft draft;
  draft.name = fmt::format("combine.{}", context.node(traced.reductions[0].value.node).op->name);
  draft.set.items = ceil_div(row_count, threads);
  return finished(std::move(draft), b, arguments);
}

}  // namespace

std::vector<KernelDraft> build_split(Building& building, const TracedReduce& traced,
                                     const RowSharing& sharing) {
  std::vector<std::uint32_t> partials;
  for (const Reduction& r : traced.reductions)
    partials.push_back(
        building.add_scratch_tensor(fmt::format("partial.{}", r.value.node), r.dtype,
                                    {ceil_div(traced.count, kSumBlock), total(traced.rows)}));
  return {build_blocks(building, traced, sharing, partials),
          build_combine(building, traced, sharing.threads, partials)};
}

}  // namespace pantala::schedule::gpu
