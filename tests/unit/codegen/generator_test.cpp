// Generators take kernel after kernel: what one has compiled before must not show in an object.
#include "codegen/llvm/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "support/random_kernel.h"

namespace pantala::tests::generator_test {
namespace {

using Object = std::vector<std::byte>;

std::vector<kir::Kernel> some_kernels() {
  std::vector<kir::Kernel> kernels;
  for (std::uint64_t seed = 0; seed < 12; ++seed) kernels.push_back(random_kernel(seed));
  return kernels;
}

TEST(Generators, give_the_same_object_whatever_they_compiled_before) {
  const std::vector<kir::Kernel> kernels = some_kernels();
  for (const codegen::HostTarget& target :
       {codegen::detect_host(), codegen::known_target("x86-64-v3"),
        codegen::known_target("aarch64")}) {
    std::vector<Object> forward, backward(kernels.size()), at_once(kernels.size());
    for (const kir::Kernel& kernel : kernels)
      forward.push_back(codegen::compile(kernel, target).object);
    for (std::size_t k = kernels.size(); k-- > 0;)
      backward[k] = codegen::compile(kernels[k], target).object;
    EXPECT_EQ(forward, backward) << target.triple << " " << target.cpu;
    parallel_for(kernels.size(), 3,
                 [&](std::size_t k) { at_once[k] = codegen::compile(kernels[k], target).object; });
    EXPECT_EQ(forward, at_once) << target.triple << " " << target.cpu;
  }
}

TEST(Generators, are_used_again) {
  codegen::Generators generators;
  const codegen::HostTarget host = codegen::detect_host();
  std::unique_ptr<codegen::Generator> first = generators.take(host);
  const codegen::Generator* const address = first.get();
  EXPECT_NE(generators.take(host).get(), address);
  generators.give_back(std::move(first));
  EXPECT_EQ(generators.take(codegen::known_target("x86-64"))->target().cpu, "x86-64");
  EXPECT_EQ(generators.take(host).get(), address);
}

}  // namespace
}  // namespace pantala::tests::generator_test
