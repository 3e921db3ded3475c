#include "device/vulkan/faults.h"

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace pantala::device::vulkan {

Faults::Faults() {
  const char* variable = std::getenv("PANTALA_VULKAN_FAULT");
  std::string_view rest = variable ? variable : "";
  watches = !rest.empty();
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(one.size() == rest.size() ? one.size() : one.size() + 1);
    const std::string_view name = one.substr(0, one.find('='));
    const std::string value(one.size() > name.size() ? one.substr(name.size() + 1) : "");
    if (name == "allocation") allocation = std::atoll(value.c_str());
    if (name == "submit") submission = std::atoll(value.c_str());
    if (name == "wait") waiting = std::atoll(value.c_str());
    if (name == "barrier") barrier = std::atoll(value.c_str());
    if (name == "no_barriers") no_barriers = true;
    if (name == "kernel") perturbed_kernel = value;
    if (name == "staging") staging = true;
    if (name == "plain") plain = true;
    if (name == "inexact") inexact = true;
  }
}

bool Faults::take(Fault fault) {
  std::int64_t* const counters[] = {&allocation, &submission, &waiting, &barrier};
  const std::atomic_ref left(*counters[static_cast<std::size_t>(fault)]);
  return left > 0 && --left == 0;
}

namespace {

void perturb(kir::Kernel& kernel, kir::Block& block) {
  std::vector<kir::Inst> body;
  for (kir::Inst& inst : block.body) {
    for (kir::Block& inner : inst.blocks) perturb(kernel, inner);
    if (inst.op == kir::Op::store || inst.op == kir::Op::store_strided) {
      kir::Value& value = inst.args[inst.op == kir::Op::store ? 1 : 2];
      const DType dtype = kernel.type(value).dtype;
      const bool is_index = dtype == DType::i32 || dtype == DType::i64;
      if (dtype == DType::f32 || is_index) {
        const kir::Value turned{static_cast<std::uint32_t>(kernel.types.size())};
        kernel.types.push_back(kernel.type(value));
        if (is_index)
          body.push_back({.op = kir::Op::sub, .args = {value, value}, .results = {turned}});
        else
          body.push_back({.op = kir::Op::neg, .args = {value}, .results = {turned}});
        value = turned;
      }
    }
    body.push_back(std::move(inst));
  }
  block.body = std::move(body);
}

}  // namespace

kir::Kernel perturbed(kir::Kernel kernel) {
  kir::Block body = std::move(kernel.body);
  perturb(kernel, body);
  kernel.body = std::move(body);
  return kernel;
}

Faults& faults() {
  static Faults all;
  return all;
}

}  // namespace pantala::device::vulkan
