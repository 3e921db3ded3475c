// A module of SPIR-V under construction: words in the order of sections that the format asks for;
// types and constants are made once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <vector>

namespace pantala::codegen::spirv {

using Id = std::uint32_t;

class Module {
 public:
  Module();

  Id fresh() { return next_++; }
  void capability(spv::Capability capability);
  void execution_mode(spv::ExecutionMode mode, std::initializer_list<std::uint32_t> operands);
  void decorate(Id id, spv::Decoration decoration,
                std::initializer_list<std::uint32_t> operands = {});
  void decorate_member(Id id, std::uint32_t member, spv::Decoration decoration,
                       std::initializer_list<std::uint32_t> operands);

  Id type_void() { return type(spv::Op::OpTypeVoid, {}); }
  Id type_bool() { return type(spv::Op::OpTypeBool, {}); }
  Id type_int(std::uint32_t bits) { return type(spv::Op::OpTypeInt, {bits, 0}); }
  Id type_float(std::uint32_t bits = 32) { return type(spv::Op::OpTypeFloat, {bits}); }
  // A type or constant of this form; the same form is the same id.
  Id type(spv::Op op, std::initializer_list<std::uint32_t> operands);
  Id constant_bool(bool value);
  Id constant32(std::uint32_t value);
  Id constant64(std::uint64_t value);
  Id constant_float(float value);
  Id constant_double(double value);
  // A type that is not shared, since its decorations are its own.
  Id own_type(spv::Op op, std::initializer_list<std::uint32_t> operands);
  Id variable(Id pointer, spv::StorageClass storage);
  Id builtin(Id type, spv::BuiltIn which);  // an input

  // Instructions of the function.
  Id emit(spv::Op op, Id type, std::initializer_list<std::uint32_t> operands);
  Id emit(spv::Op op, Id type, std::span<const std::uint32_t> operands);
  void emit(spv::Op op, std::initializer_list<std::uint32_t> operands);
  Id extended(std::uint32_t number, Id type, std::initializer_list<Id> operands);
  // A phi whose second value comes later, through its place.
  Id phi(Id type, Id value, Id from, Id next_from, std::size_t& place);
  void patch(std::size_t place, Id value) { function_[place] = value; }
  void label(Id id);

  Id main() const { return main_; }
  std::vector<std::uint32_t> finish() const;

 private:
  using Words = std::vector<std::uint32_t>;
  static void append(Words& to, spv::Op op, std::span<const std::uint32_t> operands);
  Id constant(spv::Op op, std::initializer_list<std::uint32_t> operands);
  Id next_ = 1;
  Id main_, extensions_;
  std::vector<spv::Capability> capabilities_;
  std::vector<Id> interface_;
  Words modes_, decorations_, globals_, function_;
  std::map<Words, Id> shared_;
};

}  // namespace pantala::codegen::spirv
