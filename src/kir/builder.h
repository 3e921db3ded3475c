// Builder: writes a kernel instruction by instruction. Every call checks its operands
// (InternalError: a kernel is made by our own code). Operators work on `Var`, a value together with
// its builder; plain numbers become constants of the other side's type.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/id.h"
#include "kir/kernel.h"

namespace pantala::kir {

class Builder;

class Var {
 public:
  Var() = default;
  Var(Builder* builder, Value value) : builder_(builder), value_(value) {}
  bool valid() const { return builder_ != nullptr; }
  Value value() const { return value_; }
  Builder& builder() const { return *builder_; }
  VType type() const;
  DType dtype() const { return type().dtype; }
  int lanes() const { return type().lanes; }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};

// A buffer of a kernel.
class BufferId : public Id<BufferId> {
 public:
  constexpr BufferId() = default;  // none
  constexpr explicit BufferId(int number) : Id(static_cast<std::size_t>(number)) {}
};

class Builder {
 public:
  // A kernel whose items are worked on by `threads` threads each.
  explicit Builder(std::string name, int threads = 1);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Arguments. Global buffers come before scratch; parameters are made outside of loops and
  // branches.
  BufferId buffer(std::string name, DType dtype, Access access);
  BufferId scratch(std::string name, DType dtype, std::int64_t size);
  Var param(std::string name, DType dtype = DType::i64);
  Var item() const { return item_; }
  // The thread's number; only in a kernel of several threads.
  Var thread() const { return thread_; }
  int threads() const { return kernel_.threads; }

  // Values.
  // A float constant is rounded to the type; a constant of an integer type must be a number of that
  // type.
  Var constant(VType type, double value);
  Var constant(VType type, std::int64_t value);
  Var i64(std::int64_t value) { return constant({DType::i64, 1}, value); }
  Var unary(Op op, Var x);
  Var binary(Op op, Var a, Var b);
  // In fma and select, as in the operators below, a scalar beside a vector is splat.
  Var fma(Var a, Var b, Var c);  // a * b + c, rounded once
  Var select(Var condition, Var a, Var b);
  Var cast(Var x, DType dtype);
  Var bitcast(Var x, DType dtype);
  Var splat(Var x, int lanes);
  Var iota(VType type);
  Var extract(Var x, int lane);
  std::vector<Var> transpose(const std::vector<Var>& rows);
  Var reduce(Op op, Var x);

  // Memory. `lanes` 1 gives a scalar. An invalid mask means none.
  Var load(BufferId buffer, Var at, int lanes = 1, Var mask = {});
  Var load_strided(BufferId buffer, Var at, Var stride, int lanes, Var mask = {});
  Var gather(BufferId buffer, Var indices, Var mask = {});
  void store(BufferId buffer, Var at, Var value, Var mask = {}, bool stream = false);
  void store_strided(BufferId buffer, Var at, Var stride, Var value, Var mask = {});
  void prefetch(BufferId buffer, Var at);
  void report(Var condition, std::int64_t code);
  void report(Var condition, Var code);

  // Structure. The body gets the index and the carried values and returns their next ones.
  using LoopBody = std::function<std::vector<Var>(Var index, std::span<const Var> carried)>;
  std::vector<Var> loop(Var begin, Var end, Var step, const std::vector<Var>& carried,
                        const LoopBody& body);
  void loop(Var begin, Var end, Var step, const std::function<void(Var index)>& body);
  using Branch = std::function<std::vector<Var>()>;
  std::vector<Var> branch(Var condition, const Branch& then, const Branch& otherwise);
  void branch(Var condition, const std::function<void()>& then);
  // All threads of an item meet. `group`: group_add, group_max or group_min.
  void barrier();
  Var group(Op op, Var x);

  // The dtype that a buffer's elements have once loaded.
  DType loaded_dtype(BufferId buffer) const;
  // Finishes with a verified kernel; the builder is used up.
  Kernel finish();

  VType type(Value v) const;

 private:
  // Appends an instruction after checking it against the rules (kir/rules.h).
  std::vector<Var> emit(Inst inst, const std::vector<VType>& types);
  Var emit(Inst inst, VType type);
  Value fresh(VType type);
  // Throws InternalError with the kernel's name, the op's and `what`.
  [[noreturn]] void fail(Op op, std::string_view what) const;
  // The values, each of this builder and visible in the open block.
  std::vector<Value> usable(Op op, std::span<const Var> values) const;
  std::vector<Value> usable(Op op, std::initializer_list<Var> values) const;
  Inst memory(Op op, BufferId buffer, std::initializer_list<Var> values, Var mask) const;
  Block nested(Op op, const std::vector<VType>& params,
               const std::function<std::vector<Var>(std::span<const Var>)>& body);

  Kernel kernel_;
  std::vector<Block*> open_;   // innermost last
  std::vector<bool> visible_;  // by value: false once its block is closed
  Var item_, thread_;
};

// Operators; one side may be a plain number, and a scalar beside a vector is splat.
Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator/(Var a, Var b);
Var operator%(Var a, Var b);
Var operator-(Var a);
Var min(Var a, Var b);
Var max(Var a, Var b);
Var lt(Var a, Var b);
Var le(Var a, Var b);
Var eq(Var a, Var b);
Var ne(Var a, Var b);
// b with the lanes of a, if b is a scalar.
Var splat_like(Var a, Var b);
// A number of the type of another value.
Var like(Var model, double value);
Var like(Var model, std::int64_t value);
inline Var like(Var model, int value) { return like(model, static_cast<std::int64_t>(value)); }

template <class N>
concept PlainNumber = std::is_arithmetic_v<N>;
#define PANTALA_KIR_MIXED(NAME) \
  template <PlainNumber N>      \
  Var NAME(Var a, N b) {        \
    return NAME(a, like(a, b)); \
  }                             \
  template <PlainNumber N>      \
  Var NAME(N a, Var b) {        \
    return NAME(like(b, a), b); \
  }
PANTALA_KIR_MIXED(operator+)
PANTALA_KIR_MIXED(operator-)
PANTALA_KIR_MIXED(operator*)
PANTALA_KIR_MIXED(operator/)
PANTALA_KIR_MIXED(operator%)
PANTALA_KIR_MIXED(min)
PANTALA_KIR_MIXED(max)
PANTALA_KIR_MIXED(lt)
PANTALA_KIR_MIXED(le)
PANTALA_KIR_MIXED(eq)
PANTALA_KIR_MIXED(ne)
#undef PANTALA_KIR_MIXED

}  // namespace pantala::kir
