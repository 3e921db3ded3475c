#include "device/vulkan/arithmetic.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

#include "device/vulkan/faults.h"
#include "kir/builder.h"
#include "plan/arena.h"
#include "vulkan/instance.h"

namespace pantala::device::vulkan {

namespace {

constexpr std::int64_t kNumbers = 1 << 14;
using Floats = std::vector<float>;

constexpr std::int64_t kFirst = 1;
// Of kir::Var or a number.
template <class T>
T next_of(T x) {
  return (x * 48271 + 11) % 2147483647;
}

constexpr std::int64_t kRounds = 1 << 17;

// x / y, the root of x, and x * y + z; and numbers that each come of the one before.
kir::Kernel kernel() {
  kir::Builder b("arithmetic");
  const auto buffer = [&](const char* name, kir::Access access) {
    return b.buffer(name, DType::f32, access);
  };
  const kir::BufferId in[] = {buffer("x", kir::Access::read), buffer("y", kir::Access::read),
                              buffer("z", kir::Access::read)};
  const kir::BufferId out[] = {buffer("quotient", kir::Access::write),
                               buffer("root", kir::Access::write),
                               buffer("fused", kir::Access::write)};
  const kir::BufferId last = b.buffer("last", DType::i64, kir::Access::write);
  const kir::Var x = b.load(in[0], b.item()), y = b.load(in[1], b.item()),
                 z = b.load(in[2], b.item());
  b.store(out[0], b.item(), x / y);
  b.store(out[1], b.item(), b.unary(kir::Op::sqrt, x));
  b.store(out[2], b.item(), b.fma(x, y, z));
  b.branch(lt(b.item(), 1), [&] {
    const auto after = b.loop(b.i64(0), b.i64(kRounds), b.i64(1), {b.item() + kFirst},
                              [&](kir::Var, std::span<const kir::Var> before) {
                                return std::vector{next_of(before[0])};
                              });
    b.store(last, b.item(), after[0]);
  });
  return b.finish();
}

plan::Plan plan_of(const kir::Kernel& code) {
  plan::Plan plan;
  plan.name = "arithmetic";
  plan::ArgumentSet set{.items = kNumbers, .buffers = {}, .params = {}};
  for (const kir::Buffer& buffer : code.buffers)
    set.buffers.push_back(
        plan::add_region_buffer(plan, plan::Storage::store, buffer.name, buffer.dtype, kNumbers));
  const std::uint32_t unit = plan::add_unit(plan, code);
  plan.launches.push_back({.name = "arithmetic", .unit = unit, .sets = {set}});
  return plan;
}

// Positive numbers of all digits, of sizes whose quotients and products are normal numbers. What is
// added to a product is near its negative half of the time, so that it shows whether that was
// rounded.
struct Operands {
  Floats x = Floats(kNumbers), y = Floats(kNumbers), z = Floats(kNumbers);
  Operands() {
    std::uint64_t state = 1;
    const auto next = [&] {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto bits = static_cast<std::uint32_t>(state >> 32);
      return std::bit_cast<float>((bits & 0x7FFFFFU) | (127 - 16 + (bits >> 23) % 32) << 23);
    };
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] = next(), y[k] = next();
      z[k] = k % 2 == 0 ? next() : -(x[k] * y[k]);
    }
  }
};

}  // namespace

std::vector<std::string> Arithmetic::inexact() const {
  std::vector<std::string> names;
  if (!divides) names.emplace_back("division");
  if (!takes_roots) names.emplace_back("square root");
  if (!fuses) names.emplace_back("fma");
  return names;
}

Arithmetic test_arithmetic(Device& device) {
  const Operands operands;
  constexpr std::int64_t kBytes = kNumbers * 4;
  std::vector<Slice> slices;
  for (int k = 0; k < 6; ++k) slices.push_back({device.allocate(kBytes), 0, kBytes});
  slices.push_back({device.allocate(2 * kBytes), 0, 2 * kBytes});
  const Floats* given[] = {&operands.x, &operands.y, &operands.z};
  for (std::size_t k = 0; k < 3; ++k) device.write(slices[k], std::as_bytes(std::span(*given[k])));
  const PlanId plan = device.load(plan_of(kernel()));
  device.run(plan, {.arena = {}, .regions = slices, .uniforms = {}});
  Floats got[3];
  for (std::size_t k = 0; k < 3; ++k) {
    got[k].resize(kNumbers);
    device.read(slices[3 + k], std::as_writable_bytes(std::span(got[k])));
  }
  std::vector<std::int64_t> last(kNumbers);
  device.read(slices[6], std::as_writable_bytes(std::span(last)));
  device.unload(plan);
  for (const Slice& slice : slices) device.free(slice.memory);
  Arithmetic result;
  for (std::size_t k = 0; k < operands.x.size(); ++k) {
    const float x = operands.x[k], y = operands.y[k];
    result.divides = result.divides && got[0][k] == x / y;
    result.takes_roots = result.takes_roots && got[1][k] == std::sqrt(x);
    result.fuses = result.fuses && got[2][k] == std::fma(x, y, operands.z[k]);
  }
  std::int64_t expected = kFirst;
  for (std::int64_t k = 0; k < kRounds; ++k) expected = next_of(expected);
  result.finishes_loops = last[0] == expected;
  if (faults().inexact) result.divides = result.takes_roots = false;
  return result;
}

namespace {

struct Known {
  std::mutex mutex;
  std::map<std::string, Arithmetic> by_identity;
};
Known& known() {
  static Known all;
  return all;
}

}  // namespace

Arithmetic known_arithmetic(const std::string& identity) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().by_identity.find(identity);
  return found == known().by_identity.end() ? Arithmetic{} : found->second;
}

void note_arithmetic(const std::string& identity, const Arithmetic& arithmetic) {
  const std::lock_guard lock(known().mutex);
  known().by_identity[identity] = arithmetic;
}

void note_arithmetic_of(std::string_view device, const Arithmetic& arithmetic) {
  const std::size_t colon = device.find(':');
  const std::string_view choice =
      colon == device.npos ? std::string_view{} : device.substr(colon + 1);
  note_arithmetic(pantala::vulkan::choose(choice).identity, arithmetic);
}

}  // namespace pantala::device::vulkan
