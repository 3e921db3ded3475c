// Loads and stores: contiguous, strided and gathered, with and without a mask, and the conversion
// between what memory holds and what registers hold. Lanes that a mask switches off touch no
// memory.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Metadata.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <functional>

#include "codegen/llvm/emit.h"

namespace pantala::codegen {

namespace {

// Memory is read and written as this type. Half-width floats travel as integers: not every target
// has masked access to them.
llvm::Type* carrier(llvm::LLVMContext& context, DType dtype, int lanes) {
  llvm::Type* element = nullptr;
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      element = llvm::Type::getInt16Ty(context);
      break;
    case DType::u8:
    case DType::boolean:
      element = llvm::Type::getInt8Ty(context);
      break;
    default:
      return type_of(context, {dtype, lanes});
  }
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Align element_align(DType dtype) {
  return llvm::Align(static_cast<std::uint64_t>(dtype_bytes(dtype)));
}

bool converts_half(const HostTarget& target) {
  return llvm::Triple(target.triple).isAArch64() || has_feature(target, "f16c") ||
         has_feature(target, "avx512f");
}

llvm::Value* integer(llvm::Type* type, std::uint64_t value) {
  return llvm::ConstantInt::get(type, value);
}

// f16 as bits -> f32, without hardware: shifting the number into place leaves it 2^112 too small,
// which is an exact factor.
llvm::Value* widen_half(llvm::IRBuilderBase& ir, llvm::Value* bits, llvm::Type* words,
                        llvm::Type* floats) {
  llvm::Value* word = ir.CreateZExt(bits, words);
  llvm::Value* magnitude = ir.CreateShl(ir.CreateAnd(word, integer(words, 0x7FFF)), 13);
  llvm::Value* finite = ir.CreateBitCast(
      ir.CreateFMul(ir.CreateBitCast(magnitude, floats), llvm::ConstantFP::get(floats, 0x1p112)),
      words);
  llvm::Value* special = ir.CreateOr(magnitude, integer(words, 0x7F800000));
  llvm::Value* value =
      ir.CreateSelect(ir.CreateICmpUGE(magnitude, integer(words, 0x7C00 << 13)), special, finite);
  llvm::Value* sign = ir.CreateShl(ir.CreateAnd(word, integer(words, 0x8000)), 16);
  return ir.CreateBitCast(ir.CreateOr(value, sign), floats);
}

// Adds just below one half of the last place that stays, or one half if that place is odd: the sum
// is rounded to nearest even by cutting it off.
llvm::Value* round_off(llvm::IRBuilderBase& ir, llvm::Value* word, unsigned bits) {
  llvm::Type* words = word->getType();
  llvm::Value* odd = ir.CreateAnd(ir.CreateLShr(word, bits), integer(words, 1));
  return ir.CreateLShr(
      ir.CreateAdd(ir.CreateAdd(word, integer(words, (1U << (bits - 1)) - 1)), odd), bits);
}

// f32 -> f16 as a word, without hardware. Results below the normal range are rounded by an addition
// whose last place is f16's.
llvm::Value* narrow_half(llvm::IRBuilderBase& ir, llvm::Value* x, llvm::Type* words) {
  llvm::Type* floats = x->getType();
  llvm::Value* word = ir.CreateBitCast(x, words);
  llvm::Value* magnitude = ir.CreateAnd(word, integer(words, 0x7FFFFFFF));
  llvm::Value* normal = round_off(ir, ir.CreateSub(magnitude, integer(words, 112U << 23)), 13);
  llvm::Constant* half = llvm::ConstantFP::get(floats, 0.5);
  llvm::Value* sum =
      ir.CreateBitCast(ir.CreateFAdd(ir.CreateBitCast(magnitude, floats), half), words);
  llvm::Value* small = ir.CreateSub(sum, integer(words, 0x3F000000));
  llvm::Value* result =
      ir.CreateSelect(ir.CreateICmpULT(magnitude, integer(words, 0x38800000)), small, normal);
  result = ir.CreateSelect(ir.CreateICmpUGE(magnitude, integer(words, 0x47800000)),
                           integer(words, 0x7C00), result);
  result = ir.CreateSelect(ir.CreateICmpUGT(magnitude, integer(words, 0x7F800000)),
                           integer(words, 0x7E00), result);
  return ir.CreateOr(result, ir.CreateAnd(ir.CreateLShr(word, 16), integer(words, 0x8000)));
}

// A NaN keeps its upper bits and becomes quiet; rounding could turn it into an infinity.
llvm::Value* narrow_bfloat(llvm::IRBuilderBase& ir, llvm::Value* x, llvm::Type* words) {
  llvm::Value* word = ir.CreateBitCast(x, words);
  llvm::Value* quiet = ir.CreateOr(ir.CreateLShr(word, 16), integer(words, 0x40));
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), quiet, round_off(ir, word, 16));
}

llvm::Value* from_memory(llvm::IRBuilderBase& ir, const HostTarget& target, DType dtype,
                         llvm::Value* raw, int lanes) {
  llvm::LLVMContext& context = ir.getContext();
  llvm::Type* words = type_of(context, {DType::i32, lanes});
  llvm::Type* floats = type_of(context, {DType::f32, lanes});
  switch (dtype) {
    case DType::f16:
      if (!converts_half(target)) return widen_half(ir, raw, words, floats);
      return ir.CreateFPExt(
          ir.CreateBitCast(raw, raw->getType()->getWithNewType(llvm::Type::getHalfTy(context))),
          floats);
    case DType::bf16:
      return ir.CreateBitCast(ir.CreateShl(ir.CreateZExt(raw, words), 16), floats);
    case DType::u8:
      return ir.CreateZExt(raw, words);
    case DType::boolean:
      return ir.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    default:
      return raw;
  }
}

llvm::Value* to_memory(llvm::IRBuilderBase& ir, const HostTarget& target, DType dtype,
                       llvm::Value* value, int lanes) {
  llvm::LLVMContext& context = ir.getContext();
  llvm::Type* raw = carrier(context, dtype, lanes);
  llvm::Type* words = type_of(context, {DType::i32, lanes});
  switch (dtype) {
    case DType::f16:
      if (!converts_half(target)) return ir.CreateTrunc(narrow_half(ir, value, words), raw);
      return ir.CreateBitCast(
          ir.CreateFPTrunc(value, raw->getWithNewType(llvm::Type::getHalfTy(context))), raw);
    case DType::bf16:
      return ir.CreateTrunc(narrow_bfloat(ir, value, words), raw);
    case DType::u8:
      return ir.CreateTrunc(value, raw);
    case DType::boolean:
      return ir.CreateZExt(value, raw);
    default:
      return value;
  }
}

// No `inbounds`: the address of a tail that a mask switches off may lie anywhere.
llvm::Value* address(llvm::IRBuilderBase& ir, const BufferView& buffer, llvm::Value* at) {
  return ir.CreateGEP(carrier(ir.getContext(), buffer.dtype, 1), buffer.base, at);
}

bool is_contiguous(const Place& place) {
  if (place.at->getType()->isVectorTy()) return false;
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(place.stride);
  return !place.stride || (stride && stride->isOne());
}

// One address per lane.
llvm::Value* addresses(llvm::IRBuilderBase& ir, const Place& place, int lanes) {
  llvm::Type* element = carrier(ir.getContext(), place.buffer.dtype, 1);
  if (place.at->getType()->isVectorTy()) {
    llvm::Type* wide = place.at->getType()->getWithNewBitWidth(64);
    return ir.CreateGEP(element, place.buffer.base, ir.CreateSExt(place.at, wide));
  }
  std::vector<llvm::Constant*> steps;
  for (int k = 0; k < lanes; ++k) steps.push_back(ir.getInt64(static_cast<std::uint64_t>(k)));
  llvm::Value* offsets =
      ir.CreateMul(llvm::ConstantVector::get(steps),
                   ir.CreateVectorSplat(static_cast<unsigned>(lanes), place.stride));
  return ir.CreateGEP(element, address(ir, place.buffer, place.at), offsets);
}

llvm::Value* mask_or_all(llvm::IRBuilderBase& ir, const Place& place, int lanes) {
  if (place.mask) return place.mask;
  return llvm::ConstantInt::getTrue(
      llvm::FixedVectorType::get(ir.getInt1Ty(), static_cast<unsigned>(lanes)));
}

// Runs `then` only if the condition holds; returns the blocks that meet behind it.
struct Branched {
  llvm::BasicBlock* skipped;
  llvm::BasicBlock* taken;
};
Branched only_if(llvm::IRBuilderBase& ir, llvm::Value* condition,
                 const std::function<void()>& then) {
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(ir.getContext(), "on", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(ir.getContext(), "after", function);
  ir.CreateCondBr(condition, inside, after);
  ir.SetInsertPoint(inside);
  then();
  llvm::BasicBlock* last = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  return {before, last};
}

llvm::Value* scalar_index(llvm::IRBuilderBase& ir, llvm::Value* at) {
  return ir.CreateSExt(at, ir.getInt64Ty());
}

llvm::Value* load_scalar(llvm::IRBuilderBase& ir, const Place& place) {
  llvm::Type* type = carrier(ir.getContext(), place.buffer.dtype, 1);
  const auto read = [&] {
    llvm::LoadInst* load =
        ir.CreateAlignedLoad(type, address(ir, place.buffer, scalar_index(ir, place.at)),
                             element_align(place.buffer.dtype));
    mark(load, place.buffer);
    return load;
  };
  if (!place.mask) return read();
  llvm::Value* loaded = nullptr;
  const Branched branched = only_if(ir, place.mask, [&] { loaded = read(); });
  llvm::PHINode* result = ir.CreatePHI(type, 2);
  result->addIncoming(llvm::Constant::getNullValue(type), branched.skipped);
  result->addIncoming(loaded, branched.taken);
  return result;
}

llvm::Value* load_vector(llvm::IRBuilderBase& ir, const Place& place, int lanes) {
  llvm::Type* type = carrier(ir.getContext(), place.buffer.dtype, lanes);
  const llvm::Align align = element_align(place.buffer.dtype);
  llvm::Instruction* load = nullptr;
  if (!is_contiguous(place))
    load = ir.CreateMaskedGather(type, addresses(ir, place, lanes), align,
                                 mask_or_all(ir, place, lanes), llvm::Constant::getNullValue(type));
  else if (place.mask)
    load = ir.CreateMaskedLoad(type, address(ir, place.buffer, place.at), align, place.mask,
                               llvm::Constant::getNullValue(type));
  else
    load = ir.CreateAlignedLoad(type, address(ir, place.buffer, place.at), align);
  mark(load, place.buffer);
  return load;
}

// Past the caches if the address allows it: x86 has such stores for aligned vectors only.
void store_stream(llvm::IRBuilderBase& ir, const HostTarget& target, const BufferView& buffer,
                  llvm::Value* raw, llvm::Value* to, int lanes) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(dtype_bytes(buffer.dtype) * lanes);
  const std::uint64_t align = std::min(bytes, static_cast<std::uint64_t>(target.vector_bytes));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* aligned = llvm::BasicBlock::Create(ir.getContext(), "aligned", function);
  llvm::BasicBlock* otherwise = llvm::BasicBlock::Create(ir.getContext(), "unaligned", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(ir.getContext(), "after", function);
  llvm::Value* rest = ir.CreateAnd(ir.CreatePtrToInt(to, ir.getInt64Ty()), ir.getInt64(align - 1));
  ir.CreateCondBr(ir.CreateICmpEQ(rest, ir.getInt64(0)), aligned, otherwise);
  ir.SetInsertPoint(aligned);
  llvm::StoreInst* past = ir.CreateAlignedStore(raw, to, llvm::Align(align));
  past->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(ir.getContext(), llvm::ConstantAsMetadata::get(ir.getInt32(1))));
  mark(past, buffer);
  ir.CreateBr(after);
  ir.SetInsertPoint(otherwise);
  mark(ir.CreateAlignedStore(raw, to, element_align(buffer.dtype)), buffer);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace

void mark(llvm::Instruction* access, const BufferView& buffer) {
  if (buffer.scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.scope);
  if (buffer.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, buffer.noalias);
}

llvm::Value* emit_load(llvm::IRBuilderBase& ir, const HostTarget& target, const Place& place,
                       int lanes) {
  llvm::Value* raw = lanes == 1 ? load_scalar(ir, place) : load_vector(ir, place, lanes);
  return from_memory(ir, target, place.buffer.dtype, raw, lanes);
}

void emit_store(llvm::IRBuilderBase& ir, const HostTarget& target, const Place& place,
                llvm::Value* value, int lanes, bool stream) {
  const BufferView& buffer = place.buffer;
  llvm::Value* raw = to_memory(ir, target, buffer.dtype, value, lanes);
  const llvm::Align align = element_align(buffer.dtype);
  if (lanes == 1) {
    const auto write = [&] {
      mark(ir.CreateAlignedStore(raw, address(ir, buffer, place.at), align), buffer);
    };
    if (place.mask)
      only_if(ir, place.mask, write);
    else
      write();
    return;
  }
  if (!is_contiguous(place)) {
    mark(ir.CreateMaskedScatter(raw, addresses(ir, place, lanes), align,
                                mask_or_all(ir, place, lanes)),
         buffer);
    return;
  }
  llvm::Value* to = address(ir, buffer, place.at);
  if (place.mask)
    mark(ir.CreateMaskedStore(raw, to, align, place.mask), buffer);
  else if (stream && dtype_bytes(buffer.dtype) * lanes >= 16)
    store_stream(ir, target, buffer, raw, to, lanes);
  else
    mark(ir.CreateAlignedStore(raw, to, align), buffer);
}

void emit_prefetch(llvm::IRBuilderBase& ir, const Place& place) {
  llvm::Value* to = address(ir, place.buffer, place.at);
  constexpr unsigned kKeepInAllLevels = 3, kData = 1;
  ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {to->getType()},
                     {to, ir.getInt32(place.buffer.written ? 1 : 0), ir.getInt32(kKeepInAllLevels),
                      ir.getInt32(kData)});
}

}  // namespace pantala::codegen
