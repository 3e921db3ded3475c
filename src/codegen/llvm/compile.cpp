// From a module to an object: a short pipeline (the emitter writes unrolled vector code in SSA
// form, so there is nothing to vectorise, unroll or promote) and LLVM's code generator, with
// floating-point fusion off.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>

#include "codegen/llvm/code.h"
#include "codegen/llvm/emit.h"
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

std::unique_ptr<llvm::TargetMachine> make_machine(const HostTarget& target) {
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
  return machine;
}

// Redundant addresses and constants go, invariants leave their loops. None of these passes may
// change a rounding without fast-math flags.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

void check(const llvm::Module& module, const kir::Kernel& kernel) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream))
    throw InternalError("code generation of " + kernel.name + ": invalid LLVM IR: " + message);
}

// LLVM ends the process on an error that nobody listens to.
void collect_errors(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

// A module on its way through the pipeline, with everything that it leans on.
struct Compilation {
  std::string errors;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;

  Compilation(const kir::Kernel& kernel, const HostTarget& target) : machine(make_machine(target)) {
    context.setDiagnosticHandlerCallBack(collect_errors, &errors);
    module = emit(kernel, target, context);
    module->setTargetTriple(target.triple);
    module->setDataLayout(machine->createDataLayout());
    check(*module, kernel);
    optimise(*module, *machine);
  }
};

// What addPassesToEmitFile() adds. With many registers without the scheduler in front of register
// allocation: it brings the loads of a whole unrolled loop forward, so that a register tile no
// longer fits. The emitter's order needs few registers, and processors find by themselves what can
// run early. With few registers the scheduler is needed to part loads that instruction selection
// has put together.
bool add_passes(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine,
                llvm::raw_pwrite_stream& stream, llvm::CodeGenFileType type,
                bool has_many_registers) {
  auto& generator = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&generator);  // the manager owns what it gets
  llvm::TargetPassConfig* config = generator.createPassConfig(passes);
  if (has_many_registers) config->disablePass(&llvm::MachineSchedulerID);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (generator.addAsmPrinter(passes, stream, nullptr, type, info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

llvm::SmallVector<char, 0> generate(const kir::Kernel& kernel, const HostTarget& target,
                                    llvm::CodeGenFileType type) {
  Compilation unit(kernel, target);
  if (type == llvm::CodeGenFileType::ObjectFile) {
    // Names would make objects of the same code differ.
    unit.module->getFunction(kernel.name)->setName(kObjectSymbol);
    unit.module->setSourceFileName("");
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (!add_passes(passes, *unit.machine, stream, type, target.vector_registers >= 32))
    throw UnsupportedError("code generation for " + target.triple + ": no files of this kind");
  passes.run(*unit.module);
  if (!unit.errors.empty())
    throw InternalError("code generation of " + kernel.name + ": " + unit.errors);
  return bytes;
}

struct VectorUnit {
  int bytes;
  int registers;
};
VectorUnit vector_unit(const HostTarget& target) {
  if (llvm::Triple(target.triple).isAArch64()) return {16, 32};
  if (has_feature(target, "avx512f") && has_feature(target, "avx512vl") &&
      has_feature(target, "avx512bw") && has_feature(target, "avx512dq"))
    return {64, 32};
  return {has_feature(target, "avx2") ? 32 : 16, 16};
}

struct KnownTarget {
  std::string_view name;
  HostTarget target;
};
const std::vector<KnownTarget>& known_targets() {
  static const std::vector<KnownTarget> table{
      {"x86-64", {"x86_64-linux-gnu", "x86-64", "", 16, 16, false}},
      {"x86-64-v3", {"x86_64-linux-gnu", "x86-64-v3", "+avx2,+bmi,+bmi2,+f16c,+fma", 32, 16, true}},
      {"x86-64-v4",
       {"x86_64-linux-gnu", "x86-64-v4",
        "+avx2,+avx512bw,+avx512dq,+avx512f,+avx512vl,+bmi,+bmi2,+f16c,+fma", 64, 32, true}},
      {"aarch64", {"aarch64-linux-gnu", "generic", "+neon", 16, 32, true}},
  };
  return table;
}

}  // namespace

HostTarget known_target(std::string_view name) {
  std::vector<std::string> names;
  for (const KnownTarget& known : known_targets()) {
    if (known.name == name) return known.target;
    names.emplace_back(known.name);
  }
  throw UnsupportedError(
      fmt::format("no target is named '{}'; there are {}", name, fmt::join(names, ", ")));
}

std::string target_name(const HostTarget& target) {
  return fmt::format("{} {} {}", target.triple, target.cpu, target.features);
}

HostTarget detect_host() {
  HostTarget host;
  host.triple = llvm::sys::getProcessTriple();
  host.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    features.push_back(fmt::format("{}{}", feature.second ? '+' : '-', feature.first().str()));
  std::ranges::sort(features);  // the table is hashed: sorted, the text can be a part of a key
  for (const std::string& feature : features) {
    if (!host.features.empty()) host.features += ',';
    host.features += feature;
  }
  const VectorUnit unit = vector_unit(host);
  host.vector_bytes = unit.bytes;
  host.vector_registers = unit.registers;
  host.fma = llvm::Triple(host.triple).isAArch64() || has_feature(host, "fma");
  return host;
}

HostTarget runnable_target(std::string_view text) {
  HostTarget host = detect_host();
  const std::string architecture = host.triple.substr(0, host.triple.find('-'));
  for (const KnownTarget& known : known_targets()) {
    const HostTarget& target = known.target;
    if (target_name(target) == text && target.triple.starts_with(architecture) &&
        target.vector_bytes <= host.vector_bytes && (host.fma || !target.fma))
      return target;
  }
  return host;
}

CompiledUnit compile(const kir::Kernel& kernel, const HostTarget& target) {
  const auto begin = std::chrono::steady_clock::now();
  const auto bytes = generate(kernel, target, llvm::CodeGenFileType::ObjectFile);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  return {
      .name = kernel.name, .object = {first, first + bytes.size()}, .milliseconds = time.count()};
}

std::string llvm_ir(const kir::Kernel& kernel, const HostTarget& target) {
  const Compilation unit(kernel, target);
  std::string text;
  llvm::raw_string_ostream stream(text);
  unit.module->print(stream, nullptr);
  return text;
}

std::string assembly(const kir::Kernel& kernel, const HostTarget& target) {
  const auto bytes = generate(kernel, target, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

}  // namespace pantala::codegen
