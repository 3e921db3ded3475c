#include "kir/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/hash.h"

namespace pantala::kir {

namespace {

enum class Kind : std::uint8_t { pure, memory, effect, meeting };
struct Row {
  Op op;
  std::string_view name;
  Kind kind = Kind::pure;
};
constexpr Row kRows[] = {
    {Op::constant, "constant"},
    {Op::param, "param"},
    {Op::add, "add"},
    {Op::sub, "sub"},
    {Op::mul, "mul"},
    {Op::div, "div"},
    {Op::min, "min"},
    {Op::max, "max"},
    {Op::neg, "neg"},
    {Op::abs, "abs"},
    {Op::sqrt, "sqrt"},
    {Op::floor, "floor"},
    {Op::ceil, "ceil"},
    {Op::round, "round"},
    {Op::fma, "fma"},
    {Op::rem, "rem"},
    {Op::bit_and, "bit_and"},
    {Op::bit_or, "bit_or"},
    {Op::bit_xor, "bit_xor"},
    {Op::shl, "shl"},
    {Op::shr, "shr"},
    {Op::mulhi, "mulhi"},
    {Op::lt, "lt"},
    {Op::le, "le"},
    {Op::eq, "eq"},
    {Op::ne, "ne"},
    {Op::select, "select"},
    {Op::cast, "cast"},
    {Op::bitcast, "bitcast"},
    {Op::splat, "splat"},
    {Op::iota, "iota"},
    {Op::extract, "extract"},
    {Op::transpose, "transpose"},
    {Op::reduce_add, "reduce_add"},
    {Op::reduce_max, "reduce_max"},
    {Op::reduce_min, "reduce_min"},
    {Op::load, "load", Kind::memory},
    {Op::load_strided, "load_strided", Kind::memory},
    {Op::gather, "gather", Kind::memory},
    {Op::store, "store", Kind::memory},
    {Op::store_strided, "store_strided", Kind::memory},
    {Op::prefetch, "prefetch", Kind::memory},
    {Op::report, "report", Kind::effect},
    {Op::loop, "for", Kind::effect},
    {Op::if_, "if", Kind::effect},
    {Op::barrier, "barrier", Kind::meeting},
    {Op::group_add, "group_add", Kind::meeting},
    {Op::group_max, "group_max", Kind::meeting},
    {Op::group_min, "group_min", Kind::meeting},
};
constexpr bool rows_in_order() {
  for (std::size_t k = 0; k < std::size(kRows); ++k)
    if (static_cast<std::size_t>(kRows[k].op) != k) return false;
  return std::size(kRows) == static_cast<std::size_t>(Op::group_min) + 1;
}
static_assert(rows_in_order());

const Row& row(Op op) { return kRows[static_cast<std::size_t>(op)]; }

bool same_block(const Block& a, const Block& b);
bool same_inst(const Inst& a, const Inst& b) {
  return a.op == b.op && a.args == b.args && a.results == b.results &&
         std::bit_cast<std::uint64_t>(a.imm) == std::bit_cast<std::uint64_t>(b.imm) &&
         a.index == b.index && a.masked == b.masked && a.stream == b.stream &&
         std::ranges::equal(a.blocks, b.blocks, same_block);
}
bool same_block(const Block& a, const Block& b) {
  return a.params == b.params && a.yields == b.yields &&
         std::ranges::equal(a.body, b.body, same_inst);
}

struct Hasher {
  std::uint64_t hash = kHashSeed;
  template <class N>
  void add(N number) {
    hash = hash_combine(hash, static_cast<std::uint64_t>(number));
  }
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const Value v : values) add(v.id);
  }
  void add(const Block& block) {
    add(block.params), add(block.yields);
    add(block.body.size());
    for (const Inst& inst : block.body) {
      add(inst.op), add(inst.args), add(inst.results);
      add(hash_double(inst.imm)), add(inst.index), add(inst.masked), add(inst.stream);
      add(inst.blocks.size());
      for (const Block& inner : inst.blocks) add(inner);
    }
  }
};

}  // namespace

std::string VType::str() const {
  std::string text(dtype_name(dtype));
  if (lanes != 1) text += fmt::format("x{}", lanes);
  return text;
}

std::string_view op_name(Op op) { return row(op).name; }

std::optional<Op> parse_op(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.op;
  return std::nullopt;
}

bool is_meeting(Op op) { return row(op).kind == Kind::meeting; }
bool touches_memory(Op op) { return row(op).kind == Kind::memory; }
bool is_pure(Op op) { return row(op).kind == Kind::pure; }

DType register_dtype(DType memory) {
  switch (memory) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::u8:
      return DType::i32;
    default:
      return memory;
  }
}

bool valid_lanes(std::int64_t lanes) {
  return lanes >= 1 && lanes <= 32 && std::has_single_bit(static_cast<std::uint64_t>(lanes));
}

int Kernel::global_buffers() const {
  return static_cast<int>(
      std::ranges::count_if(buffers, [](const Buffer& b) { return b.space == Space::global; }));
}

std::int64_t Kernel::scratch_bytes() const {
  std::int64_t total = 0;
  for (const Buffer& b : buffers) {
    if (b.space != Space::scratch) continue;
    const std::int64_t bytes = b.size * dtype_bytes(b.dtype);
    total += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  return total;
}

namespace {

bool same(const Kernel& a, const Kernel& b, bool with_sizes) {
  const auto same_buffer = [&](const Buffer& x, const Buffer& y) {
    return x.dtype == y.dtype && x.access == y.access && x.space == y.space &&
           (!with_sizes || x.size == y.size);
  };
  const auto same_param = [](const Param& x, const Param& y) { return x.dtype == y.dtype; };
  return std::ranges::equal(a.buffers, b.buffers, same_buffer) &&
         std::ranges::equal(a.params, b.params, same_param) && a.types == b.types &&
         a.threads == b.threads && same_block(a.body, b.body);
}

std::uint64_t hash_of(const Kernel& kernel, bool with_sizes) {
  Hasher h;
  h.add(kernel.buffers.size());
  for (const Buffer& b : kernel.buffers)
    h.add(b.dtype), h.add(b.access), h.add(b.space), h.add(with_sizes ? b.size : 0);
  h.add(kernel.params.size());
  for (const Param& p : kernel.params) h.add(p.dtype);
  h.add(kernel.types.size());
  for (const VType& t : kernel.types) h.add(t.dtype), h.add(t.lanes);
  h.add(kernel.threads);
  h.add(kernel.body);
  return h.hash;
}

bool has_group(const Kernel& kernel) { return kernel.threads > 1; }

}  // namespace

bool same_code(const Kernel& a, const Kernel& b) { return same(a, b, true); }
std::uint64_t hash_code(const Kernel& kernel) { return hash_of(kernel, true); }

bool same_code_but_scratch(const Kernel& a, const Kernel& b) { return same(a, b, has_group(a)); }
std::uint64_t hash_code_but_scratch(const Kernel& kernel) {
  return hash_of(kernel, has_group(kernel));
}
void widen_scratch(Kernel& kernel, const Kernel& other) {
  for (std::size_t k = 0; k < kernel.buffers.size(); ++k)
    kernel.buffers[k].size = std::max(kernel.buffers[k].size, other.buffers[k].size);
}

}  // namespace pantala::kir
