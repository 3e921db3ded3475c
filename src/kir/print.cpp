#include <fmt/format.h>

#include "base/text.h"
#include "kir/text.h"

namespace pantala::kir {

namespace {

std::string name_of(Value v) { return v.valid() ? fmt::format("%{}", v.id) : "%none"; }

// Prints kernels that may be broken as well: messages of the verifier show what they complain
// about.
class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string kernel() const {
    std::string out = fmt::format("kernel {} {{\n", in_quotes(kernel_.name));
    for (const Buffer& b : kernel_.buffers) {
      const std::string_view access = b.access == Access::read    ? "read"
                                      : b.access == Access::write ? "write"
                                                                  : "read_write";
      out += b.space == Space::global
                 ? fmt::format("  buffer {}: {} {}\n", b.name, dtype_name(b.dtype), access)
                 : fmt::format("  scratch {}: {}[{}]\n", b.name, dtype_name(b.dtype), b.size);
    }
    for (const Param& p : kernel_.params)
      out += fmt::format("  param {}: {}\n", p.name, dtype_name(p.dtype));
    if (kernel_.threads != 1) out += fmt::format("  threads {}\n", kernel_.threads);
    out += fmt::format("  item {}\n", list(kernel_.body.params));
    append(out, kernel_.body, 1);
    return out + "}\n";
  }

  // Without the blocks.
  std::string head(const Inst& inst) const {
    std::string out;
    for (const Value v : inst.results)
      out += fmt::format("{}{}:{}", out.empty() ? "" : ", ", name_of(v),
                         v.id < kernel_.types.size() ? kernel_.type(v).str() : "?");
    if (!inst.results.empty()) out += " = ";
    out += op_name(inst.op);
    return out + operands(inst);
  }

 private:
  static std::string list(const std::vector<Value>& values) {
    std::string out;
    for (const Value v : values) out += (out.empty() ? "" : ", ") + name_of(v);
    return out;
  }
  static std::string arg(const Inst& inst, std::size_t k) {
    return k < inst.args.size() ? name_of(inst.args[k]) : "%none";
  }

  std::string operands(const Inst& inst) const {
    switch (inst.op) {
      case Op::constant: {
        const bool real = !inst.results.empty() && inst.results[0].id < kernel_.types.size() &&
                          is_float(kernel_.type(inst.results[0]).dtype);
        return fmt::format(" {}", real ? exact(inst.imm) : std::to_string(inst.index));
      }
      case Op::param: {
        const bool known = inst.index >= 0 && inst.index < std::ssize(kernel_.params);
        return fmt::format(" {}", known ? kernel_.params[static_cast<std::size_t>(inst.index)].name
                                        : fmt::format("?{}", inst.index));
      }
      case Op::extract:
        return fmt::format(" {} lane {}", list(inst.args), inst.index);
      case Op::report:
        return inst.args.size() > 1 ? fmt::format(" {}", list(inst.args))
                                    : fmt::format(" {} code {}", list(inst.args), inst.index);
      case Op::load:
      case Op::load_strided:
      case Op::gather:
      case Op::store:
      case Op::store_strided:
      case Op::prefetch:
        return memory(inst);
      case Op::loop:
        return loop(inst);
      default:
        return inst.args.empty() ? "" : fmt::format(" {}", list(inst.args));
    }
  }

  std::string memory(const Inst& inst) const {
    const bool known = inst.index >= 0 && inst.index < std::ssize(kernel_.buffers);
    const bool strided = inst.op == Op::load_strided || inst.op == Op::store_strided;
    const bool stores = inst.op == Op::store || inst.op == Op::store_strided;
    std::string out = fmt::format(" {}[{}",
                                  known ? kernel_.buffers[static_cast<std::size_t>(inst.index)].name
                                        : fmt::format("?{}", inst.index),
                                  arg(inst, 0));
    if (strided) out += " by " + arg(inst, 1);
    out += "]";
    if (stores) out += " = " + arg(inst, strided ? 2 : 1);
    if (inst.masked) out += " mask " + (inst.args.empty() ? "%none" : name_of(inst.args.back()));
    if (inst.stream) out += " stream";
    return out;
  }

  std::string loop(const Inst& inst) const {
    const std::vector<Value> params =
        inst.blocks.empty() ? std::vector<Value>{} : inst.blocks[0].params;
    std::string out =
        fmt::format(" {} in {} to {} step {}", params.empty() ? "%none" : name_of(params[0]),
                    arg(inst, 0), arg(inst, 1), arg(inst, 2));
    if (params.size() > 1) out += " carry (";
    for (std::size_t k = 1; k < params.size(); ++k)
      out += fmt::format("{}{} = {}", k == 1 ? "" : ", ", name_of(params[k]), arg(inst, k + 2));
    if (params.size() > 1) out += ")";
    return out;
  }

  void append(std::string& out, const Block& block, int depth) const {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    for (const Inst& inst : block.body) {
      out += indent + head(inst);
      for (std::size_t k = 0; k < inst.blocks.size(); ++k) {
        if (k == 1 && inst.blocks[k].body.empty() && inst.blocks[k].yields.empty()) break;
        out += k == 0 ? " {\n" : " else {\n";
        append(out, inst.blocks[k], depth + 1);
        out += indent + "}";
      }
      out += "\n";
    }
    if (!block.yields.empty()) out += indent + "yield " + list(block.yields) + "\n";
  }

  const Kernel& kernel_;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).kernel(); }
std::string print(const Kernel& kernel, const Inst& inst) { return Printer(kernel).head(inst); }

}  // namespace pantala::kir
