// Rows reduced by a workgroup or by a thread each: a pass for each level of reductions that wait
// for others, and a last one for what is made of all of them.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/gpu/reduce/parts.h"

namespace pantala::schedule::gpu {

using kir::Var;

RowReducer::RowReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
                       const RowSharing& sharing, Arguments& arguments)
    : b_(b),
      traced_(traced),
      sharing_(sharing),
      count_(arguments.integer(b, "count", traced.count)),
      elements_(b, traced.elements, arguments),
      made_(b, traced.made, arguments),
      emitter_(make_emitter(b, context, traced.domain, traced.footprint, arguments)) {}

namespace {

kir::Op group_op(kir::Op op) {
  if (op == kir::Op::add) return kir::Op::group_add;
  return op == kir::Op::max ? kir::Op::group_max : kir::Op::group_min;
}

}  // namespace

std::vector<Var> RowReducer::reduce(const Site& row, Var begin, Var end, int level,
                                    const std::function<void(const Site&)>& beside) {
  std::vector<const Reduction*> now;
  std::vector<Var> sums;
  for (const Reduction& r : traced_.reductions)
    if (r.level == level) now.push_back(&r), sums.push_back(nothing(b_, r));
  const Var first = sharing_.by_group ? begin + b_.thread() : begin;
  const Var step = b_.i64(sharing_.by_group ? sharing_.threads : 1);
  sums = b_.loop(first, end, step, sums, [&](Var r, std::span<const Var> before) {
    Site site = row;
    elements_.place(b_, site, r);
    emitter_.enter(site);
    std::vector<Var> next;
    for (std::size_t k = 0; k < now.size(); ++k)
      next.push_back(
          combine(b_, *now[k], before[k], emitter_.value(now[k]->operand, traced_.reduced)));
    if (beside) beside(site);
    return next;
  });
  if (sharing_.by_group)
    for (std::size_t k = 0; k < now.size(); ++k) sums[k] = b_.group(group_op(now[k]->op), sums[k]);
  return sums;
}

void RowReducer::provide(int level, const std::vector<Var>& results) {
  std::size_t next = 0;
  for (const Reduction& r : traced_.reductions)
    if (r.level == level) provide_result(emitter_, r, results[next++]);
}

void RowReducer::make(const Site& row, const std::function<void(const Site&)>& body) {
  const Var first = sharing_.by_group ? b_.thread() : b_.i64(0);
  b_.loop(first, count_, b_.i64(sharing_.by_group ? sharing_.threads : 1), [&](Var number) {
    Site site = row;
    made_.place(b_, site, number);
    emitter_.enter(site);
    body(site);
  });
}

ReduceStores::ReduceStores(kir::Builder& b, const TracedReduce& traced, Arguments& arguments)
    : b_(b), traced_(traced) {
  for (const ReduceOutput& o : traced.outputs)
    writes_.push_back(arguments.access(b, o.to.buffer, o.write));
}

void ReduceStores::run(Emitter& emitter, const Site& site,
                       const std::function<bool(const ReduceOutput&)>& which) {
  std::vector<std::pair<std::size_t, Var>> values;
  for (std::size_t k = 0; k < traced_.outputs.size(); ++k)
    if (which(traced_.outputs[k]))
      values.emplace_back(k, emitter.value(traced_.outputs[k].to.value, traced_.outputs[k].at));
  for (const auto& [k, value] : values) store_output(b_, writes_[k], site, value);
}

KernelDraft build_rows(Building& building, const TracedReduce& traced, const RowSharing& sharing) {
  const Context& context = building.context();
  Arguments arguments = building.arguments();
  announce_reads(context, traced.footprint, arguments);
  for (const ReduceOutput& o : traced.outputs)
    arguments.will_write(o.to.buffer, context.type(o.to.value).dtype);
  kir::Builder b("rows", sharing.threads);
  arguments.declare_buffers(b);
  const std::int64_t rows = total(traced.rows);
  const Var row_count = arguments.integer(b, "rows", rows);
  const LoopNest nest(b, traced.rows, arguments);
  ReduceStores stores(b, traced, arguments);
  RowReducer reducer(b, context, traced, sharing, arguments);

  const auto per_row = [](const ReduceOutput& o) { return o.per_row; };
  const auto of_level = [](int level) {
    return [level](const ReduceOutput& o) { return !o.per_row && o.level == level; };
  };
  const auto run_row = [&](Var row) {
    Site site;
    nest.place(b, site, row);
    // Outputs of the full shape are stored in the first pass that knows all that they need.
    for (int level = 1; level <= traced.levels; ++level) {
      const auto beside = [&](const Site& at) {
        stores.run(reducer.emitter(), at, of_level(level - 1));
      };
      reducer.provide(level, reducer.reduce(site, b.i64(0), reducer.count(), level, beside));
    }
    if (std::ranges::any_of(traced.outputs, of_level(traced.levels))) {
      reducer.make(site, [&](const Site& at) {
        stores.run(reducer.emitter(), at, of_level(traced.levels));
      });
      // What belongs to the row may be written over what the last pass has read.
      if (sharing.by_group) b.barrier();
    }
    const auto finish = [&] {
      reducer.emitter().enter(site);
      stores.run(reducer.emitter(), site, per_row);
    };
    if (std::ranges::none_of(traced.outputs, per_row)) return;
    if (sharing.by_group)
      b.branch(eq(b.thread(), 0), finish);
    else
      finish();
  };
  if (sharing.by_group) {
    run_row(b.item());
  } else {
    const Var row = b.item() * sharing.threads + b.thread();
    b.branch(lt(row, row_count), [&] { run_row(row); });
  }
  KernelDraft draft;
  draft.name = fmt::format("rows.{}", context.node(traced.reductions.back().value.node).op->name);
  draft.flops = traced.flops();
  draft.set.items = sharing.by_group ? rows : ceil_div(rows, sharing.threads);
  return finished(std::move(draft), b, arguments);
}

}  // namespace pantala::schedule::gpu
