// The kernel IR: what a scheduled group of ops becomes before any target sees it. Small and
// structured: typed values, loops with carried values, ifs, loads and stores. A backend maps these
// instructions one to one; what is not here (exp, erf, ...) is written once, in terms of them, in
// kir/math.h, so that every target computes the same bits.
//
// A kernel runs over `items`: independent pieces of work, numbered from 0, that any worker may take
// (a CPU worker takes a range, a GPU workgroup one). The body sees its item's number. A kernel for
// targets with workgroups says how many `threads` work on an item: each of them runs the whole body
// with a number of its own; they meet at barriers and in group_*. Sizes,
// strides and trip counts are run-time parameters; only tile constants are baked, so layers of a
// network share code. Vectors are explicit: every arithmetic instruction works on 1 or more lanes.
// A register tile is a set of SSA values that a loop carries. Scratch belongs to a worker (or
// workgroup), is sized in the kernel and never on the stack.
//
// Numerics: no instruction may be contracted or reassociated by a backend; `fma` is an instruction
// of its own. Every float instruction is the correctly rounded one (subnormals are kept). The sign
// and payload of a NaN that arithmetic makes are unspecified; moves (select, bitcast, neg, abs,
// memory of the same dtype) keep them.
//  - integers: wrap. div truncates, rem has the sign of the dividend; dividing by zero, or the
//    least number by -1, is an error of the kernel. shl and shr take their amount modulo the width,
//    shr keeps the sign. mulhi is the upper half of the product of *unsigned* numbers.
//  - min, max: min(a, b) = a < b or a is NaN ? a : b; max(a, b) = a > b or a is NaN ? a : b. So a
//    NaN on either side wins, and of two zeros b does.
//  - round: to the nearest integer, halves to even.
//  - neg, abs: of floats only touch the sign bit.
//  - lt ... ne: ordered, except ne, which holds for NaN.
//  - cast: float to integer truncates and saturates, NaN gives 0; integer to integer wraps;
//    anything to bool asks for != 0; the rest rounds to nearest even.
//  - memory: f16 and bf16 load as f32, u8 as i32, the rest as itself. Stores convert back (rounding
//    to nearest even, u8 wraps). A bool is one byte; any nonzero one reads as true.
//  - reduce_*: halve: lane k becomes op(lane k, lane k + n/2) until one is left. On bools
//    reduce_max is "any" and reduce_min "all".
//  - loop: for (i = begin; i < end; i += step). step must be positive, and end + step an i64.
//
// Threads of an item: what one wrote others may read only after a barrier, and two that touch one
// element between barriers must both read (checked by the interpreter). Barriers and group_* stand
// only where all threads come together: no loop or branch around them may depend on a value that
// differs between threads (kir/uniform.h). group_* combine one number per thread, in some order
// that is fixed for a target (the interpreter halves as reduce_* do), and are barriers as well. A
// vector that is loaded from scratch begins at a multiple of its lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/dtype.h"

namespace pantala::kir {

// `lanes` numbers of one dtype. f16, bf16 and u8 occur in memory only: loads and stores convert
// (load to f32, i32). Lanes: 1, 2, 4, 8, 16 or 32.
struct VType {
  DType dtype = DType::i64;
  int lanes = 1;
  friend bool operator==(const VType&, const VType&) = default;
  VType with_lanes(int n) const { return {dtype, n}; }
  VType with_dtype(DType t) const { return {t, lanes}; }
  std::string str() const;  // f32, f32x8
};

// A value of one kernel: an index into Kernel::types.
struct Value {
  std::uint32_t id = UINT32_MAX;
  bool valid() const { return id != UINT32_MAX; }
  friend auto operator<=>(const Value&, const Value&) = default;
};

enum class Op : std::uint8_t {
  // values
  constant,  // imm: the number, in every lane
  param,     // index: which scalar parameter
  // arithmetic, lane by lane; operands and result of one type
  add,
  sub,
  mul,
  div,
  min,
  max,
  neg,
  abs,
  // the same, floats only
  sqrt,
  floor,
  ceil,
  round,
  fma,
  // integers; bit_*: bools as well
  rem,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  mulhi,
  // bool results; eq and ne take bools as well
  lt,
  le,
  eq,
  ne,
  select,   // bool, a, b
  cast,     // to the result's dtype: floats to integers by truncation (saturating), integers wrap
  bitcast,  // f32 <-> i32, f64 <-> i64
  // lanes
  splat,      // scalar -> every lane
  iota,       // 0, 1, 2, ...
  extract,    // vector -> scalar; index: the lane
  transpose,  // n vectors of n lanes -> n vectors of n lanes
  reduce_add,
  reduce_max,
  reduce_min,
  // memory; index: the buffer. Indices (i64; those of gather may be i32) count elements. A mask
  // (bool, one per lane) may follow: lanes that are off read 0 and write nothing.
  load,           // [at] -> lanes at, at + 1, ...
  load_strided,   // [at, stride] -> lanes at, at + stride, ...
  gather,         // [indices] -> one index per lane
  store,          // [at, value]
  store_strided,  // [at, stride, value]
  prefetch,       // [at]: a hint, may be out of bounds
  // [condition], a scalar; index: the code (not 0) that the status word becomes if the condition
  // holds; any of several reports may win. Or [condition, code], an i64 scalar: then index is 0.
  report,
  // structure
  loop,  // [begin, end, step, carried...] -> final carried; block params: [index, carried...]
  if_,   // [condition] -> yields of the chosen block; two blocks without params
  // threads of an item
  barrier,
  group_add,  // [x] -> the sum over all threads, in each of them; max and min as reduce_*
  group_max,
  group_min,
};
std::string_view op_name(Op op);
std::optional<Op> parse_op(std::string_view name);
// Barriers and group_*: instructions at which all threads of an item meet.
bool is_meeting(Op op);
// Loads, stores and prefetches: instructions whose index is a buffer.
bool touches_memory(Op op);
// Instructions that compute their results from their arguments alone, so that equal ones are
// interchangeable and unused ones removable.
bool is_pure(Op op);
// The dtype that values of a memory dtype have in registers.
DType register_dtype(DType memory);
bool valid_lanes(std::int64_t lanes);

struct Inst;
struct Block {
  std::vector<Value> params;
  std::vector<Inst> body;
  std::vector<Value> yields;
};

struct Inst {
  Op op = Op::constant;
  std::vector<Value> args = {};
  std::vector<Value> results = {};
  std::vector<Block> blocks = {};
  double imm = 0;  // constant of a float type
  // Constant of an integer type or bool; number of a param, buffer or lane; code of a report.
  std::int64_t index = 0;
  bool masked = false;  // memory: the last argument is a mask
  bool stream = false;  // store: the value will not be read soon
};

enum class Access : std::uint8_t { read, write, read_write };
enum class Space : std::uint8_t {
  global,   // an argument
  scratch,  // of the worker or workgroup, `size` elements
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Access access = Access::read;
  Space space = Space::global;
  std::int64_t size = 0;  // scratch only
};

// A scalar argument: a size, a stride, a trip count (i64) or a hyper-parameter (f32, f64).
struct Param {
  std::string name;
  DType dtype = DType::i64;
};

constexpr std::int64_t kScratchAlignment = 64;
constexpr int kMaxThreads = 1024;

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;  // global ones first, in the order of the arguments
  std::vector<Param> params;
  std::vector<VType> types;  // of every value
  Block body;                // params: [item], of several threads [item, thread]; i64
  int threads = 1;           // that work on an item; a power of two

  const VType& type(Value v) const { return types[v.id]; }
  int global_buffers() const;
  // Every scratch buffer starts at a multiple of kScratchAlignment.
  std::int64_t scratch_bytes() const;
};

// Whether two kernels are the same code: everything but the names of kernel, buffers and
// parameters; values are compared by their numbers.
bool same_code(const Kernel& a, const Kernel& b);
std::uint64_t hash_code(const Kernel& kernel);

// The same, whatever the sizes of a worker's scratch: of two such kernels one that has the larger
// sizes of both serves for both. Scratch of a workgroup is scarce, and counts.
bool same_code_but_scratch(const Kernel& a, const Kernel& b);
std::uint64_t hash_code_but_scratch(const Kernel& kernel);
void widen_scratch(Kernel& kernel, const Kernel& other);

}  // namespace pantala::kir
