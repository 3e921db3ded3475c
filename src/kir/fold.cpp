#include "kir/fold.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kir/arithmetic.h"

namespace pantala::kir {

namespace {

struct alignas(64) Register {
  std::array<std::byte, 32 * 8> bytes{};
};

// The constant with this register's content, if all lanes are equal and none is a NaN: what a NaN
// looks like is the target's business.
std::optional<Inst> as_constant(const Register& r, const VType& type) {
  const std::size_t size = register_bytes({type.dtype, 1});
  for (int k = 1; k < type.lanes; ++k)
    if (std::memcmp(r.bytes.data(), r.bytes.data() + static_cast<std::size_t>(k) * size, size) != 0)
      return std::nullopt;
  Inst out{.op = Op::constant};
  const auto read = [&](auto value) {
    return std::memcpy(&value, r.bytes.data(), sizeof(value)), value;
  };
  switch (type.dtype) {
    case DType::f32:
      out.imm = static_cast<double>(read(float{}));
      break;
    case DType::f64:
      out.imm = read(double{});
      break;
    case DType::i32:
      out.index = read(std::int32_t{});
      break;
    case DType::i64:
      out.index = read(std::int64_t{});
      break;
    default:
      out.index = read(std::uint8_t{});
      break;
  }
  return out.imm != out.imm ? std::nullopt : std::optional(out);
}

class Folder {
 public:
  Folder(const Kernel& kernel, const Definitions& definitions, const Inst& inst,
         const VType& result)
      : kernel_(kernel), definitions_(definitions), inst_(inst), result_(result) {}

  Replacement run() const {
    if (inst_.op == Op::constant || inst_.op == Op::param || inst_.op == Op::transpose) return {};
    if (const auto constant = fold_constants()) return *constant;
    if (Replacement r = moves(); r.index() != 0) return r;
    if (inst_.args.size() == 2 && !is_float(kernel_.type(inst_.args[0]).dtype))
      return exact_algebra();
    return {};
  }

 private:
  const Inst* definition(Value v) const {
    return definitions_[v.id] ? &*definitions_[v.id] : nullptr;
  }
  bool defined_by(Value v, Op op) const { return definition(v) && definition(v)->op == op; }
  Value arg(std::size_t k) const { return inst_.args[k]; }
  std::optional<std::int64_t> number(Value v) const {
    return integer_constant(kernel_, definitions_, v);
  }
  Inst integer(std::int64_t value) const { return {.op = Op::constant, .index = value}; }

  std::optional<Inst> fold_constants() const {
    std::array<Register, 3> registers;
    std::array<const std::byte*, 3> args{};
    if (inst_.args.size() > 3) return std::nullopt;
    for (std::size_t k = 0; k < inst_.args.size(); ++k) {
      if (!defined_by(arg(k), Op::constant)) return std::nullopt;
      write_constant(*definition(arg(k)), kernel_.type(arg(k)), registers[k].bytes.data());
      args[k] = registers[k].bytes.data();
    }
    Register out;
    std::byte* const results[] = {out.bytes.data()};
    const VType operand =
        inst_.op == Op::select || inst_.args.empty() ? result_ : kernel_.type(arg(0));
    if (!compute(inst_, operand, result_, std::span(args).first(inst_.args.size()), results)
             .empty())
      return std::nullopt;
    return as_constant(out, result_);
  }

  Replacement moves() const {
    switch (inst_.op) {
      case Op::select: {
        if (const auto chosen = number(arg(0))) return arg(*chosen ? 1 : 2);
        if (arg(1) == arg(2)) return arg(1);
        if (result_.dtype == DType::boolean && number(arg(1)) == 1 && number(arg(2)) == 0)
          return arg(0);
        return {};
      }
      case Op::extract:
        if (defined_by(arg(0), Op::splat)) return definition(arg(0))->args[0];
        if (defined_by(arg(0), Op::constant))
          return Inst{.op = Op::constant,
                      .imm = definition(arg(0))->imm,
                      .index = definition(arg(0))->index};
        if (defined_by(arg(0), Op::iota)) {
          const auto lane = static_cast<double>(inst_.index);
          return is_float(result_.dtype) ? Inst{.op = Op::constant, .imm = lane}
                                         : integer(inst_.index);
        }
        return {};
      case Op::splat:
        // Constants that are NaN come here: their bits stay as they are.
        if (defined_by(arg(0), Op::constant))
          return Inst{.op = Op::constant,
                      .imm = definition(arg(0))->imm,
                      .index = definition(arg(0))->index};
        return {};
      case Op::bitcast:
        if (defined_by(arg(0), Op::bitcast)) return definition(arg(0))->args[0];
        return {};
      case Op::reduce_add:
      case Op::reduce_max:
      case Op::reduce_min:
        if (kernel_.type(arg(0)).lanes == 1) return arg(0);
        return {};
      default:
        return {};
    }
  }

  // Identities that hold for wrapping integers and bools.
  Replacement exact_algebra() const {
    const Value a = arg(0), b = arg(1);
    const auto x = number(a), y = number(b);
    if (x && commutes() && !y) return Inst{.op = inst_.op, .args = {b, a}};
    if (a == b) {
      if (Replacement r = same_operands(); r.index() != 0) return r;
    }
    if (y) {
      if (Replacement r = with_constant(*y); r.index() != 0) return r;
    }
    if (x == 0 && (inst_.op == Op::shl || inst_.op == Op::shr)) return a;
    // Equal expressions get one order of operands, so that they are found to be equal.
    if (commutes() && !y && b < a) return Inst{.op = inst_.op, .args = {b, a}};
    return {};
  }

  bool commutes() const {
    switch (inst_.op) {
      case Op::add:
      case Op::mul:
      case Op::min:
      case Op::max:
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
      case Op::mulhi:
      case Op::eq:
      case Op::ne:
        return true;
      default:
        return false;
    }
  }

  Replacement same_operands() const {
    switch (inst_.op) {
      case Op::sub:
      case Op::bit_xor:
      case Op::lt:
      case Op::ne:
        return integer(0);
      case Op::le:
      case Op::eq:
        return integer(1);
      case Op::min:
      case Op::max:
      case Op::bit_and:
      case Op::bit_or:
        return arg(0);
      default:
        return {};
    }
  }

  // The constant stands on the right.
  Replacement with_constant(std::int64_t y) const {
    const bool boolean = kernel_.type(arg(0)).dtype == DType::boolean;
    const std::int64_t ones = boolean ? 1 : -1;
    switch (inst_.op) {
      case Op::add:
        return y == 0 ? Replacement(arg(0)) : chained(y);
      case Op::sub:
        return WithConstant{Op::add, arg(0), wrapped(0 - static_cast<std::uint64_t>(y))};
      case Op::shl:
      case Op::shr:
      case Op::bit_xor:
        return y == 0 ? Replacement(arg(0)) : Replacement();
      case Op::mul:
        return y == 0 ? Replacement(integer(0)) : y == 1 ? Replacement(arg(0)) : chained(y);
      case Op::mulhi:
        return y == 0 || y == 1 ? Replacement(integer(0)) : Replacement();
      case Op::div:
        return y == 1 ? Replacement(arg(0)) : Replacement();
      case Op::rem:
        return y == 1 ? Replacement(integer(0)) : Replacement();
      case Op::bit_and:
        return y == 0 ? Replacement(integer(0)) : y == ones ? Replacement(arg(0)) : Replacement();
      case Op::bit_or:
        return y == 0      ? Replacement(arg(0))
               : y == ones ? Replacement(integer(ones))
                           : Replacement();
      case Op::eq:
        return boolean && y == 1 ? Replacement(arg(0)) : Replacement();
      case Op::ne:
        return boolean && y == 0 ? Replacement(arg(0)) : Replacement();
      default:
        return {};
    }
  }

  // (z + c) + y = z + (c + y), and the same for products.
  Replacement chained(std::int64_t y) const {
    if (!defined_by(arg(0), inst_.op)) return {};
    const Inst& inner = *definition(arg(0));
    const auto c = number(inner.args[1]);
    if (!c) return {};
    const auto u = static_cast<std::uint64_t>(*c), v = static_cast<std::uint64_t>(y);
    return WithConstant{inst_.op, inner.args[0], wrapped(inst_.op == Op::add ? u + v : u * v)};
  }
  std::int64_t wrapped(std::uint64_t value) const {
    return wrap_to(result_.dtype, static_cast<std::int64_t>(value));
  }

  const Kernel& kernel_;
  const Definitions& definitions_;
  const Inst& inst_;
  const VType& result_;
};

}  // namespace

Replacement fold(const Kernel& kernel, const Definitions& definitions, const Inst& inst,
                 const VType& result) {
  return Folder(kernel, definitions, inst, result).run();
}

std::optional<std::int64_t> integer_constant(const Kernel& kernel, const Definitions& definitions,
                                             Value v) {
  const auto& d = definitions[v.id];
  return d && d->op == Op::constant && !is_float(kernel.type(v).dtype) ? std::optional(d->index)
                                                                       : std::nullopt;
}

}  // namespace pantala::kir
