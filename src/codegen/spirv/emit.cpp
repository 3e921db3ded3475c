#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/spirv/emitter.h"
#include "kir/status_message.h"
#include "pantala/error.h"

namespace pantala::codegen::spirv {

namespace {

using kir::Op;

// Of kernels whose items are invocations: a subgroup of most GPUs.
constexpr int kInvocations = 32;
// That every driver goes through to their end: Mesa's lavapipe ends all loops of an invocation
// after 65535 rounds together.
constexpr double kFewRounds = 1 << 15;
// Rounds are counted from here on, so that nothing takes the count for another number of the loop,
// of which it knows what it is at the end.
constexpr std::uint32_t kFirstRound = 7919;

bool meets(const kir::Block& block) {
  return std::ranges::any_of(block.body, [](const kir::Inst& inst) {
    return kir::is_meeting(inst.op) || std::ranges::any_of(inst.blocks, meets);
  });
}

}  // namespace

int row_slots(const kir::Kernel& kernel) {
  return kRowHead + kernel.global_buffers() + static_cast<int>(kernel.params.size());
}

Emitter::Emitter(const kir::Kernel& kernel, const Target& target, const Facts& facts)
    : kernel_(kernel),
      target_(target),
      facts_(facts),
      ranges_(find_ranges(kernel, facts)),
      values_(kernel.types.size()),
      sums_(kernel.types.size()),
      has_barriers_(meets(kernel.body)) {
  counts_rounds_ = !target.finishes_loops && most_rounds(kernel, ranges_) > kFewRounds;
}

void Emitter::refuse(const std::string& what) const {
  throw UnsupportedError(fmt::format("Vulkan: kernel '{}' {}", kernel_.name, what));
}

void Emitter::check() const {
  const auto is_double = [](const auto& typed) { return typed.dtype == DType::f64; };
  if (!target_.float64 && (std::ranges::any_of(kernel_.types, is_double) ||
                           std::ranges::any_of(kernel_.buffers, is_double) ||
                           std::ranges::any_of(kernel_.params, is_double)))
    refuse("needs numbers of f64 on the way, which this device does not have; use the CPU");
  if (kernel_.threads > target_.max_invocations)
    refuse(fmt::format("has {} threads, the device runs {} together", kernel_.threads,
                       target_.max_invocations));
}

Code Emitter::run() {
  check();
  head();
  if (kernel_.threads > 1)
    item_per_group();
  else if (code_.scratch_bytes == 0)
    item_per_invocation();
  else
    items_per_invocation();
  m_.emit(spv::Op::OpReturn, {});
  m_.emit(spv::Op::OpFunctionEnd, {});
  m_.execution_mode(spv::ExecutionMode::LocalSize,
                    {static_cast<std::uint32_t>(code_.invocations), 1, 1});
  if (code_.shared_bytes > target_.shared_bytes)
    refuse(fmt::format("needs {} bytes of shared memory, the device has {}", code_.shared_bytes,
                       target_.shared_bytes));
  code_.words = m_.finish();
  return std::move(code_);
}

// What the module needs, the arguments, and the beginning of the function.
void Emitter::head() {
  using spv::Capability;
  for (const Capability c :
       {Capability::Shader, Capability::Int64, Capability::PhysicalStorageBufferAddresses})
    m_.capability(c);
  const auto mode = [&](bool has, Capability capability, spv::ExecutionMode execution) {
    if (!has) return;
    m_.capability(capability);
    m_.execution_mode(execution, {32});
  };
  mode(target_.keeps_subnormals, Capability::DenormPreserve, spv::ExecutionMode::DenormPreserve);
  mode(target_.keeps_special, Capability::SignedZeroInfNanPreserve,
       spv::ExecutionMode::SignedZeroInfNanPreserve);
  mode(target_.rounds_to_even, Capability::RoundingModeRTE, spv::ExecutionMode::RoundingModeRTE);
  code_.group_per_item = kernel_.threads > 1;
  code_.invocations =
      code_.group_per_item
          ? kernel_.threads
          : static_cast<int>(std::min<std::int64_t>(kInvocations, target_.max_invocations));

  const Id vector3 = m_.type(spv::Op::OpTypeVector, {bits32(), 3});
  const Id vector4 = m_.type(spv::Op::OpTypeVector, {bits32(), 4});
  const Id rows = m_.own_type(
      spv::Op::OpTypeArray, {vector4, u32(static_cast<std::uint32_t>(row_slots(kernel_) + 1) / 2)});
  m_.decorate(rows, spv::Decoration::ArrayStride, {16});
  row_ = uniform_block(0, rows);
  goes_on_ = uniform_block(1, m_.type(spv::Op::OpTypeVector, {bits32(), 2}));
  group_ = m_.builtin(vector3, spv::BuiltIn::WorkgroupId);
  groups_ = m_.builtin(vector3, spv::BuiltIn::NumWorkgroups);
  local_ = m_.builtin(vector3, spv::BuiltIn::LocalInvocationId);

  m_.emit(spv::Op::OpFunction,
          {m_.type_void(), m_.main(), 0, m_.type(spv::Op::OpTypeFunction, {m_.type_void()})});
  start(m_.fresh());
  status_ = row_slot64(kStatusSlot);
  for (int k = 0; k < kernel_.global_buffers(); ++k) bases_.push_back(row_slot64(kRowHead + k));
  const Id local = m_.emit(spv::Op::OpLoad, vector3, {local_});
  thread_ = m_.emit(spv::Op::OpCompositeExtract, bits32(), {local, 0});
  declare_scratch();
}

// A variable for what a binding holds.
Id Emitter::uniform_block(std::uint32_t binding, Id member) {
  const Id block = m_.own_type(spv::Op::OpTypeStruct, {member});
  m_.decorate(block, spv::Decoration::Block);
  m_.decorate_member(block, 0, spv::Decoration::Offset, {0});
  constexpr auto kUniform = static_cast<std::uint32_t>(spv::StorageClass::Uniform);
  const Id variable =
      m_.variable(m_.type(spv::Op::OpTypePointer, {kUniform, block}), spv::StorageClass::Uniform);
  m_.decorate(variable, spv::Decoration::DescriptorSet, {0});
  m_.decorate(variable, spv::Decoration::Binding, {binding});
  return variable;
}

Id Emitter::row_slot(int slot) {
  constexpr auto kUniform = static_cast<std::uint32_t>(spv::StorageClass::Uniform);
  const auto number = static_cast<std::uint32_t>(slot);
  const Id vector4 = m_.type(spv::Op::OpTypeVector, {bits32(), 4});
  const Id pointer =
      m_.emit(spv::Op::OpAccessChain, m_.type(spv::Op::OpTypePointer, {kUniform, vector4}),
              {row_, u32(0), u32(number / 2)});
  const Id both = m_.emit(spv::Op::OpLoad, vector4, {pointer});
  const Id vector2 = m_.type(spv::Op::OpTypeVector, {bits32(), 2});
  const std::uint32_t first = number % 2 * 2;
  return m_.emit(spv::Op::OpVectorShuffle, vector2, {both, both, first, first + 1});
}

Id Emitter::row_slot64(int slot) { return m_.emit(spv::Op::OpBitcast, bits64(), {row_slot(slot)}); }

// Groups are numbered over the three directions of a dispatch.
Id Emitter::linear_group() {
  const Id vector3 = m_.type(spv::Op::OpTypeVector, {bits32(), 3});
  const Id group = m_.emit(spv::Op::OpLoad, vector3, {group_});
  const Id groups = m_.emit(spv::Op::OpLoad, vector3, {groups_});
  Id linear = m_.emit(spv::Op::OpCompositeExtract, bits32(), {group, 2});
  for (const std::uint32_t axis : {1U, 0U}) {
    const Id size = m_.emit(spv::Op::OpCompositeExtract, bits32(), {groups, axis});
    const Id at = m_.emit(spv::Op::OpCompositeExtract, bits32(), {group, axis});
    linear = m_.emit(spv::Op::OpIMul, bits32(), {linear, size});
    linear = m_.emit(spv::Op::OpIAdd, bits32(), {linear, at});
  }
  return linear;
}

// None if the run is left out.
Id Emitter::item_count() {
  constexpr auto kUniform = static_cast<std::uint32_t>(spv::StorageClass::Uniform);
  const Id vector2 = m_.type(spv::Op::OpTypeVector, {bits32(), 2});
  const Id pointer =
      m_.emit(spv::Op::OpAccessChain, m_.type(spv::Op::OpTypePointer, {kUniform, vector2}),
              {goes_on_, u32(0)});
  const Id words = m_.emit(spv::Op::OpLoad, vector2, {pointer});
  const Id goes_on = m_.emit(spv::Op::OpIEqual, m_.type_bool(),
                             {m_.emit(spv::Op::OpBitcast, bits64(), {words}), u64(kGoesOn)});
  const Id items = m_.emit(spv::Op::OpUConvert, bits32(), {row_slot64(kItemsSlot)});
  return select(goes_on, bits32(), items, u32(0));
}

void Emitter::body(Id item) {
  const kir::Value number = kernel_.body.params[0];
  ids(number) = {is_wide(number) ? m_.emit(spv::Op::OpUConvert, bits64(), {item}) : item};
  if (kernel_.threads > 1) ids(kernel_.body.params[1]) = {thread_};
  block(kernel_.body);
}

// There are fewer than 2^32 groups and invocations in a dispatch; a launch of more is several.
void Emitter::item_per_group() {
  const Id item = linear_group();
  const Id items = item_count();
  when(m_.emit(spv::Op::OpULessThan, m_.type_bool(), {item, items}), [&] { body(item); });
}

void Emitter::item_per_invocation() {
  const Id first = m_.emit(spv::Op::OpIMul, bits32(),
                           {linear_group(), u32(static_cast<std::uint32_t>(code_.invocations))});
  const Id item = m_.emit(spv::Op::OpIAdd, bits32(), {first, thread_});
  const Id items = item_count();
  when(m_.emit(spv::Op::OpULessThan, m_.type_bool(), {item, items}), [&] { body(item); });
}

void Emitter::items_per_invocation() {
  const Id size = u32(static_cast<std::uint32_t>(code_.invocations));
  const Id first = m_.emit(spv::Op::OpIAdd, bits32(),
                           {m_.emit(spv::Op::OpIMul, bits32(), {linear_group(), size}), thread_});
  const Id vector3 = m_.type(spv::Op::OpTypeVector, {bits32(), 3});
  const Id groups = m_.emit(spv::Op::OpLoad, vector3, {groups_});
  const Id step = m_.emit(spv::Op::OpIMul, bits32(),
                          {m_.emit(spv::Op::OpCompositeExtract, bits32(), {groups, 0}), size});
  // An invocation may have all items of its group.
  const double each = static_cast<double>(facts_.items) / code_.invocations + 1;
  counts_rounds_ =
      !target_.finishes_loops && each * (1 + most_rounds(kernel_, ranges_)) > kFewRounds;
  const Id items = item_count();
  const Id own = m_.emit(spv::Op::OpIMul, bits64(),
                         {m_.emit(spv::Op::OpUConvert, bits64(), {first}),
                          u64(static_cast<std::uint64_t>(code_.scratch_bytes))});
  scratch_ = m_.emit(spv::Op::OpIAdd, bits64(), {row_slot64(kScratchSlot), own});
  std::uint64_t offset = 0;
  for (std::size_t k = bases_.size(); k < kernel_.buffers.size(); ++k) {
    bases_.push_back(m_.emit(spv::Op::OpIAdd, bits64(), {scratch_, u64(offset)}));
    const std::int64_t bytes = kernel_.buffers[k].size * dtype_bytes(kernel_.buffers[k].dtype);
    offset += static_cast<std::uint64_t>((bytes + kir::kScratchAlignment - 1) /
                                         kir::kScratchAlignment * kir::kScratchAlignment);
  }
  const Id header = m_.fresh(), inside = m_.fresh(), next = m_.fresh(), after = m_.fresh();
  const Id before = current_;
  m_.emit(spv::Op::OpBranch, {header});
  start(header);
  std::size_t place = 0;
  const Id item = m_.phi(bits32(), first, before, next, place);
  const Rounds rounds = open_rounds(before, next);
  const Id more = m_.emit(spv::Op::OpULessThan, m_.type_bool(), {item, items});
  m_.emit(spv::Op::OpLoopMerge, {after, next, 0});
  m_.emit(spv::Op::OpBranchConditional, {more, inside, after});
  start(inside);
  body(item);
  m_.emit(spv::Op::OpBranch, {next});
  start(next);
  m_.patch(place, m_.emit(spv::Op::OpIAdd, bits32(), {item, step}));
  close_rounds(rounds);
  m_.emit(spv::Op::OpBranch, {header});
  start(after);
  const auto widened = [&](Id x) { return m_.emit(spv::Op::OpUConvert, bits64(), {x}); };
  if (counts_rounds_) check_rounds(rounds, widened(first), widened(items), widened(step));
}

void Emitter::block(const kir::Block& block) {
  for (const kir::Inst& inst : block.body) instruction(inst);
}

void Emitter::instruction(const kir::Inst& inst) {
  switch (inst.op) {
    case Op::param:
      ids(inst.results[0]) = {parameter(inst)};
      return;
    case Op::load:
    case Op::load_strided:
    case Op::gather:
      return load(inst);
    case Op::store:
    case Op::store_strided:
      return store(inst);
    case Op::prefetch:
      return;
    case Op::report:
      return report(inst);
    case Op::loop:
      return loop(inst);
    case Op::if_:
      return branch(inst);
    case Op::barrier:
      return barrier();
    case Op::group_add:
    case Op::group_max:
    case Op::group_min:
      return group(inst);
    default:
      return operation(inst);
  }
}

Id Emitter::parameter(const kir::Inst& inst) {
  const auto k = static_cast<std::size_t>(inst.index);
  const ParamFacts facts = k < facts_.params.size() ? facts_.params[k] : ParamFacts{};
  const kir::Value result = inst.results[0];
  const DType dtype = type(result).dtype;
  const int slot = kRowHead + kernel_.global_buffers() + static_cast<int>(k);
  const auto bits = static_cast<std::uint64_t>(facts.low);
  if (facts.is_constant() && dtype != DType::boolean) {
    if (is_wide(result)) return u64(bits);
    if (dtype == DType::f64) return real_constant(dtype, std::bit_cast<double>(bits));
    const auto low = static_cast<std::uint32_t>(bits);
    return dtype == DType::f32 ? m_.constant_float(std::bit_cast<float>(low)) : u32(low);
  }
  Id number = row_slot64(slot);
  if (facts.in_memory()) number = load_from(pointer_to(number, bits64()), bits64(), 8, false);
  if (dtype == DType::boolean)
    return m_.emit(spv::Op::OpINotEqual, m_.type_bool(), {number, u64(0)});
  if (is_wide(result)) return number;
  if (dtype == DType::f64) return m_.emit(spv::Op::OpBitcast, double_type(), {number});
  const Id low = m_.emit(spv::Op::OpUConvert, bits32(), {number});
  return dtype == DType::f32 ? m_.emit(spv::Op::OpBitcast, m_.type_float(), {low}) : low;
}

Id Emitter::id_type(DType dtype, bool wide) {
  if (dtype == DType::boolean) return m_.type_bool();
  if (dtype == DType::f32) return m_.type_float();
  if (dtype == DType::f64) return double_type();
  return wide && dtype == DType::i64 ? bits64() : bits32();
}

Id Emitter::double_type() {
  m_.capability(spv::Capability::Float64);
  return m_.type_float(64);
}

Id Emitter::real_constant(DType dtype, double value) {
  if (dtype == DType::f32) return m_.constant_float(static_cast<float>(value));
  double_type();
  return m_.constant_double(value);
}

Id Emitter::narrow(kir::Value v, std::size_t lane) {
  const Id id = ids(v).at(lane);
  return is_wide(v) ? m_.emit(spv::Op::OpUConvert, bits32(), {id}) : id;
}

Id Emitter::wide(kir::Value v, std::size_t lane) {
  const Id id = ids(v).at(lane);
  return is_wide(v) ? id : m_.emit(spv::Op::OpSConvert, bits64(), {id});
}

Id Emitter::fitted(kir::Value from, std::size_t lane, kir::Value to) {
  if (type(from).dtype != DType::i64) return ids(from).at(lane);
  return sized(from, lane, is_wide(to));
}

void Emitter::loop(const kir::Inst& inst) {
  const kir::Block& body = inst.blocks[0];
  const kir::Value counter = body.params[0];
  const bool is_long = is_wide(counter);
  const Id header = m_.fresh(), inside = m_.fresh(), next = m_.fresh(), after = m_.fresh();
  const Id end = sized(inst.args[1], 0, is_long), step = sized(inst.args[2], 0, is_long);
  std::vector<Ids> initial{{sized(inst.args[0], 0, is_long)}};
  for (std::size_t k = 1; k < body.params.size(); ++k) {
    Ids& lanes = initial.emplace_back();
    for (std::size_t lane = 0; lane < ids(inst.args[k + 2]).size(); ++lane)
      lanes.push_back(fitted(inst.args[k + 2], lane, body.params[k]));
  }
  const Id before = current_;
  m_.emit(spv::Op::OpBranch, {header});
  start(header);
  std::vector<std::vector<std::size_t>> places;
  for (std::size_t k = 0; k < body.params.size(); ++k) {
    places.emplace_back(initial[k].size());
    ids(body.params[k]).clear();
    sums_[body.params[k].id] = true;
    for (std::size_t lane = 0; lane < initial[k].size(); ++lane)
      ids(body.params[k])
          .push_back(
              m_.phi(id_type(body.params[k]), initial[k][lane], before, next, places[k][lane]));
  }
  const Rounds rounds = open_rounds(before, next);
  const Id more = m_.emit(spv::Op::OpSLessThan, m_.type_bool(), {ids(counter)[0], end});
  m_.emit(spv::Op::OpLoopMerge, {after, next, 0});
  m_.emit(spv::Op::OpBranchConditional, {more, inside, after});
  start(inside);
  block(body);
  for (std::size_t k = 1; k < body.params.size(); ++k)
    for (std::size_t lane = 0; lane < initial[k].size(); ++lane)
      m_.patch(places[k][lane], fitted(body.yields[k - 1], lane, body.params[k]));
  m_.emit(spv::Op::OpBranch, {next});
  start(next);
  m_.patch(places[0][0], m_.emit(spv::Op::OpIAdd, id_type(counter), {ids(counter)[0], step}));
  close_rounds(rounds);
  m_.emit(spv::Op::OpBranch, {header});
  start(after);
  if (counts_rounds_)
    check_rounds(rounds, wide(inst.args[0], 0), wide(inst.args[1], 0), wide(inst.args[2], 0));
  for (std::size_t k = 0; k < inst.results.size(); ++k) {
    ids(inst.results[k]) = ids(body.params[k + 1]);
    sums_[inst.results[k].id] = true;
  }
}

Emitter::Rounds Emitter::open_rounds(Id before, Id next) {
  Rounds rounds;
  if (counts_rounds_) rounds.count = m_.phi(bits32(), u32(kFirstRound), before, next, rounds.place);
  return rounds;
}

void Emitter::close_rounds(const Rounds& rounds) {
  if (counts_rounds_)
    m_.patch(rounds.place, m_.emit(spv::Op::OpIAdd, bits32(), {rounds.count, u32(1)}));
}

// Numbers of 64 bits.
void Emitter::check_rounds(const Rounds& rounds, Id begin, Id end, Id step) {
  const Id count = m_.emit(spv::Op::OpUConvert, bits64(),
                           {m_.emit(spv::Op::OpISub, bits32(), {rounds.count, u32(kFirstRound)})});
  const Id reached = m_.emit(spv::Op::OpIAdd, bits64(),
                             {begin, m_.emit(spv::Op::OpIMul, bits64(), {count, step})});
  when(m_.emit(spv::Op::OpSLessThan, m_.type_bool(), {reached, end}), [&] {
    store_to(pointer_to(status_, bits32()), u32(static_cast<std::uint32_t>(kir::kLoopEnded)), 4,
             false);
  });
}

void Emitter::branch(const kir::Inst& inst) {
  const Id arms[] = {m_.fresh(), m_.fresh()};
  const Id after = m_.fresh();
  Id last[2];
  std::vector<Ids> yields[2];
  m_.emit(spv::Op::OpSelectionMerge, {after, 0});
  m_.emit(spv::Op::OpBranchConditional, {ids(inst.args[0])[0], arms[0], arms[1]});
  for (std::size_t arm = 0; arm < 2; ++arm) {
    start(arms[arm]);
    block(inst.blocks[arm]);
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      Ids& lanes = yields[arm].emplace_back();
      const kir::Value yield = inst.blocks[arm].yields[k];
      for (std::size_t lane = 0; lane < ids(yield).size(); ++lane)
        lanes.push_back(fitted(yield, lane, inst.results[k]));
    }
    last[arm] = current_;
    m_.emit(spv::Op::OpBranch, {after});
  }
  start(after);
  for (std::size_t k = 0; k < inst.results.size(); ++k) {
    ids(inst.results[k]).clear();
    for (std::size_t lane = 0; lane < yields[0][k].size(); ++lane)
      ids(inst.results[k])
          .push_back(m_.emit(spv::Op::OpPhi, id_type(inst.results[k]),
                             {yields[0][k][lane], last[0], yields[1][k][lane], last[1]}));
  }
}

Code emit(const kir::Kernel& kernel, const Target& target, const Facts& facts) {
  return Emitter(kernel, target, facts).run();
}

}  // namespace pantala::codegen::spirv
