// The emitter's parts, shared by the files of this folder: kernel IR in, LLVM IR in SSA form out.
// Each part is a few functions over LLVM's builder; LLVM's types are only named here.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/llvm/llvm.h"

namespace llvm {
class IRBuilderBase;
class Instruction;
class LLVMContext;
class MDNode;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace pantala::codegen {

bool has_feature(const HostTarget& target, std::string_view feature);

// The module of one kernel: one external function with the kernel's name.
std::unique_ptr<llvm::Module> emit(const kir::Kernel& kernel, const HostTarget& target,
                                   llvm::LLVMContext& context);

// Scalars are plain types, n lanes a fixed vector; bool is i1.
llvm::Type* type_of(llvm::LLVMContext& context, kir::VType type);

// arithmetic.cpp: every instruction that computes its result from its operands alone, transpose
// excepted.
struct Operation {
  const kir::Inst& inst;
  kir::VType operand;  // of the last operand (the arms of a select)
  kir::VType result;
};
llvm::Value* emit_operation(llvm::IRBuilderBase& ir, const Operation& operation,
                            std::span<llvm::Value* const> args);
std::vector<llvm::Value*> emit_transpose(llvm::IRBuilderBase& ir,
                                         std::span<llvm::Value* const> rows, DType dtype);

// scaling.cpp: the product a * b, if it is a number times a power of two that the target has an
// instruction for; else null.
llvm::Value* emit_scaling(llvm::IRBuilderBase& ir, const HostTarget& target, llvm::Value* a,
                          llvm::Value* b);

// loads.cpp: a buffer as the emitted function sees it.
struct BufferView {
  llvm::Value* base = nullptr;
  DType dtype = DType::f32;
  bool written = false;
  llvm::MDNode* scope = nullptr;    // the set of memory that it belongs to
  llvm::MDNode* noalias = nullptr;  // the sets that it is apart from
};
// Notes on a load or store which memory it touches.
void mark(llvm::Instruction* access, const BufferView& buffer);
// `at` counts elements and is scalar, or one index per lane for `gather`. A null mask means every
// lane.
struct Place {
  const BufferView& buffer;
  llvm::Value* at = nullptr;
  llvm::Value* stride = nullptr;
  llvm::Value* mask = nullptr;
};
llvm::Value* emit_load(llvm::IRBuilderBase& ir, const HostTarget& target, const Place& place,
                       int lanes);
void emit_store(llvm::IRBuilderBase& ir, const HostTarget& target, const Place& place,
                llvm::Value* value, int lanes, bool stream);
void emit_prefetch(llvm::IRBuilderBase& ir, const Place& place);

}  // namespace pantala::codegen
