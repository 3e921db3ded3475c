// x 2^n as math::scale() writes it, x * 2^(n/2) * 2^(n - n/2), as the one instruction that AVX-512
// has for it. Both round once, where the result becomes subnormal or infinite.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/llvm/emit.h"

namespace pantala::codegen {

namespace {

namespace pm = llvm::PatternMatch;

// The layout of f32 and f64.
struct Exponent {
  std::uint64_t bias, shift;
};

// n, where the value is 2^n by its bits.
llvm::Value* power_of(llvm::Value* value, const Exponent& exponent) {
  llvm::Value* n = nullptr;
  const bool found = pm::match(
      value, pm::m_BitCast(pm::m_Shl(pm::m_Add(pm::m_Value(n), pm::m_SpecificInt(exponent.bias)),
                                     pm::m_SpecificInt(exponent.shift))));
  return found ? n : nullptr;
}

}  // namespace

llvm::Value* emit_scaling(llvm::IRBuilderBase& ir, const HostTarget& target, llvm::Value* a,
                          llvm::Value* b) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  if (type == nullptr || !has_feature(target, "avx512f") ||
      type->getPrimitiveSizeInBits().getFixedValue() != 512)
    return nullptr;
  const bool is_double = type->getElementType()->isDoubleTy();
  const Exponent exponent = is_double ? Exponent{1023, 52} : Exponent{127, 23};
  llvm::Value *x = nullptr, *first = nullptr, *n = nullptr;
  if (!pm::match(a, pm::m_FMul(pm::m_Value(x), pm::m_Value(first)))) return nullptr;
  llvm::Value *half = power_of(first, exponent), *rest = power_of(b, exponent);
  if (half == nullptr || rest == nullptr ||
      !pm::match(rest, pm::m_Sub(pm::m_Value(n), pm::m_Specific(half))) ||
      !pm::match(half, pm::m_AShr(pm::m_Specific(n), pm::m_SpecificInt(1))))
    return nullptr;
  llvm::Value* const by = ir.CreateSIToFP(n, a->getType());
  constexpr unsigned kAsTheProcessorRounds = 4;
  const unsigned lanes = type->getNumElements();
  return ir.CreateIntrinsic(is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                                      : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                            {},
                            {x, by, llvm::Constant::getNullValue(a->getType()),
                             llvm::ConstantInt::getAllOnesValue(ir.getIntNTy(lanes)),
                             ir.getInt32(kAsTheProcessorRounds)});
}

}  // namespace pantala::codegen
