// The function of a kernel: its arguments, the loop over its items, and the structure of its body.
// Loops are emitted in the form that LLVM's loop passes want (guarded, tested at the end, with a
// preheader), so that none of them has to change it first.
#include "codegen/llvm/emit.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include "pantala/error.h"

namespace pantala::codegen {

namespace {

using kir::Op;

// A loop under construction: where it was left, and its block.
struct OpenLoop {
  llvm::BasicBlock* guard = nullptr;
  llvm::BasicBlock* preheader = nullptr;
  llvm::BasicBlock* body = nullptr;
  llvm::BasicBlock* exit = nullptr;
  llvm::PHINode* index = nullptr;
  llvm::Value* end = nullptr;
};

class Emitter {
 public:
  Emitter(const kir::Kernel& kernel, const HostTarget& target, llvm::LLVMContext& context)
      : kernel_(kernel),
        target_(target),
        context_(context),
        ir_(context),
        values_(kernel.types.size()) {}

  std::unique_ptr<llvm::Module> run() {
    if (kernel_.threads != 1)
      throw InternalError("kernel '" + kernel_.name +
                          "' is worked on by several threads per item, which a CPU has not");
    auto module = std::make_unique<llvm::Module>(kernel_.name, context_);
    create_function(*module);
    read_arguments();
    llvm::Value* step = ir_.getInt64(1);
    const OpenLoop loop = open_loop(function_->getArg(2), function_->getArg(3));
    values_[kernel_.body.params.at(0).id] = loop.index;
    block(kernel_.body);
    close_loop(loop, step);
    // Streaming stores are not ordered by what the caller does to publish its results.
    if (streams_ && llvm::Triple(target_.triple).isX86())
      ir_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    ir_.CreateRetVoid();
    return module;
  }

 private:
  void create_function(llvm::Module& module) {
    llvm::Type* pointer = ir_.getPtrTy();
    llvm::Type* integer = ir_.getInt64Ty();
    auto* type = llvm::FunctionType::get(
        ir_.getVoidTy(), {pointer, pointer, integer, integer, pointer, pointer}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kernel_.name, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    // LLVM would otherwise avoid the widest registers on processors that once slowed down for them.
    if (target_.vector_bytes >= 64) function_->addFnAttr("prefer-vector-width", "512");
    // Vectors that do not fit the registers lie within cache lines: one that crosses two is not
    // forwarded from its store to its load, which costs a register tile a third of its speed.
    function_->addFnAttr("stackrealign");
    for (const unsigned table : {0U, 1U}) {
      function_->addParamAttr(table, llvm::Attribute::NoAlias);
      function_->addParamAttr(table, llvm::Attribute::ReadOnly);
    }
    constexpr const char* kNames[] = {"buffers", "params", "begin", "end", "scratch", "status"};
    for (unsigned k = 0; k < 6; ++k) function_->getArg(k)->setName(kNames[k]);
    ir_.SetInsertPoint(new_block("entry"));
  }

  void read_arguments() {
    std::int64_t global = 0, scratch = 0;
    for (const kir::Buffer& buffer : kernel_.buffers) {
      BufferView view{.dtype = buffer.dtype, .written = buffer.access != kir::Access::read};
      if (buffer.space == kir::Space::global) {
        view.base =
            ir_.CreateAlignedLoad(ir_.getPtrTy(),
                                  ir_.CreateConstGEP1_64(ir_.getPtrTy(), function_->getArg(0),
                                                         static_cast<std::uint64_t>(global++)),
                                  llvm::Align(8), buffer.name);
      } else {
        view.base = ir_.CreateConstGEP1_64(ir_.getInt8Ty(), function_->getArg(4),
                                           static_cast<std::uint64_t>(scratch), buffer.name);
        const std::int64_t bytes = buffer.size * dtype_bytes(buffer.dtype);
        scratch +=
            (bytes + kir::kScratchAlignment - 1) / kir::kScratchAlignment * kir::kScratchAlignment;
      }
      buffers_.push_back(view);
    }
    if (scratch != kernel_.scratch_bytes())
      throw InternalError(
          "code generation: the layout of scratch differs from Kernel::scratch_bytes()");
    separate_buffers();
    for (std::size_t k = 0; k < kernel_.params.size(); ++k) params_.push_back(read_param(k));
  }

  llvm::Value* read_param(std::size_t k) {
    const kir::Param& param = kernel_.params[k];
    llvm::Value* slot = ir_.CreateConstGEP1_64(ir_.getInt64Ty(), function_->getArg(1), k);
    if (param.dtype != DType::boolean)
      return ir_.CreateAlignedLoad(type_of(context_, {param.dtype, 1}), slot, llvm::Align(8),
                                   param.name);
    return ir_.CreateICmpNE(ir_.CreateAlignedLoad(ir_.getInt64Ty(), slot, llvm::Align(8)),
                            ir_.getInt64(0), param.name);
  }

  // The memory contract as scopes: what is only read, what is written, every scratch buffer and the
  // status are apart from each other.
  void separate_buffers() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(kernel_.name);
    llvm::MDNode* read = metadata.createAnonymousAliasScope(domain, "read");
    llvm::MDNode* written = metadata.createAnonymousAliasScope(domain, "written");
    llvm::MDNode* status = metadata.createAnonymousAliasScope(domain, "status");
    std::vector<llvm::Metadata*> all{read, written};
    std::vector<llvm::Metadata*> own;
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      if (kernel_.buffers[k].space == kir::Space::global) {
        own.push_back(buffers_[k].written ? written : read);
      } else {
        own.push_back(metadata.createAnonymousAliasScope(domain, "scratch"));
        all.push_back(own.back());
      }
    }
    status_.noalias = llvm::MDNode::get(context_, all);
    status_.scope = llvm::MDNode::get(context_, status);
    all.push_back(status);
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      std::vector<llvm::Metadata*> others;
      for (llvm::Metadata* scope : all)
        if (scope != own[k]) others.push_back(scope);
      buffers_[k].scope = llvm::MDNode::get(context_, own[k]);
      buffers_[k].noalias = llvm::MDNode::get(context_, others);
    }
  }

  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(context_, name, function_);
  }

  // Leaves the builder at the start of the body, after the index: the caller adds what the loop
  // carries.
  OpenLoop open_loop(llvm::Value* begin, llvm::Value* end) {
    OpenLoop loop{.guard = ir_.GetInsertBlock(),
                  .preheader = new_block("enter"),
                  .body = new_block("loop"),
                  .exit = new_block("exit"),
                  .end = end};
    ir_.CreateCondBr(ir_.CreateICmpSLT(begin, end), loop.preheader, loop.exit);
    ir_.SetInsertPoint(loop.preheader);
    ir_.CreateBr(loop.body);
    ir_.SetInsertPoint(loop.body);
    loop.index = ir_.CreatePHI(ir_.getInt64Ty(), 2, "i");
    loop.index->addIncoming(begin, loop.preheader);
    return loop;
  }

  // Returns the block that the loop repeats from; the builder stands at the exit.
  llvm::BasicBlock* close_loop(const OpenLoop& loop, llvm::Value* step) {
    llvm::BasicBlock* latch = ir_.GetInsertBlock();
    llvm::Value* next = ir_.CreateNSWAdd(loop.index, step);
    loop.index->addIncoming(next, latch);
    ir_.CreateCondBr(ir_.CreateICmpSLT(next, loop.end), loop.body, loop.exit);
    ir_.SetInsertPoint(loop.exit);
    return latch;
  }

  void block(const kir::Block& block) {
    for (const kir::Inst& inst : block.body) instruction(inst);
  }

  llvm::Value* arg(const kir::Inst& inst, std::size_t k) const {
    return values_[inst.args.at(k).id];
  }
  void set(const kir::Inst& inst, llvm::Value* value) { values_[inst.results.at(0).id] = value; }

  void instruction(const kir::Inst& inst) {
    switch (inst.op) {
      case Op::param:
        return set(inst, params_.at(static_cast<std::size_t>(inst.index)));
      case Op::transpose:
        return transpose(inst);
      case Op::load:
      case Op::load_strided:
      case Op::gather:
        return load(inst);
      case Op::store:
      case Op::store_strided:
        return store(inst);
      case Op::prefetch:
        return emit_prefetch(ir_, place(inst));
      case Op::report:
        return report(inst);
      case Op::loop:
        return loop(inst);
      case Op::if_:
        return branch(inst);
      default:
        return operation(inst);
    }
  }

  void operation(const kir::Inst& inst) {
    const kir::VType result = kernel_.type(inst.results.at(0));
    const kir::VType operand = inst.args.empty() ? result : kernel_.type(inst.args.back());
    const std::vector<llvm::Value*> operands = args(inst);
    llvm::Value* value = inst.op == Op::mul && is_float(result.dtype)
                             ? emit_scaling(ir_, target_, operands[0], operands[1])
                             : nullptr;
    set(inst, value != nullptr ? value : emit_operation(ir_, {inst, operand, result}, operands));
  }

  std::vector<llvm::Value*> args(const kir::Inst& inst) const {
    std::vector<llvm::Value*> list;
    for (const kir::Value v : inst.args) list.push_back(values_[v.id]);
    return list;
  }

  void transpose(const kir::Inst& inst) {
    const std::vector<llvm::Value*> columns =
        emit_transpose(ir_, args(inst), kernel_.type(inst.args.at(0)).dtype);
    for (std::size_t k = 0; k < columns.size(); ++k) values_[inst.results.at(k).id] = columns[k];
  }

  Place place(const kir::Inst& inst) const {
    const bool strided = inst.op == Op::load_strided || inst.op == Op::store_strided;
    return {.buffer = buffers_.at(static_cast<std::size_t>(inst.index)),
            .at = arg(inst, 0),
            .stride = strided ? arg(inst, 1) : nullptr,
            .mask = inst.masked ? values_[inst.args.back().id] : nullptr};
  }

  void load(const kir::Inst& inst) {
    set(inst, emit_load(ir_, target_, place(inst), kernel_.type(inst.results.at(0)).lanes));
  }

  void store(const kir::Inst& inst) {
    const kir::Value value = inst.args.at(inst.op == Op::store_strided ? 2 : 1);
    emit_store(ir_, target_, place(inst), values_[value.id], kernel_.type(value).lanes,
               inst.stream);
    streams_ |= inst.stream;
  }

  // Several workers may report at once; an atomic store of no order is a plain one that may race.
  void report(const kir::Inst& inst) {
    llvm::BasicBlock* failed = new_block("report");
    llvm::BasicBlock* after = new_block("after");
    ir_.CreateCondBr(arg(inst, 0), failed, after,
                     llvm::MDBuilder(context_).createUnlikelyBranchWeights());
    ir_.SetInsertPoint(failed);
    llvm::Value* code = inst.args.size() > 1 ? ir_.CreateTrunc(arg(inst, 1), ir_.getInt32Ty())
                                             : ir_.getInt32(static_cast<std::uint32_t>(inst.index));
    llvm::StoreInst* store = ir_.CreateAlignedStore(code, function_->getArg(5), llvm::Align(4));
    store->setAtomic(llvm::AtomicOrdering::Unordered);
    mark(store, status_);
    ir_.CreateBr(after);
    ir_.SetInsertPoint(after);
  }

  void loop(const kir::Inst& inst) {
    const kir::Block& body = inst.blocks.at(0);
    const OpenLoop open = open_loop(arg(inst, 0), arg(inst, 1));
    values_[body.params.at(0).id] = open.index;
    std::vector<llvm::PHINode*> carried;
    for (std::size_t k = 1; k < body.params.size(); ++k) {
      llvm::PHINode* phi = ir_.CreatePHI(type_of(context_, kernel_.type(body.params[k])), 2);
      phi->addIncoming(arg(inst, k + 2), open.preheader);
      values_[body.params[k].id] = phi;
      carried.push_back(phi);
    }
    block(body);
    llvm::BasicBlock* latch = close_loop(open, arg(inst, 2));
    for (std::size_t k = 0; k < carried.size(); ++k) {
      llvm::Value* next = values_[body.yields.at(k).id];
      carried[k]->addIncoming(next, latch);
      llvm::PHINode* final = ir_.CreatePHI(carried[k]->getType(), 2);
      final->addIncoming(arg(inst, k + 3), open.guard);
      final->addIncoming(next, latch);
      values_[inst.results.at(k).id] = final;
    }
  }

  void branch(const kir::Inst& inst) {
    llvm::BasicBlock* arms[] = {new_block("then"), new_block("else")};
    llvm::BasicBlock* after = new_block("after");
    ir_.CreateCondBr(arg(inst, 0), arms[0], arms[1]);
    llvm::BasicBlock* last[2];
    for (std::size_t k = 0; k < 2; ++k) {
      ir_.SetInsertPoint(arms[k]);
      block(inst.blocks.at(k));
      last[k] = ir_.GetInsertBlock();
      ir_.CreateBr(after);
    }
    ir_.SetInsertPoint(after);
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      llvm::PHINode* result = ir_.CreatePHI(type_of(context_, kernel_.type(inst.results[k])), 2);
      for (std::size_t arm = 0; arm < 2; ++arm)
        result->addIncoming(values_[inst.blocks[arm].yields.at(k).id], last[arm]);
      values_[inst.results[k].id] = result;
    }
  }

  const kir::Kernel& kernel_;
  const HostTarget& target_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> ir_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> values_;  // by kir::Value::id
  std::vector<llvm::Value*> params_;
  std::vector<BufferView> buffers_;
  BufferView status_;
  bool streams_ = false;
};

}  // namespace

bool has_feature(const HostTarget& target, std::string_view feature) {
  std::string_view rest = target.features;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    if (item.size() == feature.size() + 1 && item[0] == '+' && item.substr(1) == feature)
      return true;
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
  }
  return false;
}

std::unique_ptr<llvm::Module> emit(const kir::Kernel& kernel, const HostTarget& target,
                                   llvm::LLVMContext& context) {
  return Emitter(kernel, target, context).run();
}

}  // namespace pantala::codegen
