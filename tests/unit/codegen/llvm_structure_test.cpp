// Loops, branches, parameters, reports and items as machine code against the kernel-IR interpreter.
#include <gmock/gmock.h>

#include "pantala/error.h"
#include "support/errors.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::codegen::llvm_structure_test {
namespace {

using kir::Access;
using kir::BufferId;
using kir::Builder;
using kir::Op;
using kir::Var;

TEST(LlvmStructure, loops_carry_values) {
  for (const int lanes : {1, 4, 8, 16}) {
    Builder b("carry" + std::to_string(lanes));
    const BufferId from = b.buffer("from", DType::f32, Access::read),
                   to = b.buffer("to", DType::f32, Access::write);
    const BufferId ends = b.buffer("ends", DType::i64, Access::write);
    const Var n = b.param("n"), step = b.param("step");
    const Var zero = b.constant({DType::f32, lanes}, 0.0),
              one = b.constant({DType::f32, lanes}, 1.0);
    // Sum, two values that change places, the last index, whether a negative sum was met.
    const auto result = b.loop(b.i64(0), n, step, {zero, zero, one, b.i64(-1), lt(one, zero)},
                               [&](Var i, std::span<const Var> c) {
                                 const Var sum = c[0] + b.load(from, i * lanes, lanes) * c[1];
                                 return std::vector<Var>{sum, c[2], c[1], i,
                                                         b.binary(Op::bit_or, c[4], lt(sum, zero))};
                               });
    for (int k = 0; k < 3; ++k) b.store(to, b.i64(k * lanes), result[static_cast<std::size_t>(k)]);
    b.store(to, b.i64(3 * lanes), b.select(result[4], one, zero));
    b.store(ends, b.i64(0), result[3]);
    const kir::Kernel kernel = b.finish();
    for (const std::int64_t count : {0, 1, 7, 30})
      for (const std::int64_t by : {1, 3}) {
        std::vector<float> numbers(static_cast<std::size_t>(30 * lanes));
        Draw draw(21);
        for (float& x : numbers) x = static_cast<float>(draw.bits() % 2000) / 16 - 60;
        expect_same_on_all_targets(
            kernel,
            {array_of(DType::f32, numbers), zeros(DType::f32, 4 * lanes), zeros(DType::i64, 1)},
            {ir::Number::of(count), ir::Number::of(by)}, 1);
      }
  }
}

TEST(LlvmStructure, nested_loops_and_branches) {
  Builder b("nested");
  const BufferId from = b.buffer("from", DType::i64, Access::read),
                 to = b.buffer("to", DType::i64, Access::write);
  const Var rows = b.param("rows"), columns = b.param("columns");
  const Var base = b.item() * rows * columns;
  const auto total =
      b.loop(b.i64(0), rows, b.i64(1), {b.i64(0)}, [&](Var r, std::span<const Var> outer) {
        const auto row =
            b.loop(b.i64(0), columns, b.i64(1), {outer[0]}, [&](Var c, std::span<const Var> inner) {
              const Var x = b.load(from, base + r * columns + c);
              return b.branch(
                  lt(x, b.i64(0)), [&] { return std::vector<Var>{inner[0] - x * 3}; },
                  [&] {
                    return b.branch(
                        lt(b.i64(100), x), [&] { return std::vector<Var>{inner[0]}; },
                        [&] { return std::vector<Var>{inner[0] + x}; });
                  });
            });
        b.branch(lt(row[0], b.i64(50)), [&] { b.store(to, b.item() * 2 + 1, row[0]); });
        return std::vector<Var>{row[0]};
      });
  b.store(to, b.item() * 2, total[0]);
  const kir::Kernel kernel = b.finish();
  Draw draw(22);
  std::vector<std::int64_t> numbers(3 * 4 * 5);
  for (std::int64_t& x : numbers) x = static_cast<std::int64_t>(draw.bits() % 400) - 200;
  expect_same_on_all_targets(kernel, {array_of(DType::i64, numbers), zeros(DType::i64, 6)},
                             {ir::Number::of(4), ir::Number::of(5)}, 3);
  expect_same_on_all_targets(kernel, {array_of(DType::i64, numbers), zeros(DType::i64, 6)},
                             {ir::Number::of(4), ir::Number::of(0)}, 3);
}

TEST(LlvmStructure, parameters_of_every_type) {
  Builder b("params");
  const BufferId f = b.buffer("f", DType::f32, Access::write),
                 d = b.buffer("d", DType::f64, Access::write);
  const BufferId i = b.buffer("i", DType::i32, Access::write),
                 l = b.buffer("l", DType::i64, Access::write),
                 t = b.buffer("t", DType::boolean, Access::write);
  b.store(f, b.item(), b.param("single", DType::f32));
  b.store(d, b.item(), b.param("double", DType::f64));
  b.store(i, b.item(), b.param("int", DType::i32));
  b.store(l, b.item(), b.param("long", DType::i64));
  b.store(t, b.item(), b.param("flag", DType::boolean));
  expect_same_on_all_targets(b.finish(),
                             {zeros(DType::f32, 2), zeros(DType::f64, 2), zeros(DType::i32, 2),
                              zeros(DType::i64, 2), zeros(DType::boolean, 2)},
                             {ir::Number(-1.5), ir::Number(1e-300), ir::Number::of(-7),
                              ir::Number::of(INT64_MIN), ir::Number::of(1)},
                             2);
}

TEST(LlvmStructure, reports_set_the_status_only_if_they_hold) {
  Builder b("report");
  const BufferId index = b.buffer("index", DType::i64, Access::read),
                 to = b.buffer("to", DType::i64, Access::write);
  const Var limit = b.param("limit");
  const Var x = b.load(index, b.item());
  b.report(le(limit, x), 17);
  b.store(to, b.item(), min(x, limit - 1));
  const kir::Kernel kernel = b.finish();
  const std::vector<Array> buffers{array_of<std::int64_t>(DType::i64, {1, 5, 2}),
                                   zeros(DType::i64, 3)};
  expect_same_on_all_targets(kernel, buffers, {ir::Number::of(6)}, 3);
  expect_same_on_all_targets(kernel, buffers, {ir::Number::of(5)}, 3);
}

TEST(LlvmStructure, a_report_may_have_a_code_that_is_computed) {
  Builder b("computed_report");
  const BufferId index = b.buffer("index", DType::i64, Access::read);
  const Var limit = b.param("limit"), code = b.param("code");
  b.report(le(limit, b.load(index, b.item())), code);
  const kir::Kernel kernel = b.finish();
  const std::vector<Array> buffers{array_of<std::int64_t>(DType::i64, {1, 5, 2})};
  for (const int limit_of : {5, 6})
    expect_same_on_all_targets(kernel, buffers, {ir::Number::of(limit_of), ir::Number::of(17)}, 3);
}

TEST(LlvmStructure, a_kernel_of_several_threads_is_refused) {
  Builder b("threads", 8);
  b.barrier();
  const kir::Kernel kernel = b.finish();
  CodeLibrary library;
  EXPECT_THAT(tests::message_of<InternalError>([&] { library.add({&kernel, 1}); }),
              testing::HasSubstr("kernel 'threads' is worked on by several threads per item"));
}

TEST(LlvmStructure, items_are_the_range_that_is_asked_for) {
  Builder b("items");
  const BufferId to = b.buffer("to", DType::i64, Access::write);
  b.store(to, b.item(), b.item() + 100);
  const kir::Kernel kernel = b.finish();
  CodeLibrary library;
  library.add({&kernel, 1});
  std::int64_t out[6] = {};
  void* buffers[] = {out};
  library.find("items")(buffers, nullptr, 2, 4, nullptr, nullptr);
  library.find("items")(buffers, nullptr, 5, 5, nullptr, nullptr);
  library.find("items")(buffers, nullptr, 5, 3, nullptr, nullptr);
  EXPECT_EQ(std::vector<std::int64_t>(out, out + 6),
            (std::vector<std::int64_t>{0, 0, 102, 103, 0, 0}));
}

}  // namespace
}  // namespace pantala::codegen::llvm_structure_test
