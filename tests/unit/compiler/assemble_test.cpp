// From programs made by hand to plans that run.
#include "compiler/assemble.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/llvm/llvm.h"
#include "kir/simplify.h"
#include "pantala/error.h"
#include "plan/dependencies.h"
#include "support/errors.h"
#include "unit/plan/plan_case.h"

namespace pantala::compiler {
namespace {

using schedule::ParamValue;
using schedule::Program;
using schedule::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::message_of;

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// t = x * x + 0.25; w += rate * t; y = w * w + 0.25, with a constant added to t on the way.
struct SmallProgram {
  static constexpr std::int64_t n = 40;
  enum : std::uint32_t { x, w, t, c, y };
  Program program;

  SmallProgram() {
    Graph& g = program.graph;
    g.input("x", {n});
    g.parameter("w", {n});
    const Tensor rate = g.scalar("rate", 0.5);
    program.uniforms = {{rate.id(), DType::f32}};
    const Shape shape{n};
    program.buffers = {{.name = "x", .shape = shape, .role = Role::input},
                       {.name = "w", .shape = shape, .role = Role::store},
                       {.name = "square of x", .shape = shape},
                       {.name = "ones",
                        .shape = shape,
                        .role = Role::constant,
                        .content = bytes_of(std::vector<float>(n, 1.0F))},
                       {.name = "y", .shape = shape, .role = Role::output}};
    program.kernels = {kir::simplify(plan::square()), kir::simplify(plan::axpy())};
    const ParamValue size = ParamValue::of(n);
    const std::int64_t items = plan::tiles(n);
    program.launches = {
        {.name = "t", .kernel = 0, .sets = {{items, {x, t}, {size}}}},
        {.name = "ones", .kernel = 1, .sets = {{items, {c, t}, {size, ParamValue::of_real(1)}}}},
        {.name = "update",
         .kernel = 1,
         .sets = {{items, {t, w}, {size, ParamValue::of_uniform(0)}}}},
        {.name = "y", .kernel = 0, .sets = {{items, {w, y}, {size}}}}};
  }
};

TEST(Assemble, regions_ports_and_edges) {
  const SmallProgram small;
  const plan::Plan plan = assemble(small.program, {}, {.name = "small"});
  EXPECT_EQ(plan.name, "small");
  EXPECT_EQ(plan.target, "");
  ASSERT_EQ(plan.regions.size(), 3u);
  EXPECT_EQ(plan.regions[0], (plan::Region{"x", plan::Storage::input, 160}));
  EXPECT_EQ(plan.regions[1], (plan::Region{"w", plan::Storage::store, 160}));
  EXPECT_EQ(plan.regions[2], (plan::Region{"y", plan::Storage::output, 160}));
  EXPECT_THAT(plan.inputs, ElementsAre(plan::Port{"x", SmallProgram::x, Shape{40}, 0}));
  EXPECT_THAT(plan.parameters, ElementsAre(plan::Port{"w", SmallProgram::w, Shape{40}, 0}));
  EXPECT_THAT(plan.outputs, ElementsAre(plan::Port{"y", SmallProgram::y, Shape{40}, 0}));
  EXPECT_EQ(plan.constants.size(), 160u);
  EXPECT_EQ(plan.arena_bytes, 160);
  ASSERT_EQ(plan.launches.size(), 4u);
  EXPECT_THAT(plan.launches[0].after, IsEmpty());
  for (std::uint32_t k = 1; k < 4; ++k) EXPECT_THAT(plan.launches[k].after, ElementsAre(k - 1));
  EXPECT_EQ(plan.launches[1].sets[0].params[1], plan::Scalar::immediate(1.0F));
  EXPECT_EQ(plan.launches[2].sets[0].params[1], plan::Scalar::uniform(0));
  plan::check_dependencies(plan);
}

// Those that every machine has; tests/vulkan runs plans on the others.
TEST(Assemble, a_plan_runs_on_every_device) {
  const SmallProgram small;
  const codegen::HostTarget host = codegen::detect_host();
  for (const std::string name : {"cpu", "kir"}) {
    ProgramCode code;
    if (name == "cpu") {
      code.target = codegen::target_name(host);
      for (const kir::Kernel& kernel : small.program.kernels)
        code.objects.push_back(codegen::compile(kernel, host).object);
    }
    const auto device = device::make_device(name, {.workers = 2});
    device::OnDevice on(*device, assemble(small.program, code));
    const auto x = bytes_of(std::vector<float>(SmallProgram::n, 2.0F));
    const auto w = bytes_of(std::vector<float>(SmallProgram::n, 1.0F));
    device->write(on.regions[0], x);
    device->write(on.regions[1], w);
    on.run({plan::slot_of(0.5F)});
    auto contents = on.contents();
    // t = 4 + 0.25 + 1, w = 1 + 0.5 t, y = w w + 0.25.
    EXPECT_EQ(floats_of(contents["w"]), std::vector<float>(SmallProgram::n, 3.625F)) << name;
    EXPECT_EQ(floats_of(contents["y"]), std::vector<float>(SmallProgram::n, 13.390625F)) << name;
  }
}

TEST(Assemble, limits_belong_to_inputs) {
  SmallProgram small;
  small.program.buffers[0].limit = 10;
  small.program.buffers[0].exempt = -100;
  small.program.buffers[1].limit = 10;
  const plan::Plan plan = assemble(small.program, {});
  EXPECT_EQ(plan.inputs[0].limit, 10);
  EXPECT_EQ(plan.inputs[0].exempt, -100);
  EXPECT_EQ(plan.parameters[0].limit, 0);
}

TEST(Assemble, gradients_are_pairs_of_a_parameter_and_an_output) {
  const SmallProgram small;
  const plan::Plan plan = assemble(
      small.program, {}, {.gradients = {{"w", "y"}, {"unknown", "y"}, {"w", "not an output"}}});
  EXPECT_THAT(plan.gradients,
              ElementsAre(plan::ParameterGradient{"w", SmallProgram::w, SmallProgram::y}));
}

TEST(Assemble, an_output_may_be_called_like_a_leaf) {
  SmallProgram small;
  small.program.buffers[SmallProgram::y].name = "w";
  const plan::Plan plan = assemble(small.program, {});
  EXPECT_EQ(plan.regions[1].name, plan.regions[2].name);
}

TEST(Assemble, temporaries_share_memory) {
  SmallProgram small;
  Program& p = small.program;
  // A chain of eight temporaries needs room for two.
  const ParamValue size = ParamValue::of(SmallProgram::n);
  for (std::uint32_t k = 0; k < 8; ++k) {
    const auto fresh = static_cast<std::uint32_t>(p.buffers.size());
    p.buffers.push_back({.name = fmt::format("chain{}", k), .shape = {SmallProgram::n}});
    const std::uint32_t from = k == 0 ? std::uint32_t{SmallProgram::x} : fresh - 1;
    p.launches.push_back({.name = "chain",
                          .kernel = 0,
                          .sets = {{plan::tiles(SmallProgram::n), {from, fresh}, {size}}}});
  }
  const plan::Plan plan = assemble(p, {});
  EXPECT_LE(plan.arena_bytes, 3 * 192);
  plan::check_dependencies(plan);
}

TEST(Assemble, kernels_of_one_name_get_names_of_their_own) {
  Program program;
  program.kernels = {plan::square("k"), plan::axpy("k"), plan::halve("k_2"), plan::total("k")};
  name_kernels(program);
  std::vector<std::string> names;
  for (const kir::Kernel& kernel : program.kernels) names.push_back(kernel.name);
  EXPECT_THAT(names, ElementsAre("k", "k_2", "k_2_2", "k_3"));
}

TEST(Assemble, broken_programs_are_named) {
  const auto message = [](const std::function<void(Program&)>& change) {
    SmallProgram small;
    change(small.program);
    return message_of<InternalError>([&] { assemble(small.program, {}, {.name = "broken"}); });
  };
  EXPECT_EQ(message([](Program& p) { p.buffers[SmallProgram::c].content.pop_back(); }),
            "assemble 'broken': constant 'ones' f32[40] has 159 bytes");
  EXPECT_EQ(message([](Program& p) {
              p.buffers[SmallProgram::x].shape = {4, 10};
              p.buffers[SmallProgram::x].order = {1, 0};
            }),
            "assemble 'broken': 'x' is not stored in row-major order");
  EXPECT_EQ(message([](Program& p) { p.launches[0].sets[0].params.clear(); }),
            "assemble 'broken': launch 't' has 0 parameters, its kernel takes 1");
  EXPECT_THAT(message([](Program& p) { p.launches[0].sets[0].buffers[1] = SmallProgram::x; }),
              HasSubstr("it writes input 'x'"));
}

}  // namespace
}  // namespace pantala::compiler
