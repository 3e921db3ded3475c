// The host's part of a step: the interpreter's numbers, no allocation, text and back.
#include "plan/host_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/text.h"
#include "support/allocations.h"
#include "support/errors.h"

namespace pantala::plan {
namespace {

using ir::Number;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::message_of;

float as_f32(std::int64_t slot) { return std::bit_cast<float>(static_cast<std::uint32_t>(slot)); }
double as_f64(std::int64_t slot) { return std::bit_cast<double>(slot); }

// The first values of the program's leaves.
std::vector<Number> first_values(const Graph& graph, const HostPart& program) {
  const ref::Session session(graph);
  std::vector<Number> values;
  for (const HostPart::Leaf& leaf : program.leaves())
    values.push_back(leaf.kind == LeafKind::scalar ? Number(session.scalar(leaf.name))
                     : is_float(leaf.dtype)        ? Number(session.value(leaf.name).f()[0])
                                                   : Number::of(session.value(leaf.name).i()[0]));
  return values;
}

// 1 - beta^t with t = step + 1, as Adam has it.
struct Correction {
  Graph g;
  Tensor beta = g.scalar("beta", 0.9);
  Tensor step = g.state("step", {}, init::zeros(), i64);
  Tensor t = step + 1;
  Tensor value = 1.0 - pow(beta, cast(t, f64));
  HostRequest request{.uniforms = {{value.id(), f32}, {value.id(), f64}, {t.id(), i64}},
                      .outputs = {{"correction", value.id()}},
                      .updates = {{"step", t.id()}}};
};

TEST(HostPart, computes_uniforms_and_advances_counters) {
  const Correction c;
  HostPart program(c.g, c.request);
  EXPECT_THAT(program.leaves(), ElementsAre(HostPart::Leaf{LeafKind::scalar, "beta", f64},
                                            HostPart::Leaf{LeafKind::state, "step", i64}));
  EXPECT_THAT(program.output_names(), ElementsAre("correction"));
  std::vector<Number> values = first_values(c.g, program);
  std::vector<std::int64_t> slots(program.uniforms());
  for (int t = 1; t <= 5; ++t) {
    program.evaluate(values, slots);
    const double expected = 1.0 - std::pow(0.9, t);
    EXPECT_EQ(as_f32(slots[0]), static_cast<float>(expected));
    EXPECT_EQ(as_f64(slots[1]), expected);
    EXPECT_EQ(slots[2], t);
    EXPECT_EQ(program.output(0).real(), expected);
    program.advance(values);
    EXPECT_EQ(values[1].i, t);
    EXPECT_EQ(values[0].f, 0.9);
  }
}

TEST(HostPart, a_step_that_is_not_advanced_is_computed_again) {
  const Correction c;
  HostPart program(c.g, c.request);
  const std::vector<Number> values = first_values(c.g, program);
  std::vector<std::int64_t> first(program.uniforms()), second(program.uniforms());
  program.evaluate(values, first);
  program.evaluate(values, second);
  EXPECT_EQ(first, second);
}

TEST(HostPart, nothing_is_allocated_while_it_runs) {
  const Correction c;
  HostPart program(c.g, c.request);
  std::vector<Number> values = first_values(c.g, program);
  std::vector<std::int64_t> slots(program.uniforms());
  const std::int64_t before = tests::allocations().count;
  for (int k = 0; k < 100; ++k) {
    program.evaluate(values, slots);
    program.advance(values);
  }
  EXPECT_EQ(tests::allocations().count, before);
}

TEST(HostPart, reads_back_from_its_text) {
  const Correction c;
  const HostPart original(c.g, c.request);
  HostPart copy = HostPart::parse(original.text(), "cache");
  EXPECT_EQ(copy.text(), original.text());
  EXPECT_EQ(copy.leaves(), original.leaves());
  EXPECT_EQ(copy.output_names(), original.output_names());
  std::vector<Number> values = first_values(c.g, copy);
  EXPECT_EQ(values[0].f, 0.9);
  std::vector<std::int64_t> slots(copy.uniforms());
  copy.evaluate(values, slots);
  EXPECT_EQ(slots[2], 1);
  EXPECT_EQ(as_f64(slots[1]), 1.0 - 0.9);
}

TEST(HostPart, text_that_is_no_host_part_is_refused) {
  const auto message = [](std::string_view text) {
    return message_of<ParseError>([&] { HostPart::parse(text, "cache"); });
  };
  EXPECT_THAT(message("graph {"), HasSubstr("cache"));
  Graph tensors;
  tensors.output("output.x", tensors.constant(1, {2}));
  EXPECT_THAT(message(to_text(tensors)), HasSubstr("is no scalar"));
  Graph unknown;
  unknown.output("x", unknown.constant(1));
  EXPECT_THAT(message(to_text(unknown)), HasSubstr("the output 'x' has no meaning"));
  Graph order;
  order.output("uniform.1.f32", order.constant(1));
  EXPECT_THAT(message(to_text(order)), HasSubstr("out of order"));
}

TEST(HostPart, integers_wrap_and_casts_follow_the_interpreter) {
  Graph g;
  const Tensor count = g.state("count", {}, init::constant(250), u8);
  const Tensor next = count + 10;
  const Tensor half = cast(cast(next, f64) / 8.0, i64);
  const Tensor flag = cast(half, boolean);
  const Tensor total = add_n({cast(half, f64), cast(flag, f64), g.constant(0.25, {}, f64)});
  HostPart program(g, {.uniforms = {{next.id(), i32}, {half.id(), i64}, {total.id(), f64}},
                       .updates = {{"count", next.id()}}});
  std::vector<Number> values = first_values(g, program);
  std::vector<std::int64_t> slots(3);
  program.evaluate(values, slots);
  EXPECT_EQ(slots[0], 4);  // 260 in a byte
  EXPECT_EQ(slots[1], 0);
  EXPECT_EQ(as_f64(slots[2]), 0.25);
  program.advance(values);
  EXPECT_EQ(values[0].i, 4);
}

// Every scalar that an optimizer adds has the interpreter's value, over several steps.
TEST(HostPart, agrees_with_the_interpreter_on_every_optimizer) {
  for (const std::string_view name : {"adam", "nadam", "radam", "adamax", "lamb", "sgd"}) {
    Graph g;
    const Tensor w = g.parameter("w", {2}), x = g.input("x", {2});
    optim::append(g, optim::from_options(name), {w}, {x});
    HostRequest request;
    std::vector<Tensor> wanted;
    for (std::uint32_t id = 0; id < g.size(); ++id) {
      const Tensor value = g.value({id, 0});
      if (value.rank() != 0) continue;
      request.uniforms.emplace_back(value.id(), f64);
      wanted.push_back(value);
    }
    for (const auto& [leaf, value] : g.updates())
      if (leaf.rank() == 0)
        for (const pantala::Leaf& known : g.leaves())
          if (known.value == leaf) request.updates.emplace_back(known.name, value.id());
    HostPart program(g, request);
    std::vector<Number> values = first_values(g, program);
    std::vector<std::int64_t> slots(program.uniforms());
    ref::Session session(g);
    session.set_input("x", Literal::floats({2}, {1, 2}));
    session.observe(wanted);
    for (int step = 0; step < 7; ++step) {
      session.step();
      program.evaluate(values, slots);
      program.advance(values);
      for (std::size_t k = 0; k < wanted.size(); ++k)
        EXPECT_EQ(as_f64(slots[k]), session.observed(wanted[k]).at(0)) << name << " " << k;
    }
  }
}

TEST(HostPart, values_of_the_device_are_refused) {
  Graph g;
  const Tensor loss = g.input("loss", {});
  EXPECT_THROW(HostPart(g, {.uniforms = {{loss.id(), f32}}}), InternalError);
  const Tensor long_sum = sum(g.constant(1, {4}));
  EXPECT_THROW(HostPart(g, {.uniforms = {{long_sum.id(), f32}}}), InternalError);
}

}  // namespace
}  // namespace pantala::plan
