// Objects and the code library: what is compiled once, what can be kept and loaded, what is
// refused, and code for other processors.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "pantala/error.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::codegen::llvm_library_test {
namespace {

using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Var;

// y = x * scale + shift, `lanes` at a time with a masked tail.
kir::Kernel affine(const std::string& name, double shift, int lanes = 8) {
  Builder b(name);
  const BufferId x = b.buffer("x", DType::f32, Access::read),
                 y = b.buffer("y", DType::f32, Access::write);
  const Var n = b.param("n"), scale = b.param("scale", DType::f32);
  b.loop(b.i64(0), n, b.i64(lanes), [&](Var i) {
    const Var mask = lt(b.splat(i, lanes) + b.iota({DType::i64, lanes}), b.splat(n, lanes));
    b.store(y, i, b.load(x, i, lanes, mask) * b.splat(scale, lanes) + shift, mask);
  });
  return b.finish();
}

std::vector<float> run_affine(KernelFn kernel, std::vector<float> x, float scale) {
  std::vector<float> y(x.size());
  void* buffers[] = {x.data(), y.data()};
  const std::int64_t params[] = {static_cast<std::int64_t>(x.size()),
                                 std::bit_cast<std::int32_t>(scale)};
  kernel(buffers, params, 0, 1, nullptr, nullptr);
  return y;
}

int elf_machine(const CompiledUnit& unit) {
  const auto byte = [&](std::size_t k) { return static_cast<int>(unit.object.at(k)); };
  EXPECT_EQ((std::vector<int>{byte(0), byte(1), byte(2), byte(3)}),
            (std::vector<int>{0x7F, 'E', 'L', 'F'}));
  EXPECT_EQ(byte(16), 1) << "not relocatable";
  return byte(18) + 256 * byte(19);
}

TEST(LlvmLibrary, the_same_code_is_compiled_once) {
  CodeLibrary library;
  const std::vector<kir::Kernel> kernels{affine("a", 1), affine("b", 1), affine("c", 2)};
  library.add(kernels, 2);
  EXPECT_EQ(library.compiled(), 2U);
  EXPECT_EQ(library.find("a"), library.find("b"));
  EXPECT_NE(library.find("a"), library.find("c"));
  const kir::Kernel again[] = {affine("a", 1), affine("d", 2)};
  library.add(again);
  EXPECT_EQ(library.compiled(), 2U);
  EXPECT_EQ(library.find("d"), library.find("c"));
  EXPECT_EQ(library.find("e"), nullptr);
  EXPECT_EQ(run_affine(library.find("b"), {1, 2, 3}, 2), (std::vector<float>{3, 5, 7}));
}

TEST(LlvmLibrary, units_are_shared_by_kernels_of_the_same_code) {
  const std::vector<kir::Kernel> kernels{affine("a", 1), affine("b", 2), affine("c", 1)};
  const CompiledKernels compiled = compile_all(kernels, detect_host(), 3);
  ASSERT_EQ(compiled.units.size(), 2U);
  EXPECT_THAT(compiled.unit_of, testing::ElementsAre(0, 1, 0));
  EXPECT_EQ(compiled.units[1].name, "b");
}

TEST(LlvmLibrary, the_number_of_threads_changes_no_byte) {
  std::vector<kir::Kernel> kernels;
  for (int k = 0; k < 12; ++k) kernels.push_back(affine(fmt::format("k{}", k), k));
  const CompiledKernels one = compile_all(kernels, detect_host(), 1),
                        four = compile_all(kernels, detect_host(), 4);
  ASSERT_EQ(one.units.size(), four.units.size());
  for (std::size_t k = 0; k < one.units.size(); ++k)
    EXPECT_EQ(one.units[k].object, four.units[k].object);
}

TEST(LlvmLibrary, an_object_is_loaded_by_another_library) {
  const CompiledUnit unit = compile(affine("kept", 0.5), detect_host());
  CodeLibrary library;
  library.load(unit);
  ASSERT_NE(library.find("kept"), nullptr);
  EXPECT_EQ(run_affine(library.find("kept"), {1, 2}, 4), (std::vector<float>{4.5, 8.5}));
  EXPECT_EQ(library.compiled(), 0U);
}

TEST(LlvmLibrary, refuses_what_it_cannot_load) {
  CodeLibrary library;
  CompiledUnit unit = compile(affine("damaged", 1), detect_host());
  unit.object.resize(40);
  EXPECT_THROW(library.load(unit), DeviceError);
  EXPECT_THROW(library.load({"empty", {}}), DeviceError);
  const CompiledUnit foreign =
      compile(affine("foreign", 1),
              known_target(detect_host().triple.starts_with("x86_64") ? "aarch64" : "x86-64"));
  EXPECT_THROW(library.load(foreign), DeviceError);
  EXPECT_EQ(library.find("foreign"), nullptr);
  const CompiledUnit good = compile(affine("good", 1), detect_host());
  library.load(good);
  EXPECT_THROW(library.load(good), DeviceError);
}

TEST(LlvmLibrary, a_name_stands_for_one_code) {
  CodeLibrary library;
  const kir::Kernel first[] = {affine("a", 1)}, other[] = {affine("a", 2)},
                    both[] = {affine("b", 1), affine("b", 2)};
  library.add(first);
  EXPECT_THROW(library.add(other), InternalError);
  EXPECT_THROW(library.add(both), InternalError);
  EXPECT_EQ(library.find("b"), nullptr);
}

TEST(LlvmLibrary, may_be_used_by_many_threads) {
  CodeLibrary library;
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < 6; ++k) {
          const std::string name = fmt::format("k{}", k);
          const kir::Kernel kernel = affine(name, k);
          library.add({&kernel, 1});
          if (run_affine(library.find(name), {1, 2}, static_cast<float>(t)) !=
              std::vector<float>{static_cast<float>(t + k), static_cast<float>(2 * t + k)})
            ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(library.compiled(), 6U);
}

TEST(LlvmLibrary, compiles_for_other_processors) {
  constexpr int kX86 = 62, kArm = 183;
  for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4"})
    EXPECT_EQ(elf_machine(compile(affine("k", 1), known_target(name))), kX86);
  for (const int lanes : {2, 4, 16})
    EXPECT_EQ(elf_machine(compile(affine("k", 1, lanes), known_target("aarch64"))), kArm);
  EXPECT_THAT(assembly(affine("k", 1, 4), known_target("aarch64")), testing::HasSubstr(".4s"));
  EXPECT_THROW(known_target("pdp11"), UnsupportedError);
}

TEST(LlvmLibrary, runs_code_of_a_class_that_the_processor_belongs_to) {
  const HostTarget host = detect_host();
  EXPECT_EQ(runnable_target(target_name(host)), host);
  EXPECT_EQ(runnable_target("something else"), host);
  const bool is_arm = host.triple.starts_with("aarch64");
  EXPECT_EQ(runnable_target(target_name(known_target("x86-64"))),
            is_arm ? host : known_target("x86-64"));
  EXPECT_EQ(runnable_target(target_name(known_target("aarch64"))),
            is_arm ? known_target("aarch64") : host);
}

// Products and sums stay apart unless the kernel says fma.
TEST(LlvmLibrary, nothing_is_fused_unasked) {
  for (const char* name : {"x86-64-v3", "x86-64-v4"})
    EXPECT_THAT(assembly(affine("k", 1), known_target(name)),
                testing::Not(testing::HasSubstr("fmadd")));
  EXPECT_THAT(assembly(affine("k", 1), known_target("aarch64")),
              testing::Not(testing::HasSubstr("fmla")));
  EXPECT_THAT(llvm_ir(affine("k", 1), known_target("x86-64-v3")),
              testing::Not(testing::HasSubstr("contract")));
}

TEST(LlvmLibrary, knows_the_host) {
  const HostTarget host = detect_host();
  EXPECT_THAT(host.vector_bytes, testing::AnyOf(16, 32, 64));
  EXPECT_THAT(host.vector_registers, testing::AnyOf(16, 32));
  EXPECT_EQ(host, detect_host());
}

}  // namespace
}  // namespace pantala::codegen::llvm_library_test
