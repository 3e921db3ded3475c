// What kernels that walk an axis in order share: the loops of a domain as lines (all walked loops
// for one index of the others), and items that are a few lines, or vectors of neighbouring lines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/arguments.h"
#include "schedule/building.h"
#include "schedule/common/elementwise.h"
#include "schedule/common/reduce/traced.h"
#include "schedule/loops.h"

namespace pantala::schedule {

constexpr double kItemCost = 16384;    // additions that are worth handing to a worker
constexpr double kSerialCost = 16384;  // less than this is not worth sharing out

struct Lines {
  std::vector<Loop> outer;    // loops that are not walked, but for `along`
  std::optional<Loop> along;  // neighbouring lines, if there are any
  int lanes = 1;              // along it

  std::int64_t columns() const { return along ? along->extent : 1; }
  std::int64_t vectors() const { return (columns() + lanes - 1) / lanes; }
  std::int64_t count() const { return total(outer) * vectors(); }
};

// Takes the loop at `position`, if there is one, out as that along which lines are neighbours.
Lines take_along(std::vector<Loop> kept, std::optional<std::size_t> position, int lanes);
// Lanes along a kept loop: the last one that some walk takes in steps of 1, or else the longest;
// none where all are short.
Lines lanes_along(const Context& context, const std::vector<Loop>& kept,
                  const std::vector<Affine>& walks);

// The loops of the domain that are not listed, in order.
std::vector<int> other_dims(const Domain& domain, const std::vector<int>& dims);

// Where the outputs' elements lie, without the loops of one iteration.
std::vector<Affine> writes_of(const Context& context, const Domain& domain,
                              const std::vector<GroupOutput>& outputs, const Indices& at);

// The threads of an item of a kernel over lines: one, which takes several lines, or a workgroup.
int line_threads(const Target& target);

// The items of a kernel over lines. Threads of a workgroup have a line each.
class LineItems {
 public:
  // `line_cost` is that of a single line, in additions.
  LineItems(kir::Builder& b, const Lines& lines, double line_cost, Arguments& arguments);
  // Calls the body for every vector of lines of the item; under a mask where it is short.
  void run(const std::function<void(const Site&)>& body) const;
  std::int64_t items() const { return (lines_.count() + item_lines_ - 1) / item_lines_; }

 private:
  kir::Builder& b_;
  const Lines& lines_;
  std::int64_t item_lines_;
  kir::Var count_, step_, length_;
  std::vector<kir::Var> extents_;
};

// The row of an archetype that walks its first operand in order, one kernel for each anchor.
template <KernelDraft (*build)(Building&, std::uint32_t, const std::vector<GroupOutput>&)>
Archetype walking_row(std::string_view name, std::vector<const ir::OpDef*> ops) {
  return {.name = name,
          .ops = std::move(ops),
          .reads = reads_of_operand,
          .build = [](Building& building, const Group& group) {
            return std::vector{build(building, group.anchors[0], group.outputs)};
          }};
}

KernelDraft finish_draft(std::string name, kir::Builder& b, const Arguments& arguments,
                         std::int64_t items, double flops);

}  // namespace pantala::schedule
