#include "kir/builder.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kir/rules.h"
#include "kir/verify.h"
#include "pantala/error.h"

namespace pantala::kir {

VType Var::type() const {
  if (!valid()) throw InternalError("a kernel builder was given a value that does not exist");
  return builder_->type(value_);
}

Builder::Builder(std::string name, int threads) {
  kernel_.name = std::move(name);
  kernel_.threads = threads;
  open_ = {&kernel_.body};
  item_ = {this, fresh({DType::i64, 1})};
  kernel_.body.params = {item_.value()};
  if (threads == 1) return;
  thread_ = {this, fresh({DType::i64, 1})};
  kernel_.body.params.push_back(thread_.value());
}

void Builder::fail(Op op, std::string_view what) const {
  throw InternalError(fmt::format("kernel '{}': {}: {}", kernel_.name, op_name(op), what));
}

VType Builder::type(Value v) const {
  if (v.id >= kernel_.types.size())
    throw InternalError("a kernel builder was asked for a value of a kernel that is finished");
  return kernel_.types[v.id];
}

Value Builder::fresh(VType type) {
  kernel_.types.push_back(type);
  visible_.push_back(true);
  return {static_cast<std::uint32_t>(kernel_.types.size() - 1)};
}

std::vector<Value> Builder::usable(Op op, std::span<const Var> values) const {
  std::vector<Value> ids;
  for (const Var& v : values) {
    if (!v.valid()) fail(op, fmt::format("operand {} does not exist", ids.size()));
    if (&v.builder() != this)
      fail(op, fmt::format("operand {} belongs to another kernel", ids.size()));
    if (open_.empty()) fail(op, "the kernel is finished");
    if (!visible_[v.value().id])
      fail(op, fmt::format("operand {} was made in a block that is closed", ids.size()));
    ids.push_back(v.value());
  }
  return ids;
}
std::vector<Value> Builder::usable(Op op, std::initializer_list<Var> values) const {
  return usable(op, std::span(values.begin(), values.size()));
}

std::vector<Var> Builder::emit(Inst inst, const std::vector<VType>& types) {
  if (open_.empty()) fail(inst.op, "the kernel is finished");
  std::vector<Var> results;
  for (const VType& type : types) {
    if (const std::string wrong = broken_rule(type); !wrong.empty()) fail(inst.op, wrong);
    results.emplace_back(this, fresh(type));
    inst.results.push_back(results.back().value());
  }
  if (const std::string wrong = broken_rule(kernel_, inst); !wrong.empty()) fail(inst.op, wrong);
  open_.back()->body.push_back(std::move(inst));
  return results;
}
Var Builder::emit(Inst inst, VType type) {
  return emit(std::move(inst), std::vector{type}).front();
}

BufferId Builder::buffer(std::string name, DType dtype, Access access) {
  const Buffer b{std::move(name), dtype, access, Space::global, 0};
  if (kernel_.global_buffers() != std::ssize(kernel_.buffers))
    throw InternalError(
        fmt::format("kernel '{}': buffer '{}' comes after scratch", kernel_.name, b.name));
  kernel_.buffers.push_back(b);
  return BufferId(static_cast<int>(kernel_.buffers.size() - 1));
}

BufferId Builder::scratch(std::string name, DType dtype, std::int64_t size) {
  kernel_.buffers.push_back({std::move(name), dtype, Access::read_write, Space::scratch, size});
  if (const std::string wrong = broken_rule(kernel_.buffers.back()); !wrong.empty())
    throw InternalError(fmt::format("kernel '{}': {}", kernel_.name, wrong));
  return BufferId(static_cast<int>(kernel_.buffers.size() - 1));
}

Var Builder::param(std::string name, DType dtype) {
  kernel_.params.push_back({std::move(name), dtype});
  if (open_.size() > 1)
    fail(Op::param,
         fmt::format("'{}' is made inside of a loop or a branch", kernel_.params.back().name));
  return emit({.op = Op::param, .index = std::ssize(kernel_.params) - 1}, {dtype, 1});
}

Var Builder::constant(VType type, double value) {
  if (!is_float(type.dtype)) {
    // 2^63 itself is the first double that no i64 holds.
    if (!(std::fabs(value) < 0x1p63) || std::trunc(value) != value)
      fail(Op::constant, fmt::format("{} is not a number of {}", value, type.str()));
    return constant(type, static_cast<std::int64_t>(value));
  }
  const double rounded =
      value != value ? std::numeric_limits<double>::quiet_NaN() : round_to(type.dtype, value);
  return emit({.op = Op::constant, .imm = rounded}, type);
}

Var Builder::constant(VType type, std::int64_t value) {
  if (is_float(type.dtype)) return constant(type, static_cast<double>(value));
  return emit({.op = Op::constant, .index = value}, type);
}

Var Builder::unary(Op op, Var x) {
  Inst inst{.op = op, .args = usable(op, {x})};
  return emit(std::move(inst), x.type());
}

Var Builder::binary(Op op, Var a, Var b) {
  Inst inst{.op = op, .args = usable(op, {a, b})};
  const bool compares = op == Op::lt || op == Op::le || op == Op::eq || op == Op::ne;
  return emit(std::move(inst), compares ? a.type().with_dtype(DType::boolean) : a.type());
}

Var splat_like(Var a, Var b) {
  return b.lanes() == 1 && a.lanes() != 1 ? b.builder().splat(b, a.lanes()) : b;
}

Var Builder::fma(Var a, Var b, Var c) {
  usable(Op::fma, {a, b, c});
  const Var widest = a.lanes() != 1 ? a : b.lanes() != 1 ? b : c;
  a = splat_like(widest, a), b = splat_like(widest, b), c = splat_like(widest, c);
  return emit({.op = Op::fma, .args = usable(Op::fma, {a, b, c})}, a.type());
}

Var Builder::select(Var condition, Var a, Var b) {
  usable(Op::select, {condition, a, b});
  const Var widest = condition.lanes() != 1 ? condition : a.lanes() != 1 ? a : b;
  condition = splat_like(widest, condition), a = splat_like(widest, a), b = splat_like(widest, b);
  return emit({.op = Op::select, .args = usable(Op::select, {condition, a, b})}, a.type());
}

Var Builder::cast(Var x, DType dtype) {
  Inst inst{.op = Op::cast, .args = usable(Op::cast, {x})};
  return x.dtype() == dtype ? x : emit(std::move(inst), x.type().with_dtype(dtype));
}

Var Builder::bitcast(Var x, DType dtype) {
  Inst inst{.op = Op::bitcast, .args = usable(Op::bitcast, {x})};
  return x.dtype() == dtype ? x : emit(std::move(inst), x.type().with_dtype(dtype));
}

Var Builder::splat(Var x, int lanes) {
  Inst inst{.op = Op::splat, .args = usable(Op::splat, {x})};
  return lanes == 1 && x.lanes() == 1 ? x : emit(std::move(inst), x.type().with_lanes(lanes));
}

Var Builder::iota(VType type) { return emit({.op = Op::iota}, type); }

Var Builder::extract(Var x, int lane) {
  Inst inst{.op = Op::extract, .args = usable(Op::extract, {x}), .index = lane};
  return emit(std::move(inst), x.type().with_lanes(1));
}

std::vector<Var> Builder::transpose(const std::vector<Var>& rows) {
  Inst inst{.op = Op::transpose, .args = usable(Op::transpose, rows)};
  if (rows.size() == 1 && rows[0].lanes() == 1) return rows;
  std::vector<VType> types;
  for (const Var& row : rows) types.push_back(row.type());
  return emit(std::move(inst), types);
}

Var Builder::reduce(Op op, Var x) {
  Inst inst{.op = op, .args = usable(op, {x})};
  return emit(std::move(inst), x.type().with_lanes(1));
}

DType Builder::loaded_dtype(BufferId buffer) const {
  if (buffer.index() >= kernel_.buffers.size())
    fail(Op::load, fmt::format("there is no buffer {}", buffer.index()));
  return register_dtype(kernel_.buffers[buffer.index()].dtype);
}

Inst Builder::memory(Op op, BufferId buffer, std::initializer_list<Var> values, Var mask) const {
  if (!buffer.valid()) fail(op, "its buffer does not exist");
  Inst inst{.op = op,
            .args = usable(op, values),
            .index = static_cast<std::int64_t>(buffer.index()),
            .masked = mask.valid()};
  if (mask.valid()) inst.args.push_back(usable(op, {mask}).front());
  return inst;
}

Var Builder::load(BufferId buffer, Var at, int lanes, Var mask) {
  return emit(memory(Op::load, buffer, {at}, mask), {loaded_dtype(buffer), lanes});
}
Var Builder::load_strided(BufferId buffer, Var at, Var stride, int lanes, Var mask) {
  return emit(memory(Op::load_strided, buffer, {at, stride}, mask), {loaded_dtype(buffer), lanes});
}
Var Builder::gather(BufferId buffer, Var indices, Var mask) {
  Inst inst = memory(Op::gather, buffer, {indices}, mask);
  return emit(std::move(inst), {loaded_dtype(buffer), indices.lanes()});
}
void Builder::store(BufferId buffer, Var at, Var value, Var mask, bool stream) {
  Inst inst = memory(Op::store, buffer, {at, value}, mask);
  inst.stream = stream;
  emit(std::move(inst), std::vector<VType>{});
}
void Builder::store_strided(BufferId buffer, Var at, Var stride, Var value, Var mask) {
  emit(memory(Op::store_strided, buffer, {at, stride, value}, mask), std::vector<VType>{});
}
void Builder::prefetch(BufferId buffer, Var at) {
  emit(memory(Op::prefetch, buffer, {at}, {}), std::vector<VType>{});
}
void Builder::report(Var condition, std::int64_t code) {
  emit({.op = Op::report, .args = usable(Op::report, {condition}), .index = code},
       std::vector<VType>{});
}
void Builder::report(Var condition, Var code) {
  emit({.op = Op::report, .args = usable(Op::report, {condition, code})}, std::vector<VType>{});
}
void Builder::barrier() { emit({.op = Op::barrier}, std::vector<VType>{}); }
Var Builder::group(Op op, Var x) {
  Inst inst{.op = op, .args = usable(op, {x})};
  return emit(std::move(inst), x.type());
}

Block Builder::nested(Op op, const std::vector<VType>& params,
                      const std::function<std::vector<Var>(std::span<const Var>)>& body) {
  if (open_.empty()) fail(op, "the kernel is finished");
  Block block;
  const std::size_t first = kernel_.types.size();
  std::vector<Var> vars;
  for (const VType& type : params) {
    vars.emplace_back(this, fresh(type));
    block.params.push_back(vars.back().value());
  }
  open_.push_back(&block);
  block.yields = usable(op, body(vars));
  open_.pop_back();
  for (std::size_t v = first; v < visible_.size(); ++v) visible_[v] = false;
  return block;
}

std::vector<Var> Builder::loop(Var begin, Var end, Var step, const std::vector<Var>& carried,
                               const LoopBody& body) {
  Inst inst{.op = Op::loop, .args = usable(Op::loop, {begin, end, step})};
  for (const Value v : usable(Op::loop, carried)) inst.args.push_back(v);
  std::vector<VType> types;
  for (const Var& v : carried) types.push_back(v.type());
  std::vector<VType> params = types;
  params.insert(params.begin(), VType{DType::i64, 1});
  inst.blocks.push_back(nested(
      Op::loop, params, [&](std::span<const Var> vars) { return body(vars[0], vars.subspan(1)); }));
  return emit(std::move(inst), types);
}

void Builder::loop(Var begin, Var end, Var step, const std::function<void(Var index)>& body) {
  const LoopBody without_carried = [&](Var index, std::span<const Var>) {
    return body(index), std::vector<Var>{};
  };
  loop(begin, end, step, {}, without_carried);
}

std::vector<Var> Builder::branch(Var condition, const Branch& then, const Branch& otherwise) {
  Inst inst{.op = Op::if_, .args = usable(Op::if_, {condition})};
  inst.blocks.push_back(nested(Op::if_, {}, [&](std::span<const Var>) { return then(); }));
  inst.blocks.push_back(nested(Op::if_, {}, [&](std::span<const Var>) { return otherwise(); }));
  std::vector<VType> types;
  for (const Value v : inst.blocks[0].yields) types.push_back(type(v));
  return emit(std::move(inst), types);
}

void Builder::branch(Var condition, const std::function<void()>& then) {
  branch(condition, [&] { return then(), std::vector<Var>{}; }, [] { return std::vector<Var>{}; });
}

Kernel Builder::finish() {
  if (open_.size() != 1)
    throw InternalError(fmt::format("kernel '{}' is finished {}", kernel_.name,
                                    open_.empty() ? "twice" : "inside of a block"));
  open_.clear();
  verify(kernel_);
  return std::move(kernel_);
}

namespace {
Var binary(Op op, Var a, Var b) {
  if (!a.valid() || !b.valid())
    throw InternalError(fmt::format("{}: an operand does not exist", op_name(op)));
  return a.builder().binary(op, splat_like(b, a), splat_like(a, b));
}
}  // namespace

Var operator+(Var a, Var b) { return binary(Op::add, a, b); }
Var operator-(Var a, Var b) { return binary(Op::sub, a, b); }
Var operator*(Var a, Var b) { return binary(Op::mul, a, b); }
Var operator/(Var a, Var b) { return binary(Op::div, a, b); }
Var operator%(Var a, Var b) { return binary(Op::rem, a, b); }
Var min(Var a, Var b) { return binary(Op::min, a, b); }
Var max(Var a, Var b) { return binary(Op::max, a, b); }
Var lt(Var a, Var b) { return binary(Op::lt, a, b); }
Var le(Var a, Var b) { return binary(Op::le, a, b); }
Var eq(Var a, Var b) { return binary(Op::eq, a, b); }
Var ne(Var a, Var b) { return binary(Op::ne, a, b); }

Var operator-(Var a) {
  if (!a.valid()) throw InternalError("neg: the operand does not exist");
  return a.builder().unary(Op::neg, a);
}

Var like(Var model, double value) {
  const VType type = model.type();
  return model.builder().constant(type, value);
}
Var like(Var model, std::int64_t value) {
  const VType type = model.type();
  return model.builder().constant(type, value);
}

}  // namespace pantala::kir
