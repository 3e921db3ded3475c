#include "kir/rules.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

namespace pantala::kir {

namespace {

constexpr VType kIndex{DType::i64, 1};
constexpr VType kCondition{DType::boolean, 1};

// The rules of one instruction. Each function returns what is wrong, or "".
class Rules {
 public:
  Rules(const Kernel& kernel, const Inst& inst) : kernel_(kernel), inst_(inst) {}

  std::string check() const {
    if (std::string wrong = check_extras(); !wrong.empty()) return wrong;
    switch (inst_.op) {
      case Op::constant:
        return constant();
      case Op::param:
        return param();
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::min:
      case Op::max:
        return same_types(2, number());
      case Op::neg:
      case Op::abs:
        return same_types(1, number());
      case Op::sqrt:
      case Op::floor:
      case Op::ceil:
      case Op::round:
        return same_types(1, real());
      case Op::fma:
        return same_types(3, real());
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        return same_types(2, integer() || boolean());
      case Op::rem:
      case Op::shl:
      case Op::shr:
      case Op::mulhi:
        return same_types(2, integer());
      case Op::lt:
      case Op::le:
        return compare(number());
      case Op::eq:
      case Op::ne:
        return compare(true);
      case Op::select:
        return select();
      case Op::cast:
        return convert(true);
      case Op::bitcast:
        return convert(false);
      case Op::splat:
        return splat();
      case Op::iota:
        return iota();
      case Op::extract:
        return extract();
      case Op::transpose:
        return transpose();
      case Op::reduce_add:
        return reduce(number());
      case Op::reduce_max:
      case Op::reduce_min:
        return reduce(true);
      case Op::load:
        return load(1);
      case Op::load_strided:
        return load(2);
      case Op::gather:
        return gather();
      case Op::store:
        return store(1);
      case Op::store_strided:
        return store(2);
      case Op::prefetch:
        return prefetch();
      case Op::report:
        return report();
      case Op::loop:
        return loop();
      case Op::if_:
        return branch();
      case Op::barrier:
        return meeting(0);
      case Op::group_add:
        return meeting(1, number());
      case Op::group_max:
      case Op::group_min:
        return meeting(1);
    }
    return "an unknown op";
  }

 private:
  const VType& arg(std::size_t k) const { return kernel_.type(inst_.args[k]); }
  const VType& result(std::size_t k = 0) const { return kernel_.type(inst_.results[k]); }
  // The kind of the first operand.
  bool real() const { return !inst_.args.empty() && is_float(arg(0).dtype); }
  bool integer() const { return !inst_.args.empty() && is_integer(arg(0).dtype); }
  bool number() const { return real() || integer(); }
  bool boolean() const { return !inst_.args.empty() && arg(0).dtype == DType::boolean; }

  // Fields that the op has no use for must be at their defaults, so that equal code compares equal.
  std::string check_extras() const {
    const Op op = inst_.op;
    const bool indexed = op == Op::constant || op == Op::param || op == Op::extract ||
                         op == Op::report || touches_memory(op);
    if (!indexed && inst_.index != 0) return "it has an index";
    if (op != Op::constant && std::bit_cast<std::uint64_t>(inst_.imm) != 0)
      return "it has a float constant";
    if (inst_.masked && (!touches_memory(op) || op == Op::prefetch)) return "it cannot have a mask";
    if (inst_.stream && op != Op::store) return "only a store can stream";
    const std::size_t blocks = op == Op::loop ? 1 : op == Op::if_ ? 2 : 0;
    if (inst_.blocks.size() != blocks)
      return fmt::format("it has {} blocks, not {}", inst_.blocks.size(), blocks);
    return "";
  }

  std::string arity(std::size_t args, std::size_t results) const {
    if (inst_.args.size() != args)
      return fmt::format("it has {} operands, not {}", inst_.args.size(), args);
    if (inst_.results.size() != results)
      return fmt::format("it has {} results, not {}", inst_.results.size(), results);
    return "";
  }

  std::string same_types(std::size_t args, bool allowed) const {
    if (std::string wrong = arity(args, 1); !wrong.empty()) return wrong;
    for (std::size_t k = 1; k < args; ++k)
      if (arg(k) != arg(0))
        return fmt::format("the operands have different types, {} and {}", arg(0).str(),
                           arg(k).str());
    if (!allowed) return fmt::format("it does not work on {}", arg(0).str());
    if (result() != arg(0))
      return fmt::format("the result is {}, the operands are {}", result().str(), arg(0).str());
    return "";
  }

  std::string compare(bool allowed) const {
    if (std::string wrong = arity(2, 1); !wrong.empty()) return wrong;
    if (arg(0) != arg(1))
      return fmt::format("the operands have different types, {} and {}", arg(0).str(),
                         arg(1).str());
    if (!allowed) return fmt::format("it does not work on {}", arg(0).str());
    return expect_result(arg(0).with_dtype(DType::boolean));
  }

  std::string expect_result(VType type) const {
    if (result() != type)
      return fmt::format("the result is {}, not {}", result().str(), type.str());
    return "";
  }
  std::string expect_arg(std::size_t k, VType type, std::string_view what) const {
    if (arg(k) != type) return fmt::format("{} is {}, not {}", what, arg(k).str(), type.str());
    return "";
  }

  std::string constant() const {
    if (std::string wrong = arity(0, 1); !wrong.empty()) return wrong;
    const DType t = result().dtype;
    if (!is_float(t)) {
      if (std::bit_cast<std::uint64_t>(inst_.imm) != 0)
        return "an integer constant has a float part";
      if (wrap_to(t, inst_.index) != inst_.index)
        return fmt::format("{} is not a number of {}", inst_.index, dtype_name(t));
      return "";
    }
    if (inst_.index != 0) return "a float constant has an integer part";
    const bool canonical = std::bit_cast<std::uint64_t>(inst_.imm) ==
                           std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
    if (inst_.imm != inst_.imm ? !canonical : round_to(t, inst_.imm) != inst_.imm)
      return fmt::format("{} is not a number of {}", inst_.imm, dtype_name(t));
    return "";
  }

  std::string param() const {
    if (std::string wrong = arity(0, 1); !wrong.empty()) return wrong;
    if (inst_.index < 0 || inst_.index >= std::ssize(kernel_.params))
      return fmt::format("there is no parameter {}", inst_.index);
    return expect_result({kernel_.params[static_cast<std::size_t>(inst_.index)].dtype, 1});
  }

  std::string select() const {
    if (std::string wrong = arity(3, 1); !wrong.empty()) return wrong;
    if (arg(1) != arg(2))
      return fmt::format("the choices have different types, {} and {}", arg(1).str(), arg(2).str());
    if (std::string wrong = expect_arg(0, arg(1).with_dtype(DType::boolean), "the condition");
        !wrong.empty())
      return wrong;
    return expect_result(arg(1));
  }

  std::string convert(bool any) const {
    if (std::string wrong = arity(1, 1); !wrong.empty()) return wrong;
    if (result().lanes != arg(0).lanes)
      return fmt::format("from {} to {}: the lanes differ", arg(0).str(), result().str());
    const DType from = arg(0).dtype, to = result().dtype;
    const bool ok = any ? from != to
                        : from != to && dtype_bytes(from) == dtype_bytes(to) &&
                              is_float(from) != is_float(to) && from != DType::boolean;
    return ok ? ""
              : fmt::format("from {} to {} is no conversion of this kind", arg(0).str(),
                            result().str());
  }

  std::string splat() const {
    if (std::string wrong = arity(1, 1); !wrong.empty()) return wrong;
    if (arg(0).lanes != 1 || result().lanes == 1)
      return fmt::format("from {} to {}: it makes a vector of a scalar", arg(0).str(),
                         result().str());
    return expect_result(arg(0).with_lanes(result().lanes));
  }
  std::string iota() const {
    if (std::string wrong = arity(0, 1); !wrong.empty()) return wrong;
    return result().dtype == DType::boolean ? "it does not count in bool" : "";
  }
  std::string extract() const {
    if (std::string wrong = arity(1, 1); !wrong.empty()) return wrong;
    if (inst_.index < 0 || inst_.index >= arg(0).lanes)
      return fmt::format("{} has no lane {}", arg(0).str(), inst_.index);
    return expect_result(arg(0).with_lanes(1));
  }
  std::string transpose() const {
    const std::size_t n = inst_.args.size();
    if (inst_.results.size() != n || n < 2)
      return fmt::format("{} rows become {}", n, inst_.results.size());
    for (std::size_t k = 0; k < n; ++k) {
      if (arg(k) != arg(0))
        return fmt::format("the rows have different types, {} and {}", arg(0).str(), arg(k).str());
      if (result(k) != arg(0))
        return fmt::format("result {} is {}, the rows are {}", k, result(k).str(), arg(0).str());
    }
    return static_cast<std::size_t>(arg(0).lanes) == n
               ? ""
               : fmt::format("{} rows of {} are not square", n, arg(0).str());
  }
  std::string reduce(bool allowed) const {
    if (std::string wrong = arity(1, 1); !wrong.empty()) return wrong;
    if (!allowed) return fmt::format("it does not work on {}", arg(0).str());
    return expect_result(arg(0).with_lanes(1));
  }

  const Buffer* buffer() const {
    return inst_.index >= 0 && inst_.index < std::ssize(kernel_.buffers)
               ? &kernel_.buffers[static_cast<std::size_t>(inst_.index)]
               : nullptr;
  }
  // Operands without the mask, the buffer and its access, and the mask's lanes.
  std::string memory(std::size_t args, std::size_t results, Access access,
                     int (Rules::*lanes)() const) const {
    if (std::string wrong = arity(args + (inst_.masked ? 1 : 0), results); !wrong.empty())
      return wrong;
    if (!buffer()) return fmt::format("there is no buffer {}", inst_.index);
    if (buffer()->access != access && buffer()->access != Access::read_write)
      return fmt::format("buffer '{}' may only be {}", buffer()->name,
                         buffer()->access == Access::read ? "read" : "written");
    if (inst_.masked) return expect_arg(args, {DType::boolean, (this->*lanes)()}, "the mask");
    return "";
  }
  int result_lanes() const { return result().lanes; }
  int value_lanes() const { return arg(inst_.args.size() - (inst_.masked ? 2 : 1)).lanes; }
  VType loaded(int lanes) const { return {register_dtype(buffer()->dtype), lanes}; }

  // `scalars` of position and stride, then what the op adds.
  std::string load(std::size_t scalars) const {
    if (std::string wrong = memory(scalars, 1, Access::read, &Rules::result_lanes); !wrong.empty())
      return wrong;
    if (std::string wrong = positions(scalars); !wrong.empty()) return wrong;
    return expect_result(loaded(result().lanes));
  }
  std::string store(std::size_t scalars) const {
    if (std::string wrong = memory(scalars + 1, 0, Access::write, &Rules::value_lanes);
        !wrong.empty())
      return wrong;
    if (std::string wrong = positions(scalars); !wrong.empty()) return wrong;
    return expect_arg(scalars, loaded(value_lanes()), "the value");
  }
  std::string positions(std::size_t scalars) const {
    std::string wrong = expect_arg(0, kIndex, "the position");
    return wrong.empty() && scalars == 2 ? expect_arg(1, kIndex, "the stride") : wrong;
  }
  std::string gather() const {
    if (std::string wrong = memory(1, 1, Access::read, &Rules::result_lanes); !wrong.empty())
      return wrong;
    if (!integer()) return fmt::format("the indices are {}", arg(0).str());
    return expect_result(loaded(arg(0).lanes));
  }
  std::string prefetch() const {
    if (std::string wrong = arity(1, 0); !wrong.empty()) return wrong;
    if (!buffer()) return fmt::format("there is no buffer {}", inst_.index);
    return expect_arg(0, kIndex, "the position");
  }
  std::string report() const {
    const bool computed = inst_.args.size() == 2;
    if (std::string wrong = arity(computed ? 2 : 1, 0); !wrong.empty()) return wrong;
    if (!computed && inst_.index == 0) return "code 0 means that all is well";
    if (computed && inst_.index != 0) return "it has two codes";
    const std::string wrong = computed ? expect_arg(1, kIndex, "the code") : "";
    return wrong.empty() ? expect_arg(0, kCondition, "the condition") : wrong;
  }

  std::string yields(const Block& block) const {
    if (block.yields.size() != inst_.results.size())
      return fmt::format("a block yields {} values for {} results", block.yields.size(),
                         inst_.results.size());
    for (std::size_t k = 0; k < block.yields.size(); ++k)
      if (kernel_.type(block.yields[k]) != result(k))
        return fmt::format("yield {} is {}, the result is {}", k,
                           kernel_.type(block.yields[k]).str(), result(k).str());
    return "";
  }
  std::string loop() const {
    if (inst_.args.size() < 3) return "it needs begin, end and step";
    const std::size_t carried = inst_.args.size() - 3;
    if (std::string wrong = arity(3 + carried, carried); !wrong.empty()) return wrong;
    for (const std::size_t k : {0, 1, 2})
      if (std::string wrong = expect_arg(k, kIndex,
                                         k == 0   ? "begin"
                                         : k == 1 ? "end"
                                                  : "step");
          !wrong.empty())
        return wrong;
    const Block& body = inst_.blocks[0];
    if (body.params.size() != carried + 1)
      return fmt::format("its block has {} parameters, not {}", body.params.size(), carried + 1);
    if (kernel_.type(body.params[0]) != kIndex) return "its index is not an i64";
    for (std::size_t k = 0; k < carried; ++k) {
      if (kernel_.type(body.params[k + 1]) != arg(k + 3) || result(k) != arg(k + 3))
        return fmt::format("carried value {} starts as {}, is {} inside and ends as {}", k,
                           arg(k + 3).str(), kernel_.type(body.params[k + 1]).str(),
                           result(k).str());
    }
    return yields(body);
  }
  // `numbers`: how many each thread brings, and gets.
  std::string meeting(std::size_t numbers, bool allowed = true) const {
    if (std::string wrong = arity(numbers, numbers); !wrong.empty()) return wrong;
    if (kernel_.threads == 1) return "one thread has nobody to meet";
    if (numbers == 0) return "";
    if (!allowed || arg(0).lanes != 1) return fmt::format("it does not work on {}", arg(0).str());
    return expect_result(arg(0));
  }
  std::string branch() const {
    if (std::string wrong = arity(1, inst_.results.size()); !wrong.empty()) return wrong;
    if (std::string wrong = expect_arg(0, kCondition, "the condition"); !wrong.empty())
      return wrong;
    for (const Block& block : inst_.blocks) {
      if (!block.params.empty()) return "its blocks have parameters";
      if (std::string wrong = yields(block); !wrong.empty()) return wrong;
    }
    return "";
  }

  const Kernel& kernel_;
  const Inst& inst_;
};

}  // namespace

std::string broken_rule(const Kernel& kernel, const Inst& inst) {
  return Rules(kernel, inst).check();
}

std::string broken_rule(const VType& type) {
  if (register_dtype(type.dtype) != type.dtype)
    return fmt::format("{} occurs in memory only", dtype_name(type.dtype));
  if (!valid_lanes(type.lanes))
    return fmt::format("{} lanes are not 1, 2, 4, 8, 16 or 32", type.lanes);
  return "";
}

std::string broken_rule(const Buffer& buffer) {
  if (buffer.space == Space::global)
    return buffer.size == 0
               ? ""
               : fmt::format("buffer '{}': an argument has no size of its own", buffer.name);
  if (buffer.size <= 0 || buffer.size > (std::int64_t{1} << 40))
    return fmt::format("scratch '{}' has {} elements", buffer.name, buffer.size);
  return buffer.access == Access::read_write
             ? ""
             : fmt::format("scratch '{}' must be readable and writable", buffer.name);
}

std::string broken_rule(const Param& param) {
  const std::string wrong = broken_rule(VType{param.dtype, 1});
  return wrong.empty() ? "" : fmt::format("parameter '{}': {}", param.name, wrong);
}

}  // namespace pantala::kir
