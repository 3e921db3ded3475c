// The Store: placement, first values, exact conversions, extension; and the files that hold it.
#include "runtime/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>

#include "io/safetensors_write.h"
#include "pantala/error.h"
#include "pantala/interpreter.h"
#include "runtime/convert.h"
#include "runtime/placement.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::runtime::store_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;

StoreLeaf parameter(std::string name, Type type, Initializer init = init::zeros()) {
  return {LeafKind::parameter, std::move(name), std::move(type), false, std::move(init)};
}
StoreLeaf state(std::string name, Type type) {
  return {LeafKind::state, std::move(name), std::move(type), false, init::zeros()};
}
StoreLeaf scalar(std::string name, double value) {
  return {LeafKind::scalar, std::move(name), {f64, {}}, true, init::constant(value)};
}

std::vector<std::string> names_in_order(const std::vector<PlacedLeaf>& leaves,
                                        const std::vector<std::vector<std::string>>& siblings) {
  std::vector<std::string> names;
  for (const std::size_t k : place(leaves, siblings)) names.push_back(leaves[k].name);
  return names;
}

TEST(Placement, siblings_lie_side_by_side_and_states_follow_their_parameters) {
  const std::vector<PlacedLeaf> leaves = {
      {LeafKind::parameter, "q.weight"},     {LeafKind::parameter, "q.bias"},
      {LeafKind::parameter, "k.weight"},     {LeafKind::parameter, "v.weight"},
      {LeafKind::state, "running_mean"},     {LeafKind::state, "optim.m.k.weight"},
      {LeafKind::state, "optim.v.k.weight"}, {LeafKind::state, "optim.m.q.weight"},
      {LeafKind::state, "optim.v.q.weight"}, {LeafKind::state, "ema.v.weight"}};
  EXPECT_THAT(names_in_order(leaves, {{"q.weight", "k.weight", "v.weight"}}),
              ElementsAre("q.weight", "k.weight", "v.weight", "q.bias", "optim.m.q.weight",
                          "optim.m.k.weight", "optim.v.q.weight", "optim.v.k.weight",
                          "ema.v.weight", "running_mean"));
}

TEST(Placement, siblings_are_found_in_the_launches_of_a_plan) {
  plan::Plan plan;
  const std::uint32_t x = plan::add_region_buffer(plan, plan::Storage::input, "x", f32, 8);
  const std::uint32_t h = plan::add_arena_buffer(plan, "h", f32, 8);
  plan.units.push_back({.entry = "product",
                        .signature = {.buffers = {{f32, kir::Access::read},
                                                  {f32, kir::Access::read},
                                                  {f32, kir::Access::write}},
                                      .params = {},
                                      .scratch_bytes = 0}});
  const auto weight = [&](const std::string& name) {
    const std::uint32_t buffer = plan::add_region_buffer(plan, plan::Storage::store, name, f32, 16);
    plan.parameters.push_back({name, buffer, {4, 4}});
    return buffer;
  };
  const auto product = [&](std::uint32_t a, std::uint32_t w) {
    plan.launches.push_back({.name = "product", .unit = 0, .sets = {{1, {a, w, h}, {}}}});
  };
  const std::uint32_t q = weight("q"), other = weight("other"), k = weight("k");
  product(x, q);
  product(h, other);
  product(x, k);
  product(h, q);  // the backward pass meets q again
  EXPECT_THAT(siblings(plan), ElementsAre(ElementsAre("q", "k")));
}

class Stores : public testing::Test {
 protected:
  std::unique_ptr<device::Device> device_ = device::make_device("cpu", {.workers = 1});
};

TEST_F(Stores, first_values_are_those_of_the_interpreter) {
  Graph graph;
  graph.parameter("w", {3, 5}, init::kaiming_uniform(1), f32);
  graph.state("mean", {5}, init::constant(2), f64);
  graph.rng_seed();
  const ref::Session reference(graph, 17);
  Store store(*device_, 17);
  store.extend(std::vector{parameter("w", {f32, {3, 5}}, init::kaiming_uniform(1)),
                           StoreLeaf{LeafKind::state, "mean", {f64, {5}}, false, init::constant(2)},
                           StoreLeaf{LeafKind::state, "rng.seed", {i64, {}}, true, init::zeros()}},
               {});
  for (const char* name : {"w", "mean", "rng.seed"})
    EXPECT_EQ(store.read(*store.find(name)), reference.value(name)) << name;
}

TEST_F(Stores, first_values_are_made_once_by_any_number_of_threads) {
  constexpr std::int64_t kMany = 100'000;  // several parts
  const StoreLeaf many = parameter("many", {f32, {kMany}}, init::normal()),
                  given = parameter("given", {f32, {4}}, init::normal()),
                  ones = parameter("ones", {f32, {3}}, init::ones());
  const Literal expected = init::make(many.init, many.type, "many", 5);
  for (const int threads : {1, 3}) {
    Store store(*device_, 5, threads);
    store.extend(std::vector{many, given, ones}, {});
    store.write(*store.find("given"), Literal::floats({4}, {1, 2, 3, 4}));
    store.settle();
    EXPECT_EQ(store.read(*store.find("given")), Literal::floats({4}, {1, 2, 3, 4}));
    EXPECT_EQ(store.read(*store.find("many")), expected);
    EXPECT_EQ(store.read(*store.find("ones")).at(2), 1);
    store.write(*store.find("ones"), Literal::floats({3}, {5, 5, 5}));
    store.settle();  // nothing is left to make
    EXPECT_EQ(store.read(*store.find("ones")).at(2), 5);
  }
}

TEST_F(Stores, slices_are_aligned_in_one_block) {
  Store store(*device_, 0);
  store.extend(std::vector{parameter("a", {f32, {3}}), parameter("b", {f64, {9}}),
                           state("optim.m.a", {f32, {3}})},
               {});
  const auto& entries = store.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].slice.offset, 0);
  EXPECT_EQ(entries[1].slice.offset, 64);
  EXPECT_EQ(entries[2].slice.offset, 64 + 128);
  EXPECT_EQ(entries[0].slice.memory, entries[2].slice.memory);
  EXPECT_EQ(store.device_bytes(LeafKind::parameter), 192);
  EXPECT_EQ(store.device_bytes(LeafKind::state), 64);
}

TEST_F(Stores, extending_keeps_values_and_adds_what_is_missing) {
  Store store(*device_, 0);
  store.extend(std::vector{parameter("a", {f32, {2}}), scalar("optim.lr", 0.5)}, {});
  store.write(*store.find("a"), HostElements(std::vector{1.0F, 2.0F}));
  store.extend(std::vector{parameter("b", {f32, {1}}, init::ones()), parameter("a", {f32, {2}})},
               {});
  EXPECT_THAT(store.read(*store.find("a")).to_doubles(), ElementsAre(1, 2));
  EXPECT_THAT(store.read(*store.find("b")).to_doubles(), ElementsAre(1));
  EXPECT_EQ(store.read(*store.find("optim.lr")).at(0), 0.5);
}

TEST_F(Stores, leaves_that_differ_are_listed_together_and_nothing_is_added) {
  Store store(*device_, 0);
  store.extend(std::vector{parameter("a", {f32, {2}}), state("s", {f32, {}})}, {});
  const std::vector<StoreLeaf> bad = {parameter("a", {f32, {3}}), parameter("s", {f32, {}}),
                                      parameter("new", {f32, {1}})};
  EXPECT_EQ(message_of<TypeError>([&] { store.extend(bad, {}); }),
            "the plan does not fit the session: parameter 'a' is f32[2], the plan has f32[3]; 's' "
            "is a state, the plan has a parameter");
  EXPECT_EQ(store.find("new"), nullptr);
}

TEST_F(Stores, names_are_checked_with_the_nearest) {
  Store store(*device_, 0);
  store.extend(std::vector{parameter("fc1.weight", {f32, {2}}), scalar("optim.lr", 1)}, {});
  const auto get = [&](const char* name) {
    return message_of<TypeError>([&] { store.get(name, LeafKind::parameter, "parameter"); });
  };
  EXPECT_EQ(get("fc1.wieght"),
            "the session has no parameter named 'fc1.wieght'; did you mean 'fc1.weight'?");
  EXPECT_EQ(get("optim.lr"), "the session has no parameter named 'optim.lr': that is a scalar");
}

TEST(Convert, only_exact_pairs_are_taken) {
  const std::vector<std::pair<DType, DType>> exact = {
      {f32, f64}, {f16, f32}, {bf16, f32}, {i32, f64},     {u8, f32},     {u8, bf16},
      {u8, i32},  {i64, i32}, {i32, i64},  {boolean, f16}, {boolean, i32}};
  for (const auto& [from, to] : exact)
    EXPECT_TRUE(convertible(from, to)) << dtype_name(from) << " " << dtype_name(to);
  const std::vector<std::pair<DType, DType>> inexact = {{f64, f32},  {f32, f16},  {f32, bf16},
                                                        {bf16, f16}, {f16, bf16}, {i32, f32},
                                                        {i64, f64},  {f32, i32},  {i32, boolean}};
  for (const auto& [from, to] : inexact)
    EXPECT_FALSE(convertible(from, to)) << dtype_name(from) << " " << dtype_name(to);
}

TEST(Convert, messages_name_counts_dtypes_positions_and_values) {
  const Receiver input{"input", "labels"};
  const Type type{i32, {3}};
  const auto check = [&](const HostElements& values, std::int64_t limit) {
    check_elements(input, values, type, {limit});
  };
  EXPECT_EQ(message_of<TypeError>([&] { check(std::vector<std::int64_t>{1, 2}, 0); }),
            "input 'labels' is i32[3]: it has 3 elements, 2 were given");
  EXPECT_EQ(message_of<TypeError>([&] { check(std::vector<float>{1, 2, 3}, 0); }),
            "input 'labels' is i32[3]: f32 numbers were given, which are not all exact as i32; "
            "convert them to i32 first");
  EXPECT_EQ(message_of<ValueError>([&] { check(std::vector<std::int64_t>{1, 1LL << 40, 0}, 0); }),
            "input 'labels': 1099511627776 at position 1 is not in [-2147483648, 2147483647]");
  EXPECT_EQ(message_of<ValueError>([&] { check(std::vector<std::int64_t>{9, 0, 10}, 10); }),
            "input 'labels': 10 at position 2 is not in [0, 9], which its readers need");
  EXPECT_EQ(message_of<ValueError>([&] { check(std::vector<std::int32_t>{9, -1, 0}, 10); }),
            "input 'labels': -1 at position 1 is not in [0, 9], which its readers need");
  check_elements(input, std::vector{9, -100, 0}, type, {10, -100});
  EXPECT_EQ(
      message_of<ValueError>(
          [&] { check_elements(input, std::vector{9, -100, 10}, type, {10, -100}); }),
      "input 'labels': 10 at position 2 is not in [0, 9] and not -100, which its readers need");
  EXPECT_EQ(
      message_of<TypeError>([&] { check_literal(input, Literal::ints({4}, {1, 2, 3, 4}), type); }),
      "input 'labels' is i32[3], but i64[4] was given");
}

TEST(Convert, every_dtype_reads_back_what_was_written) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const Literal value = Literal::floats({4}, {0, -1.5, 65504, 0x1p-14}, dtype);
    std::array<std::byte, 32> memory{};
    encode(value, dtype, memory.data());
    const Literal back = decode({dtype, {4}}, memory.data());
    for (std::int64_t k = 0; k < 4; ++k)
      EXPECT_EQ(back.at(k), round_to(dtype, value.at(k))) << dtype_name(dtype);
  }
  for (const DType dtype : {i32, i64, u8, boolean}) {
    const Literal value = Literal::ints({3}, {0, 1, dtype == boolean ? 1 : 200}, dtype);
    std::array<std::byte, 24> memory{};
    encode(value, dtype, memory.data());
    EXPECT_EQ(decode({dtype, {3}}, memory.data()), value) << dtype_name(dtype);
  }
}

TEST(Convert, outputs_go_into_wider_buffers_only) {
  const Type type{i64, {2}};
  std::array<std::byte, 16> memory{};
  encode(Literal::ints({2}, {7, 8}), i64, memory.data());
  std::vector<std::int32_t> narrow(2);
  EXPECT_EQ(
      message_of<TypeError>([&] { decode_into({"output", "y"}, type, memory.data(), narrow); }),
      "output 'y' is i64[2]: i32 cannot hold every i64");
  std::vector<std::int64_t> one(1), two(2);
  EXPECT_EQ(message_of<TypeError>([&] { decode_into({"output", "y"}, type, memory.data(), one); }),
            "output 'y' is i64[2]: it has 2 elements, there is room for 1");
  decode_into({"output", "y"}, type, memory.data(), two);
  EXPECT_THAT(two, ElementsAre(7, 8));
}

TEST(SafetensorsWrite, a_file_reads_back_with_its_metadata) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "values.safetensors";
  std::vector<std::vector<std::byte>> memory;
  std::vector<io::TensorBytes> tensors;
  const std::vector<std::pair<std::string, Literal>> values = {
      {"flag", Literal::ints({3}, {1, 0, 1}, boolean)},
      {"half", Literal::floats({3}, {1, 2, -0.5}, f16)},
      {"w", Literal::floats({2, 2}, {1, 2, 3, 4}, f32)},
      {"step", Literal::integer(5)},
      {"empty", Literal::floats({0, 3}, {}, f64)}};
  for (const auto& [name, value] : values) {
    memory.emplace_back(static_cast<std::size_t>(value.numel() * dtype_bytes(value.dtype())));
    encode(value, value.dtype(), memory.back().data());
  }
  for (std::size_t k = 0; k < values.size(); ++k)
    tensors.push_back({values[k].first, values[k].second.type(), memory[k]});
  io::write_safetensors(path, tensors, {{"made by", "a test"}});
  const Weights file = Weights::open(path);
  EXPECT_EQ(file.names().size(), values.size());
  for (const auto& [name, value] : values) EXPECT_EQ(file.read(name), value) << name;
  EXPECT_EQ(file.metadata().at("made by"), "a test");

  tensors.push_back(tensors[0]);
  EXPECT_THAT(message_of<TypeError>([&] { io::write_safetensors(path, tensors); }),
              HasSubstr("the name \"flag\" occurs twice"));
  tensors.back() = {"short", {f32, {2}}, memory[3]};
  tensors.back().bytes = tensors.back().bytes.first(4);
  EXPECT_THAT(message_of<TypeError>([&] { io::write_safetensors(path, tensors); }),
              HasSubstr("\"short\" f32[2] has 8 bytes, 4 were given"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace pantala::runtime::store_test
