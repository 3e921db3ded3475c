#include "kir/simplify.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "kir/dead_code.h"
#include "kir/fold.h"
#include "kir/reports.h"
#include "kir/verify.h"

namespace pantala::kir {

namespace {

// Equal keys compute equal values. Floats by their bits: -0 is not 0.
using Key = std::tuple<Op, std::vector<Value>, std::uint64_t, std::int64_t, DType, int>;
Key key_of(const Inst& inst, const VType& result) {
  return {inst.op,    inst.args,    std::bit_cast<std::uint64_t>(inst.imm),
          inst.index, result.dtype, result.lanes};
}

// Rewrites a kernel once, front to back, into a new one.
class Rewriter {
 public:
  explicit Rewriter(const Kernel& kernel) : in_(kernel), map_(kernel.types.size()) {
    out_ = {.name = kernel.name,
            .buffers = kernel.buffers,
            .params = kernel.params,
            .types = {},
            .body = {},
            .threads = kernel.threads};
  }

  Kernel run() {
    for (const Value v : in_.body.params) out_.body.params.push_back(map_to_fresh(v));
    known_.emplace_back();
    rewrite(in_.body, out_.body);
    return std::move(out_);
  }

 private:
  Value fresh(VType type) {
    out_.types.push_back(type);
    definitions_.emplace_back();
    return {static_cast<std::uint32_t>(out_.types.size() - 1)};
  }
  Value map_to_fresh(Value v) { return map_[v.id] = fresh(in_.type(v)); }
  Value mapped(Value v) const { return map_[v.id]; }
  std::vector<Value> mapped(const std::vector<Value>& values) const {
    std::vector<Value> out;
    for (const Value v : values) out.push_back(mapped(v));
    return out;
  }
  void map_results(const Inst& inst, const std::vector<Value>& values) {
    for (std::size_t k = 0; k < values.size(); ++k) map_[inst.results[k].id] = values[k];
  }

  void rewrite(const Block& from, Block& to) {
    for (const Inst& inst : from.body) {
      if (inst.op == Op::loop) {
        loop(inst, to);
      } else if (inst.op == Op::if_) {
        branch(inst, to);
      } else if (is_pure(inst.op)) {
        pure(inst, to);
      } else {
        append(inst, to);
      }
    }
  }

  void append(const Inst& from, Block& to) {
    Inst inst = from;
    inst.args = mapped(from.args);
    inst.results.clear();
    for (const Value v : from.results) inst.results.push_back(map_to_fresh(v));
    to.body.push_back(std::move(inst));
  }

  void pure(const Inst& from, Block& to) {
    if (from.results.size() != 1) return append(from, to);
    Inst inst = from;
    inst.args = mapped(from.args);
    inst.results.clear();
    map_[from.results[0].id] = value_of(std::move(inst), in_.type(from.results[0]), to);
  }

  // The value of a pure instruction: an equal one that exists, or a new instruction.
  Value value_of(Inst inst, VType type, Block& to) {
    // Every replacement is smaller or in canonical order; the bound only guards against a mistake
    // in the rules.
    for (int round = 0; round < 8; ++round) {
      Replacement r = fold(out_, definitions_, inst, type);
      if (const Value* value = std::get_if<Value>(&r)) return *value;
      if (std::holds_alternative<std::monostate>(r)) break;
      if (const WithConstant* w = std::get_if<WithConstant>(&r)) {
        const Value right =
            value_of({.op = Op::constant, .index = w->right}, out_.type(w->left), to);
        inst = {.op = w->op, .args = {w->left, right}};
      } else {
        inst = std::get<Inst>(std::move(r));
      }
    }
    const Key key = key_of(inst, type);
    for (const auto& scope : known_)
      if (const auto found = scope.find(key); found != scope.end()) return found->second;
    const Value value = fresh(type);
    known_.back()[key] = value;
    inst.results = {value};
    definitions_[value.id] = inst;
    to.body.push_back(std::move(inst));
    return value;
  }

  std::optional<std::int64_t> constant(Value v) const {
    return integer_constant(out_, definitions_, v);
  }

  // 0, 1 or 2 for "more"; nothing if it is not known.
  std::optional<int> trips(const Inst& inst) const {
    const auto begin = constant(mapped(inst.args[0])), end = constant(mapped(inst.args[1])),
               step = constant(mapped(inst.args[2]));
    if (!begin || !end) return std::nullopt;
    if (*begin >= *end) return 0;
    if (!step) return std::nullopt;
    // The distance fits unsigned 64 bits for any two numbers.
    return static_cast<std::uint64_t>(*end) - static_cast<std::uint64_t>(*begin) <=
                   static_cast<std::uint64_t>(*step)
               ? 1
               : 2;
  }

  void loop(const Inst& inst, Block& to) {
    const Block& body = inst.blocks[0];
    const std::vector<Value> args = mapped(inst.args);
    const auto count = trips(inst);
    if (count == 0) return map_results(inst, {args.begin() + 3, args.end()});
    if (count == 1) {
      map_[body.params[0].id] = args[0];
      for (std::size_t k = 1; k < body.params.size(); ++k) map_[body.params[k].id] = args[k + 2];
      rewrite(body, to);
      return map_results(inst, mapped(body.yields));
    }
    Inst out{.op = Op::loop, .args = {args[0], args[1], args[2]}};
    Block inner;
    inner.params = {map_to_fresh(body.params[0])};
    std::vector<std::size_t> carried;
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      const Value param = body.params[k + 1];
      if (body.yields[k] == param) {  // never changes
        map_[param.id] = map_[inst.results[k].id] = args[k + 3];
        continue;
      }
      carried.push_back(k);
      out.args.push_back(args[k + 3]);
      inner.params.push_back(map_to_fresh(param));
    }
    nested(body, inner);
    for (const std::size_t k : carried) inner.yields.push_back(mapped(body.yields[k]));
    for (const std::size_t k : carried) out.results.push_back(map_to_fresh(inst.results[k]));
    out.blocks.push_back(std::move(inner));
    to.body.push_back(std::move(out));
  }

  void branch(const Inst& inst, Block& to) {
    const Value condition = mapped(inst.args[0]);
    if (const auto chosen = constant(condition)) {
      const Block& block = inst.blocks[*chosen ? 0 : 1];
      rewrite(block, to);
      return map_results(inst, mapped(block.yields));
    }
    Inst out{.op = Op::if_, .args = {condition}};
    for (const Block& block : inst.blocks) {
      Block inner;
      nested(block, inner);
      inner.yields = mapped(block.yields);
      out.blocks.push_back(std::move(inner));
    }
    std::vector<Value> first = std::move(out.blocks[0].yields),
                       second = std::move(out.blocks[1].yields);
    out.blocks[0].yields.clear(), out.blocks[1].yields.clear();
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      if (first[k] == second[k]) {  // both made outside
        map_[inst.results[k].id] = first[k];
        continue;
      }
      out.blocks[0].yields.push_back(first[k]);
      out.blocks[1].yields.push_back(second[k]);
      out.results.push_back(map_to_fresh(inst.results[k]));
    }
    to.body.push_back(std::move(out));
  }

  void nested(const Block& from, Block& to) {
    known_.emplace_back();
    rewrite(from, to);
    known_.pop_back();
  }

  const Kernel& in_;
  Kernel out_;
  std::vector<Value> map_;                   // from values of in_ to values of out_
  Definitions definitions_;                  // of values of out_
  std::vector<std::map<Key, Value>> known_;  // expressions of the open blocks, innermost last
};

}  // namespace

Kernel simplify(const Kernel& kernel) {
  verify(kernel);
  Kernel current = remove_dead_code(kernel);
  for (int round = 0; round < 8; ++round) {
    Kernel next = remove_dead_code(Rewriter(current).run());
    const bool settled = same_code(current, next);
    current = std::move(next);
    if (settled) break;
  }
  current = remove_dead_code(merge_reports(std::move(current)));
  verify(current);
  return current;
}

}  // namespace pantala::kir
