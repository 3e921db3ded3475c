// Instructions that compute: one row of LLVM IR for each scalar op of the kernel IR, lane
// operations as shuffles. No flag that would allow a rounding to change is ever set.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "codegen/llvm/emit.h"
#include "pantala/error.h"

namespace pantala::codegen {

namespace {

using kir::Op;
using llvm::Intrinsic::ID;
using Values = std::span<llvm::Value* const>;

llvm::Type* element_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return llvm::Type::getFloatTy(context);
    case DType::f64:
      return llvm::Type::getDoubleTy(context);
    case DType::i32:
      return llvm::Type::getInt32Ty(context);
    case DType::i64:
      return llvm::Type::getInt64Ty(context);
    case DType::boolean:
      return llvm::Type::getInt1Ty(context);
    case DType::f16:
    case DType::bf16:
    case DType::u8:
      break;
  }
  throw InternalError("code generation: " + std::string(dtype_name(dtype)) +
                      " is a type of memory only");
}

// Whether a value is one number in all lanes that is neither NaN nor a zero.
bool is_plain_number(llvm::Value* x) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(x);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number != nullptr && !number->isNaN() && !number->isZero();
}

// min(a, b) = a < b or a is NaN ? a : b. Two selects, since the outer one then leaves the pair
// (compare, select) that x86 has as one instruction. Beside a plain number that pair alone does it,
// the other way round: b < a ? b : a.
llvm::Value* float_extreme(llvm::IRBuilderBase& ir, llvm::CmpInst::Predicate better, llvm::Value* a,
                           llvm::Value* b) {
  if (is_plain_number(b)) return ir.CreateSelect(ir.CreateFCmp(better, b, a), b, a);
  llvm::Value* best = ir.CreateSelect(ir.CreateFCmp(better, a, b), a, b);
  return ir.CreateSelect(ir.CreateFCmpUNO(a, a), a, best);
}

llvm::Value* extreme(llvm::IRBuilderBase& ir, bool maximum, DType dtype, llvm::Value* a,
                     llvm::Value* b) {
  if (is_float(dtype))
    return float_extreme(ir, maximum ? llvm::CmpInst::FCMP_OGT : llvm::CmpInst::FCMP_OLT, a, b);
  if (dtype == DType::boolean) return maximum ? ir.CreateOr(a, b) : ir.CreateAnd(a, b);
  return ir.CreateBinaryIntrinsic(maximum ? ID(llvm::Intrinsic::smax) : ID(llvm::Intrinsic::smin),
                                  a, b);
}

// The upper half of the product of unsigned numbers.
llvm::Value* multiply_high(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  llvm::Type* narrow = a->getType();
  const unsigned bits = narrow->getScalarSizeInBits();
  llvm::Type* wide = narrow->getWithNewBitWidth(2 * bits);
  llvm::Value* product = ir.CreateMul(ir.CreateZExt(a, wide), ir.CreateZExt(b, wide));
  return ir.CreateTrunc(ir.CreateLShr(product, bits), narrow);
}

// LLVM's shifts by the width or more are undefined; ours count modulo the width.
llvm::Value* shift_amount(llvm::IRBuilderBase& ir, llvm::Value* amount) {
  return ir.CreateAnd(amount, llvm::ConstantInt::get(amount->getType(),
                                                     amount->getType()->getScalarSizeInBits() - 1));
}

llvm::Value* compare(llvm::IRBuilderBase& ir, Op op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool real = is_float(dtype);
  switch (op) {
    case Op::lt:
      return real ? ir.CreateFCmpOLT(a, b) : ir.CreateICmpSLT(a, b);
    case Op::le:
      return real ? ir.CreateFCmpOLE(a, b) : ir.CreateICmpSLE(a, b);
    case Op::eq:
      return real ? ir.CreateFCmpOEQ(a, b) : ir.CreateICmpEQ(a, b);
    default:
      return real ? ir.CreateFCmpUNE(a, b) : ir.CreateICmpNE(a, b);
  }
}

llvm::Value* cast(llvm::IRBuilderBase& ir, kir::VType from, kir::VType to, llvm::Value* x) {
  if (from.dtype == to.dtype) return x;
  llvm::Type* type = type_of(ir.getContext(), to);
  if (to.dtype == DType::boolean)
    return compare(ir, Op::ne, from.dtype, x, llvm::Constant::getNullValue(x->getType()));
  if (is_float(from.dtype)) {
    if (is_float(to.dtype)) return ir.CreateFPCast(x, type);
    return ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, x->getType()}, {x});
  }
  const bool boolean = from.dtype == DType::boolean;
  if (is_float(to.dtype)) return boolean ? ir.CreateUIToFP(x, type) : ir.CreateSIToFP(x, type);
  return boolean ? ir.CreateZExt(x, type) : ir.CreateSExtOrTrunc(x, type);
}

llvm::Value* combine(llvm::IRBuilderBase& ir, Op op, DType dtype, llvm::Value* a, llvm::Value* b) {
  if (op == Op::reduce_add) return is_float(dtype) ? ir.CreateFAdd(a, b) : ir.CreateAdd(a, b);
  return extreme(ir, op == Op::reduce_max, dtype, a, b);
}

std::vector<int> iota(int first, int count) {
  std::vector<int> lanes(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) lanes[static_cast<std::size_t>(k)] = first + k;
  return lanes;
}

// Halves: the order of a reduction is part of its result.
llvm::Value* reduce(llvm::IRBuilderBase& ir, Op op, kir::VType type, llvm::Value* x) {
  if (type.dtype == DType::boolean && type.lanes > 1) {
    llvm::Value* bits = ir.CreateBitCast(x, ir.getIntNTy(static_cast<unsigned>(type.lanes)));
    llvm::Type* word = bits->getType();
    return op == Op::reduce_max ? ir.CreateICmpNE(bits, llvm::ConstantInt::getNullValue(word))
                                : ir.CreateICmpEQ(bits, llvm::ConstantInt::getAllOnesValue(word));
  }
  for (int n = type.lanes; n > 2; n /= 2)
    x = combine(ir, op, type.dtype, ir.CreateShuffleVector(x, iota(0, n / 2)),
                ir.CreateShuffleVector(x, iota(n / 2, n / 2)));
  if (type.lanes == 1) return x;
  return combine(ir, op, type.dtype, ir.CreateExtractElement(x, std::uint64_t{0}),
                 ir.CreateExtractElement(x, std::uint64_t{1}));
}

llvm::Value* lane_numbers(llvm::LLVMContext& context, kir::VType type) {
  llvm::Type* element = element_type(context, type.dtype);
  std::vector<llvm::Constant*> lanes;
  for (int k = 0; k < type.lanes; ++k)
    lanes.push_back(is_float(type.dtype)
                        ? llvm::ConstantFP::get(element, k)
                        : llvm::ConstantInt::get(element, static_cast<std::uint64_t>(k)));
  return type.lanes == 1 ? lanes[0] : llvm::ConstantVector::get(lanes);
}

llvm::Value* float_operation(llvm::IRBuilderBase& ir, const Operation& o, Values a) {
  switch (o.inst.op) {
    case Op::add:
      return ir.CreateFAdd(a[0], a[1]);
    case Op::sub:
      return ir.CreateFSub(a[0], a[1]);
    case Op::mul:
      return ir.CreateFMul(a[0], a[1]);
    case Op::div:
      return ir.CreateFDiv(a[0], a[1]);
    case Op::neg:
      return ir.CreateFNeg(a[0]);
    case Op::abs:
      return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a[0]);
    case Op::sqrt:
      return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a[0]);
    case Op::floor:
      return ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a[0]);
    case Op::ceil:
      return ir.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a[0]);
    case Op::round:
      return ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a[0]);
    case Op::fma:
      return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a[0]->getType()}, {a[0], a[1], a[2]});
    default:
      return nullptr;
  }
}

llvm::Value* integer_operation(llvm::IRBuilderBase& ir, const Operation& o, Values a) {
  switch (o.inst.op) {
    case Op::add:
      return ir.CreateAdd(a[0], a[1]);
    case Op::sub:
      return ir.CreateSub(a[0], a[1]);
    case Op::mul:
      return ir.CreateMul(a[0], a[1]);
    case Op::div:
      return ir.CreateSDiv(a[0], a[1]);
    case Op::rem:
      return ir.CreateSRem(a[0], a[1]);
    case Op::neg:
      return ir.CreateNeg(a[0]);
    case Op::abs:
      return ir.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a[0], ir.getFalse());
    case Op::bit_and:
      return ir.CreateAnd(a[0], a[1]);
    case Op::bit_or:
      return ir.CreateOr(a[0], a[1]);
    case Op::bit_xor:
      return ir.CreateXor(a[0], a[1]);
    case Op::shl:
      return ir.CreateShl(a[0], shift_amount(ir, a[1]));
    case Op::shr:
      return ir.CreateAShr(a[0], shift_amount(ir, a[1]));
    case Op::mulhi:
      return multiply_high(ir, a[0], a[1]);
    default:
      return nullptr;
  }
}

// Ops whose form depends on neither kind.
llvm::Value* general_operation(llvm::IRBuilderBase& ir, const Operation& o, Values a) {
  llvm::LLVMContext& context = ir.getContext();
  llvm::Type* type = type_of(context, o.result);
  switch (o.inst.op) {
    case Op::constant:
      if (is_float(o.result.dtype)) return llvm::ConstantFP::get(type, o.inst.imm);
      return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(o.inst.index));
    case Op::min:
      return extreme(ir, false, o.operand.dtype, a[0], a[1]);
    case Op::max:
      return extreme(ir, true, o.operand.dtype, a[0], a[1]);
    case Op::lt:
    case Op::le:
    case Op::eq:
    case Op::ne:
      return compare(ir, o.inst.op, o.operand.dtype, a[0], a[1]);
    case Op::select:
      return ir.CreateSelect(a[0], a[1], a[2]);
    case Op::cast:
      return cast(ir, o.operand, o.result, a[0]);
    case Op::bitcast:
      return ir.CreateBitCast(a[0], type);
    case Op::splat:
      return o.result.lanes == 1
                 ? a[0]
                 : ir.CreateVectorSplat(static_cast<unsigned>(o.result.lanes), a[0]);
    case Op::iota:
      return lane_numbers(context, o.result);
    case Op::extract:
      return o.operand.lanes == 1
                 ? a[0]
                 : ir.CreateExtractElement(a[0], static_cast<std::uint64_t>(o.inst.index));
    case Op::reduce_add:
    case Op::reduce_max:
    case Op::reduce_min:
      return reduce(ir, o.inst.op, o.operand, a[0]);
    default:
      return nullptr;
  }
}

// Interleaves the lower (or upper) halves of every segment of two rows, `unit` elements at a time:
// x86's unpack instructions.
std::vector<int> unpack_lanes(int lanes, int segment, int unit, bool upper) {
  std::vector<int> mask;
  for (int s = 0; s < lanes; s += segment)
    for (int u = upper ? segment / 2 : 0; u < (upper ? segment : segment / 2); u += unit)
      for (const int row : {0, lanes})
        for (int k = 0; k < unit; ++k) mask.push_back(row + s + u + k);
  return mask;
}

// Exchanges the upper blocks of one row with the lower blocks of the other, `block` elements at a
// time.
std::vector<int> exchange_lanes(int lanes, int block, bool upper) {
  std::vector<int> mask;
  for (int k = 0; k < lanes; ++k) {
    const bool second = (k & block) != 0;
    mask.push_back(upper ? (second ? lanes + k : k + block) : (second ? lanes + k - block : k));
  }
  return mask;
}

}  // namespace

llvm::Type* type_of(llvm::LLVMContext& context, kir::VType type) {
  llvm::Type* element = element_type(context, type.dtype);
  return type.lanes == 1 ? element
                         : llvm::FixedVectorType::get(element, static_cast<unsigned>(type.lanes));
}

llvm::Value* emit_operation(llvm::IRBuilderBase& ir, const Operation& operation, Values args) {
  llvm::Value* result = general_operation(ir, operation, args);
  if (!result)
    result = is_float(operation.operand.dtype) ? float_operation(ir, operation, args)
                                               : integer_operation(ir, operation, args);
  if (!result)
    throw InternalError("code generation: " + std::string(kir::op_name(operation.inst.op)) +
                        " of " + operation.operand.str());
  return result;
}

// First w x w blocks inside the 128-bit segments by unpacking, w the elements of a segment; then
// whole segments change places.
std::vector<llvm::Value*> emit_transpose(llvm::IRBuilderBase& ir, Values rows, DType dtype) {
  const int n = static_cast<int>(rows.size());
  const int segment =
      std::min(n, dtype == DType::boolean ? n : static_cast<int>(16 / dtype_bytes(dtype)));
  std::vector<llvm::Value*> now(rows.begin(), rows.end());
  std::vector<llvm::Value*> next(now.size());
  const auto pair = [&](int a, int b, const std::vector<int>& lower, const std::vector<int>& upper,
                        int to_lower, int to_upper) {
    llvm::Value* x = now[static_cast<std::size_t>(a)];
    llvm::Value* y = now[static_cast<std::size_t>(b)];
    next[static_cast<std::size_t>(to_lower)] = ir.CreateShuffleVector(x, y, lower);
    next[static_cast<std::size_t>(to_upper)] = ir.CreateShuffleVector(x, y, upper);
  };
  // After the step with `unit`, row c + j of a group of 2 * unit rows holds column j of each
  // segment's part: rows r and r + unit meet.
  for (int unit = 1; unit < segment; unit *= 2) {
    const auto lower = unpack_lanes(n, segment, unit, false),
               upper = unpack_lanes(n, segment, unit, true);
    for (int group = 0; group < n; group += 2 * unit)
      for (int j = 0; j < unit; ++j)
        pair(group + j, group + unit + j, lower, upper, group + 2 * j, group + 2 * j + 1);
    now = next;
  }
  for (int block = segment; block < n; block *= 2) {
    const auto lower = exchange_lanes(n, block, false), upper = exchange_lanes(n, block, true);
    for (int r = 0; r < n; ++r)
      if ((r & block) == 0) pair(r, r + block, lower, upper, r, r + block);
    now = next;
  }
  return now;
}

}  // namespace pantala::codegen
