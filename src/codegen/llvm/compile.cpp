// From a kernel to an object, and the processors that there is code for.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "codegen/llvm/code.h"
#include "codegen/llvm/emit.h"
#include "codegen/llvm/generator.h"
#include "codegen/llvm/pass_gate.h"
#include "pantala/error.h"

namespace pantala::codegen {

namespace {

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

// A kernel's module with everything that it leans on. A generator that has seen it may point into
// it: where an exception ends both, the generator must go first.
struct Compilation {
  std::string errors;
  PassGate gate;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;

  Compilation(const kir::Kernel& kernel, Generator& generator) : gate(kernel, generator.target()) {
    const HostTarget& target = generator.target();
    context.setDiagnosticHandlerCallBack(collect_errors, &errors);
    context.setOptPassGate(gate);
    module = emit(kernel, target, context);
    module->setTargetTriple(target.triple);
    module->setDataLayout(generator.machine().createDataLayout());
    check(*module, kernel);
  }

  std::string finish(const kir::Kernel& kernel, Generator& generator) {
    generator.optimise(*module);
    std::string bytes = generator.generate(*module);
    if (errors.empty()) return bytes;
    throw InternalError("code generation of " + kernel.name + ": " + errors);
  }
};

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

namespace {

HostTarget look_at_host() {
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

}  // namespace

// A virtual machine is asked for every word of what its processor is, which takes a while.
HostTarget detect_host() {
  static const HostTarget host = look_at_host();
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
  std::optional<Compilation> unit;
  std::unique_ptr<Generator> generator = Generators::process().take(target);
  unit.emplace(kernel, *generator);
  // Names would make objects of the same code differ.
  unit->module->getFunction(kernel.name)->setName(kObjectSymbol);
  unit->module->setSourceFileName("");
  const std::string bytes = unit->finish(kernel, *generator);
  unit.reset();  // before another thread has the generator
  Generators::process().give_back(std::move(generator));
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  return {
      .name = kernel.name, .object = {first, first + bytes.size()}, .milliseconds = time.count()};
}

std::string llvm_ir(const kir::Kernel& kernel, const HostTarget& target) {
  std::optional<Compilation> unit;
  Generator generator(target, FileKind::assembly);
  unit.emplace(kernel, generator);
  generator.optimise(*unit->module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  unit->module->print(stream, nullptr);
  return text;
}

std::string assembly(const kir::Kernel& kernel, const HostTarget& target) {
  std::optional<Compilation> unit;
  Generator generator(target, FileKind::assembly);
  unit.emplace(kernel, generator);
  return unit->finish(kernel, generator);
}

}  // namespace pantala::codegen
