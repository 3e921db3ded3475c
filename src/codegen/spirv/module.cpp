#include "codegen/spirv/module.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace pantala::codegen::spirv {

namespace {

// Texts are words, the first character in the lowest byte, and end with a zero.
std::vector<std::uint32_t> text(std::string_view characters) {
  std::vector<std::uint32_t> words(characters.size() / 4 + 1);
  for (std::size_t k = 0; k < characters.size(); ++k)
    words[k / 4] |= std::uint32_t{static_cast<unsigned char>(characters[k])} << (k % 4 * 8);
  return words;
}

constexpr std::uint32_t kVersion = 0x00010500;

}  // namespace

Module::Module() : main_(fresh()), extensions_(fresh()) {}

void Module::append(Words& to, spv::Op op, std::span<const std::uint32_t> operands) {
  const auto count = static_cast<std::uint32_t>(operands.size() + 1);
  to.push_back(count << 16 | static_cast<std::uint32_t>(op));
  to.insert(to.end(), operands.begin(), operands.end());
}

void Module::capability(spv::Capability capability) {
  if (std::ranges::find(capabilities_, capability) == capabilities_.end())
    capabilities_.push_back(capability);
}

void Module::execution_mode(spv::ExecutionMode mode,
                            std::initializer_list<std::uint32_t> operands) {
  Words words{main_, static_cast<std::uint32_t>(mode)};
  words.insert(words.end(), operands);
  append(modes_, spv::Op::OpExecutionMode, words);
}

void Module::decorate(Id id, spv::Decoration decoration,
                      std::initializer_list<std::uint32_t> operands) {
  Words words{id, static_cast<std::uint32_t>(decoration)};
  words.insert(words.end(), operands);
  append(decorations_, spv::Op::OpDecorate, words);
}

void Module::decorate_member(Id id, std::uint32_t member, spv::Decoration decoration,
                             std::initializer_list<std::uint32_t> operands) {
  Words words{id, member, static_cast<std::uint32_t>(decoration)};
  words.insert(words.end(), operands);
  append(decorations_, spv::Op::OpMemberDecorate, words);
}

Id Module::type(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  Words key{static_cast<std::uint32_t>(op)};
  key.insert(key.end(), operands);
  const auto [found, added] = shared_.try_emplace(key, 0);
  if (added) found->second = own_type(op, operands);
  return found->second;
}

Id Module::own_type(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  const Id id = fresh();
  Words words{id};
  words.insert(words.end(), operands);
  append(globals_, op, words);
  return id;
}

// The type is the first operand.
Id Module::constant(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  Words key{static_cast<std::uint32_t>(op)};
  key.insert(key.end(), operands);
  const auto [found, added] = shared_.try_emplace(key, 0);
  if (!added) return found->second;
  found->second = fresh();
  Words words{*operands.begin(), found->second};
  words.insert(words.end(), operands.begin() + 1, operands.end());
  append(globals_, op, words);
  return found->second;
}

Id Module::constant_bool(bool value) {
  return constant(value ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, {type_bool()});
}
Id Module::constant32(std::uint32_t value) {
  return constant(spv::Op::OpConstant, {type_int(32), value});
}
Id Module::constant64(std::uint64_t value) {
  return constant(spv::Op::OpConstant, {type_int(64), static_cast<std::uint32_t>(value),
                                        static_cast<std::uint32_t>(value >> 32)});
}
Id Module::constant_float(float value) {
  return constant(spv::Op::OpConstant, {type_float(), std::bit_cast<std::uint32_t>(value)});
}

Id Module::constant_double(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return constant(spv::Op::OpConstant, {type_float(64), static_cast<std::uint32_t>(bits),
                                        static_cast<std::uint32_t>(bits >> 32)});
}

Id Module::variable(Id pointer, spv::StorageClass storage) {
  const Id id = fresh();
  append(globals_, spv::Op::OpVariable, Words{pointer, id, static_cast<std::uint32_t>(storage)});
  interface_.push_back(id);
  return id;
}

Id Module::builtin(Id type, spv::BuiltIn which) {
  const Id pointer = this->type(spv::Op::OpTypePointer,
                                {static_cast<std::uint32_t>(spv::StorageClass::Input), type});
  const Id id = variable(pointer, spv::StorageClass::Input);
  decorate(id, spv::Decoration::BuiltIn, {static_cast<std::uint32_t>(which)});
  return id;
}

Id Module::emit(spv::Op op, Id type, std::initializer_list<std::uint32_t> operands) {
  return emit(op, type, std::span(operands.begin(), operands.size()));
}

Id Module::emit(spv::Op op, Id type, std::span<const std::uint32_t> operands) {
  const Id id = fresh();
  Words words{type, id};
  words.insert(words.end(), operands.begin(), operands.end());
  append(function_, op, words);
  return id;
}

void Module::emit(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  append(function_, op, std::span(operands.begin(), operands.size()));
}

Id Module::extended(std::uint32_t number, Id type, std::initializer_list<Id> operands) {
  Words words{extensions_, number};
  words.insert(words.end(), operands);
  return emit(spv::Op::OpExtInst, type, words);
}

Id Module::phi(Id type, Id value, Id from, Id next_from, std::size_t& place) {
  const Id id = emit(spv::Op::OpPhi, type, {value, from, 0, next_from});
  place = function_.size() - 2;
  return id;
}

void Module::label(Id id) { emit(spv::Op::OpLabel, {id}); }

std::vector<std::uint32_t> Module::finish() const {
  Words words{spv::MagicNumber, kVersion, 0, next_, 0};
  for (const spv::Capability c : capabilities_)
    append(words, spv::Op::OpCapability, Words{static_cast<std::uint32_t>(c)});
  Words import{extensions_};
  for (const std::uint32_t word : text("GLSL.std.450")) import.push_back(word);
  append(words, spv::Op::OpExtInstImport, import);
  append(words, spv::Op::OpMemoryModel,
         Words{static_cast<std::uint32_t>(spv::AddressingModel::PhysicalStorageBuffer64),
               static_cast<std::uint32_t>(spv::MemoryModel::GLSL450)});
  Words entry{static_cast<std::uint32_t>(spv::ExecutionModel::GLCompute), main_};
  for (const std::uint32_t word : text("main")) entry.push_back(word);
  entry.insert(entry.end(), interface_.begin(), interface_.end());
  append(words, spv::Op::OpEntryPoint, entry);
  for (const Words* section : {&modes_, &decorations_, &globals_, &function_})
    words.insert(words.end(), section->begin(), section->end());
  return words;
}

}  // namespace pantala::codegen::spirv
