#include "kir/reports.h"

#include <map>
#include <tuple>
#include <utility>

namespace pantala::kir {

namespace {

// Reports that can be one: of the same code, of conditions with as many lanes.
using Saying = std::tuple<std::vector<Value>, std::int64_t, int>;

class Merger {
 public:
  explicit Merger(Kernel kernel) : kernel_(std::move(kernel)) {}

  Kernel run() {
    merge(kernel_.body);
    return std::move(kernel_);
  }

 private:
  // Lanes of which one is enough, or the condition itself.
  Value condition_of(const Inst& report) const {
    const auto found = any_of_.find(report.args[0]);
    return found == any_of_.end() ? report.args[0] : found->second;
  }
  Saying saying_of(const Inst& report) const {
    return {{report.args.begin() + 1, report.args.end()},
            report.index,
            kernel_.type(condition_of(report)).lanes};
  }

  Value append(Block& to, Op op, std::vector<Value> args, VType type) {
    kernel_.types.push_back(type);
    const Value result{static_cast<std::uint32_t>(kernel_.types.size() - 1)};
    to.body.push_back({.op = op, .args = std::move(args), .results = {result}});
    return result;
  }

  void merge(Block& block) {
    std::map<Saying, std::size_t> left;
    for (Inst& inst : block.body) {
      for (Block& inner : inst.blocks) merge(inner);
      if (inst.op == Op::reduce_max && kernel_.type(inst.args[0]).dtype == DType::boolean)
        any_of_.emplace(inst.results[0], inst.args[0]);
      if (inst.op == Op::report) ++left[saying_of(inst)];
    }
    std::map<Saying, Value> bad;  // lanes of the reports so far
    Block out{.params = block.params, .body = {}, .yields = block.yields};
    for (Inst& inst : block.body) {
      if (inst.op != Op::report) {
        out.body.push_back(std::move(inst));
        continue;
      }
      const Saying saying = saying_of(inst);
      const Value lanes = condition_of(inst);
      const auto [sum, first] = bad.emplace(saying, lanes);
      if (!first) sum->second = append(out, Op::bit_or, {sum->second, lanes}, kernel_.type(lanes));
      if (--left[saying] > 0) continue;
      if (!first)
        inst.args[0] = std::get<int>(saying) > 1
                           ? append(out, Op::reduce_max, {sum->second}, {DType::boolean, 1})
                           : sum->second;
      out.body.push_back(std::move(inst));
    }
    block = std::move(out);
  }

  Kernel kernel_;
  std::map<Value, Value> any_of_;  // bools that say whether one of these lanes is set
};

}  // namespace

Kernel merge_reports(Kernel kernel) { return Merger(std::move(kernel)).run(); }

}  // namespace pantala::kir
