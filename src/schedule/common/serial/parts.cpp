#include "schedule/common/serial/parts.h"

#include <algorithm>

namespace pantala::schedule {

using kir::Var;

namespace {

constexpr std::int64_t kFewLines = 4;  // less are not worth lanes
constexpr int kLinesOfGroup = 64;      // threads that have a line each

}  // namespace

Lines take_along(std::vector<Loop> kept, std::optional<std::size_t> position, int lanes) {
  Lines lines;
  if (position) {
    lines.along = kept[*position];
    lines.lanes = lanes;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(*position));
  }
  lines.outer = std::move(kept);
  return lines;
}

Lines lanes_along(const Context& context, const std::vector<Loop>& kept,
                  const std::vector<Affine>& walks) {
  std::optional<std::size_t> longest, unit;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (kept[k].extent < kFewLines) continue;
    if (!longest || kept[k].extent > kept[*longest].extent) longest = k;
    if (std::any_of(walks.begin(), walks.end(),
                    [&](const Affine& walk) { return walk.coef[kept[k].dim.index()] == 1; }))
      unit = k;
  }
  return take_along(kept, unit ? unit : longest, context.target.lanes(DType::f32));
}

std::vector<int> other_dims(const Domain& domain, const std::vector<int>& dims) {
  std::vector<int> others;
  for (int d = 0; d < domain.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) others.push_back(d);
  return others;
}

std::vector<Affine> writes_of(const Context& context, const Domain& domain,
                              const std::vector<GroupOutput>& outputs, const Indices& at) {
  std::vector<Affine> writes;
  for (const GroupOutput& output : outputs)
    writes.push_back(normalised(flatten(at, context.strides(output)).affine, domain));
  return writes;
}

int line_threads(const Target& target) {
  return target.has_groups() ? std::min(target.group_threads, kLinesOfGroup) : 1;
}

LineItems::LineItems(kir::Builder& b, const Lines& lines, double line_cost, Arguments& arguments)
    : b_(b),
      lines_(lines),
      item_lines_(b.threads() > 1
                      ? b.threads()
                      : std::clamp<std::int64_t>(
                            static_cast<std::int64_t>(kItemCost / (line_cost * lines.lanes)), 1,
                            std::max<std::int64_t>(lines.count(), 1))),
      count_(arguments.integer(b, "lines", lines.count())),
      step_(arguments.integer(b, "item_lines", item_lines_)) {
  if (lines.along) length_ = arguments.integer(b, "length", lines.along->extent);
  for (std::size_t k = 1; k < lines.outer.size(); ++k)
    extents_.push_back(arguments.integer(b, "extent", lines.outer[k].extent));
}

void LineItems::run(const std::function<void(const Site&)>& body) const {
  const Var first = b_.item() * step_;
  const std::function<void(Var)> run_line = [&](Var line) {
    Site site;
    if (!lines_.along) {
      place(b_, site, line, lines_.outer, extents_);
      body(site);
      return;
    }
    const int lanes = lines_.lanes;
    const Var vectors = (length_ + (lanes - 1)) / lanes;
    const Var row = line / vectors, begin = (line - row * vectors) * lanes;
    place(b_, site, row, lines_.outer, extents_);
    site.loops[lines_.along->dim.index()] = begin;
    site.lane_loop = lines_.along->dim;
    site.lanes = lanes;
    Site rest = site;
    const bool some_full = lines_.along->extent >= lanes,
               some_short = lines_.along->extent % lanes != 0;
    const auto run_short = [&] {
      rest.mask = lt(b_.iota({DType::i64, lanes}), b_.splat(length_ - begin, lanes));
      body(rest);
    };
    const Var is_full = le(begin + lanes, length_);
    if (some_full && some_short) {
      b_.branch(is_full, [&] { body(site); });
      b_.branch(lt(length_, begin + lanes), run_short);
    } else if (some_full) {
      body(site);
    } else {
      run_short();
    }
  };
  if (b_.threads() == 1) return b_.loop(first, min(first + step_, count_), b_.i64(1), run_line);
  const Var line = first + b_.thread();
  b_.branch(lt(line, count_), [&] { run_line(line); });
}

KernelDraft finish_draft(std::string name, kir::Builder& b, const Arguments& arguments,
                         std::int64_t items, double flops) {
  KernelDraft draft;
  draft.name = std::move(name);
  draft.kernel = b.finish();
  draft.set.items = items;
  draft.set.buffers = arguments.buffers();
  draft.set.params = arguments.params();
  draft.flops = flops;
  draft.serial = flops < kSerialCost || items == 1;
  return draft;
}

}  // namespace pantala::schedule
