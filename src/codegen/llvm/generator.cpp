#include "codegen/llvm/generator.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <algorithm>
#include <new>
#include <utility>

#include "pantala/error.h"

namespace pantala::codegen {

namespace {

// LLVM would abort. Whoever wants to end the process in a better way says so by the new-handler.
void on_no_memory(void*, const char*, bool) {
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

void initialise_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_bad_alloc_error_handler(on_no_memory);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::unique_ptr<llvm::LLVMTargetMachine> make_machine(const HostTarget& target) {
  initialise_targets();
  std::string message;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, message);
  if (!found) throw UnsupportedError("code generation for " + target.triple + ": " + message);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine)
    throw UnsupportedError("code generation for " + target.triple + " is not in this LLVM");
  // All targets with a code generator are of this class.
  return std::unique_ptr<llvm::LLVMTargetMachine>(
      static_cast<llvm::LLVMTargetMachine*>(machine.release()));
}

// None of these passes may change a rounding without fast-math flags.
class Optimiser {
 public:
  explicit Optimiser(llvm::TargetMachine& machine) : builder_(&machine) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(sccs_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, sccs_, modules_);
    passes_.addPass(llvm::EarlyCSEPass());
    passes_.addPass(llvm::InstCombinePass());
    passes_.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                          /*UseMemorySSA=*/true));
    passes_.addPass(llvm::EarlyCSEPass());
  }

  void run(llvm::Module& module) {
    for (llvm::Function& function : module)
      if (!function.isDeclaration()) passes_.run(function, functions_);
    loops_.clear();
    functions_.clear();
    sccs_.clear();
    modules_.clear();
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager sccs_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::FunctionPassManager passes_;
};

// What TargetMachine::addPassesToEmitFile does, but for one or two passes. Whether there are files
// of the kind.
bool add_passes(llvm::legacy::PassManager& passes, llvm::LLVMTargetMachine& machine,
                llvm::raw_pwrite_stream& stream, FileKind kind, bool has_many_registers) {
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  // A second scheduling, of what the first left and registers allow: a twentieth of the time to
  // compile, of no use to processors that look for work out of order.
  config->disablePass(&llvm::PostRASchedulerID);
  // The scheduler in front of register allocation brings the loads of a whole unrolled loop
  // forward, so that a register tile no longer fits. The emitter's order needs few registers, and
  // processors find by themselves what can run early. With few registers the scheduler is needed to
  // part loads that instruction selection has put together.
  if (has_many_registers) config->disablePass(&llvm::MachineSchedulerID);
  passes.add(config);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  const auto type = kind == FileKind::object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile;
  if (machine.addAsmPrinter(passes, stream, nullptr, type, info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

}  // namespace

struct Generator::Impl {
  Impl(const HostTarget& t, FileKind kind)
      : target(t), machine(make_machine(t)), optimiser(*machine) {
    if (!add_passes(passes, *machine, stream, kind, t.vector_registers >= 32))
      throw UnsupportedError("code generation for " + t.triple + ": no files of this kind");
  }

  const HostTarget target;
  const std::unique_ptr<llvm::LLVMTargetMachine> machine;
  Optimiser optimiser;
  llvm::SmallVector<char, 0> file;
  llvm::raw_svector_ostream stream{file};
  llvm::legacy::PassManager passes;
};

Generator::Generator(const HostTarget& target, FileKind kind)
    : impl_(std::make_unique<Impl>(target, kind)) {}
Generator::~Generator() = default;

const HostTarget& Generator::target() const { return impl_->target; }
const llvm::TargetMachine& Generator::machine() const { return *impl_->machine; }

void Generator::optimise(llvm::Module& module) { impl_->optimiser.run(module); }

std::string Generator::generate(llvm::Module& module) {
  impl_->passes.run(module);
  std::string file(impl_->file.begin(), impl_->file.end());
  impl_->file.clear();
  return file;
}

Generators& Generators::process() {
  static Generators all;
  return all;
}

std::unique_ptr<Generator> Generators::take(const HostTarget& target) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        idle_, [&](const auto& generator) { return generator->target() == target; });
    if (found != idle_.end()) {
      std::unique_ptr<Generator> generator = std::move(*found);
      idle_.erase(found);
      return generator;
    }
  }
  return std::make_unique<Generator>(target, FileKind::object);
}

void Generators::give_back(std::unique_ptr<Generator> generator) {
  constexpr std::size_t kMost = 16;
  std::unique_ptr<Generator> oldest;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(generator));
  if (idle_.size() <= kMost) return;
  oldest = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

}  // namespace pantala::codegen
