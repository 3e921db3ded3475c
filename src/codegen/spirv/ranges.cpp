#include "codegen/spirv/ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace pantala::codegen::spirv {

namespace {

using kir::Op;
using Wide = __int128;

Range full(DType dtype) {
  if (dtype == DType::i32) return {INT32_MIN, INT32_MAX};
  return dtype == DType::boolean ? Range{0, 1} : Range{};
}

// What does not fit wraps, and then can be anything.
Range checked(Wide low, Wide high, DType dtype) {
  const Range all = full(dtype);
  if (low < all.low || high > all.high) return all;
  return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

Range join(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range multiply(const Range& a, const Range& b, DType dtype) {
  const Wide products[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                           Wide{a.high} * b.high};
  return checked(*std::min_element(products, products + 4),
                 *std::max_element(products, products + 4), dtype);
}

Range divide(const Range& a, const Range& b, DType dtype) {
  if (b.low <= 0) return full(dtype);
  const std::int64_t quotients[] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
  return {*std::min_element(quotients, quotients + 4), *std::max_element(quotients, quotients + 4)};
}

Range remainder(const Range& a, const Range& b, DType dtype) {
  if (b.low <= 0) return full(dtype);
  const std::int64_t most = b.high - 1;
  return {a.low >= 0 ? 0 : std::max(a.low, -most), a.high <= 0 ? 0 : std::min(a.high, most)};
}

// Of numbers that are not negative.
Range bits_of(Op op, const Range& a, const Range& b, DType dtype) {
  if (op == Op::bit_and && (a.low >= 0 || b.low >= 0))
    return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
  if (a.low < 0 || b.low < 0) return full(dtype);
  const auto most = static_cast<std::uint64_t>(std::max(a.high, b.high));
  return {0, static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(most)) - 1)};
}

class Analysis {
 public:
  Analysis(const kir::Kernel& kernel, const Facts& facts)
      : kernel_(kernel), facts_(facts), ranges_(kernel.types.size()) {}

  std::vector<Range> run() {
    at(kernel_.body.params[0]) = {0, std::max<std::int64_t>(facts_.items - 1, 0)};
    if (kernel_.body.params.size() > 1) at(kernel_.body.params[1]) = {0, kernel_.threads - 1};
    block(kernel_.body);
    return std::move(ranges_);
  }

 private:
  Range& at(kir::Value v) { return ranges_[v.id]; }
  DType dtype(kir::Value v) const { return kernel_.type(v).dtype; }
  bool is_counted(kir::Value v) const { return is_integer(dtype(v)); }

  void block(const kir::Block& block) {
    for (const kir::Inst& inst : block.body) instruction(inst);
  }

  void instruction(const kir::Inst& inst) {
    if (inst.op == Op::loop) return loop(inst);
    if (inst.op == Op::if_) {
      for (const kir::Block& arm : inst.blocks) block(arm);
      for (std::size_t k = 0; k < inst.results.size(); ++k)
        at(inst.results[k]) = join(at(inst.blocks[0].yields[k]), at(inst.blocks[1].yields[k]));
      return;
    }
    for (const kir::Value v : inst.results)
      if (is_counted(v)) at(v) = result(inst, dtype(v));
  }

  Range arg(const kir::Inst& inst, std::size_t k) { return at(inst.args[k]); }

  Range result(const kir::Inst& inst, DType dtype) {
    switch (inst.op) {
      case Op::constant:
        return {inst.index, inst.index};
      case Op::param:
        return parameter(inst, dtype);
      case Op::add:
        return checked(Wide{arg(inst, 0).low} + arg(inst, 1).low,
                       Wide{arg(inst, 0).high} + arg(inst, 1).high, dtype);
      case Op::sub:
        return checked(Wide{arg(inst, 0).low} - arg(inst, 1).high,
                       Wide{arg(inst, 0).high} - arg(inst, 1).low, dtype);
      case Op::mul:
        return multiply(arg(inst, 0), arg(inst, 1), dtype);
      case Op::div:
        return divide(arg(inst, 0), arg(inst, 1), dtype);
      case Op::rem:
        return remainder(arg(inst, 0), arg(inst, 1), dtype);
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        return bits_of(inst.op, arg(inst, 0), arg(inst, 1), dtype);
      case Op::shl:
      case Op::shr:
        return shifted(inst, dtype);
      default:
        return moved(inst, dtype);
    }
  }

  Range moved(const kir::Inst& inst, DType dtype) {
    const Range a = inst.args.empty() ? full(dtype) : arg(inst, 0);
    switch (inst.op) {
      case Op::min:
        return {std::min(a.low, arg(inst, 1).low), std::min(a.high, arg(inst, 1).high)};
      case Op::max:
        return {std::max(a.low, arg(inst, 1).low), std::max(a.high, arg(inst, 1).high)};
      case Op::neg:
        return checked(-Wide{a.high}, -Wide{a.low}, dtype);
      case Op::abs:
        return a.low >= 0 ? a : checked(0, std::max(-Wide{a.low}, Wide{a.high}), dtype);
      case Op::select:
        return join(arg(inst, 1), arg(inst, 2));
      case Op::cast:
        return cast(inst, a, dtype);
      case Op::splat:
      case Op::extract:
      case Op::reduce_max:
      case Op::reduce_min:
      case Op::group_max:
      case Op::group_min:
        return a;
      case Op::transpose:
        return rows(inst);
      case Op::iota:
        return {0, kernel_.type(inst.results[0]).lanes - 1};
      case Op::reduce_add:
        return summed(a, kernel_.type(inst.args[0]).lanes, dtype);
      case Op::group_add:
        return summed(a, kernel_.threads, dtype);
      case Op::load:
      case Op::load_strided:
      case Op::gather:
        return kernel_.buffers[static_cast<std::size_t>(inst.index)].dtype == DType::u8
                   ? Range{0, 255}
                   : full(dtype);
      default:
        return full(dtype);
    }
  }

  Range rows(const kir::Inst& inst) {
    Range all = arg(inst, 0);
    for (const kir::Value v : inst.args) all = join(all, at(v));
    return all;
  }

  static Range summed(const Range& a, int count, DType dtype) {
    return checked(Wide{a.low} * count, Wide{a.high} * count, dtype);
  }

  Range cast(const kir::Inst& inst, const Range& a, DType to) {
    const DType from = dtype(inst.args[0]);
    if (from == DType::boolean) return {0, 1};
    return is_float(from) ? full(to) : checked(a.low, a.high, to);
  }

  Range shifted(const kir::Inst& inst, DType dtype) {
    const Range a = arg(inst, 0), by = arg(inst, 1);
    const int width = static_cast<int>(dtype_bytes(dtype)) * 8;
    if (by.low < 0 || by.high >= width) return full(dtype);
    if (inst.op == Op::shr)
      return {std::min(a.low >> by.low, a.low >> by.high),
              std::max(a.high >> by.low, a.high >> by.high)};
    const auto most = static_cast<int>(by.high);
    if (most > 62) return full(dtype);
    return multiply(a, {std::int64_t{1} << by.low, std::int64_t{1} << most}, dtype);
  }

  Range parameter(const kir::Inst& inst, DType dtype) {
    const auto k = static_cast<std::size_t>(inst.index);
    if (k >= facts_.params.size() || facts_.params[k].uniform) return full(dtype);
    return checked(facts_.params[k].low, facts_.params[k].high, dtype);
  }

  // Carried numbers begin as they are given and grow until a round does not change them; the third
  // time that one grows it can be anything.
  void loop(const kir::Inst& inst) {
    const kir::Block& body = inst.blocks[0];
    index_range(inst);
    const std::size_t carried = body.params.size() - 1;
    std::vector<int> grown(carried);
    for (std::size_t k = 0; k < carried; ++k) at(body.params[k + 1]) = arg(inst, k + 3);
    for (bool again = true; again;) {
      again = false;
      block(body);
      for (std::size_t k = 0; k < carried; ++k) {
        const kir::Value param = body.params[k + 1];
        if (!is_counted(param)) continue;
        const std::optional<Range> steps = stepped(inst, k);
        const Range all = join(at(param), steps ? *steps : at(body.yields[k]));
        if (all == at(param)) continue;
        at(param) = ++grown[k] <= 2 ? all : full(dtype(param));
        again = true;
      }
    }
    for (std::size_t k = 0; k < carried; ++k) at(inst.results[k]) = at(body.params[k + 1]);
  }

  void index_range(const kir::Inst& inst) {
    const Range begin = arg(inst, 0), end = arg(inst, 1), step = arg(inst, 2);
    const Wide last = Wide{end.high} - 1;
    Range& index = at(inst.blocks[0].params[0]);
    index = {begin.low, std::max(begin.low, static_cast<std::int64_t>(last))};
    // What comes after the last one is computed, too, and the first one if there is no other.
    if (last + step.high > INT32_MAX || end.low < INT32_MIN || !begin.fits32()) index = {};
  }

  // A number that every round adds a step to ends a known number of steps away; none if this is not
  // such a one.
  std::optional<Range> stepped(const kir::Inst& inst, std::size_t k) {
    const kir::Block& body = inst.blocks[0];
    const kir::Value param = body.params[k + 1];
    const auto made = std::ranges::find_if(body.body, [&](const kir::Inst& one) {
      return one.op == Op::add && one.results[0] == body.yields[k] &&
             (one.args[0] == param || one.args[1] == param);
    });
    if (made == body.body.end()) return std::nullopt;
    const Range by = at(made->args[made->args[0] == param ? 1 : 0]), start = arg(inst, k + 3);
    const Range begin = arg(inst, 0), end = arg(inst, 1), step = arg(inst, 2);
    if (step.low <= 0) return std::nullopt;
    const Wide rounds = std::max(Wide{0}, (Wide{end.high} - begin.low + step.low - 1) / step.low);
    if (rounds > INT32_MAX) return std::nullopt;
    return checked(start.low + std::min(Wide{0}, rounds * by.low),
                   start.high + std::max(Wide{0}, rounds * by.high), dtype(param));
  }

  const kir::Kernel& kernel_;
  const Facts& facts_;
  std::vector<Range> ranges_;
};

}  // namespace

std::vector<Range> find_ranges(const kir::Kernel& kernel, const Facts& facts) {
  return Analysis(kernel, facts).run();
}

namespace {

double rounds_of(const kir::Block& block, const std::vector<Range>& ranges) {
  double all = 0;
  for (const kir::Inst& inst : block.body) {
    double inner = 0;
    for (const kir::Block& one : inst.blocks) inner += rounds_of(one, ranges);
    if (inst.op != Op::loop) {
      all += inner;
      continue;
    }
    const auto range = [&](std::size_t k) { return ranges[inst.args[k].id]; };
    const double span = static_cast<double>(range(1).high) - static_cast<double>(range(0).low),
                 step = static_cast<double>(std::max<std::int64_t>(range(2).low, 1));
    all += std::ceil(std::max(span, 0.0) / step) * (1 + inner);
  }
  return all;
}

}  // namespace

double most_rounds(const kir::Kernel& kernel, const std::vector<Range>& ranges) {
  return rounds_of(kernel.body, ranges);
}

}  // namespace pantala::codegen::spirv
