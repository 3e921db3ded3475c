// Weights of other programs into sessions: names, prefixes, patterns, types; all or nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/session.h"
#include "support/errors.h"
#include "support/temporary.h"
#include "unit/runtime/session_case.h"

namespace pantala::load_weights_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::message_of;

// y = x embed.weight^T * scale + running, with parameters in two dtypes and a state of its own.
Session make_session() {
  Graph graph;
  const Tensor x = graph.input("x", {1, 3});
  const Tensor table = graph.parameter("embed.weight", {2, 3}, init::ones());
  const Tensor bias = graph.parameter("head.bias", {2}, init::zeros());
  const Tensor running = graph.state("norm.running_mean", {2});
  const Tensor counter = graph.state("norm.count", {}, init::zeros(), i64);
  graph.output("y", add(add(matmul(x, transpose(table)), bias), running));
  graph.output("count", add(counter, counter));
  return build_inference_session(graph);
}

Weights all_weights() {
  Weights weights;
  weights.set("embed.weight", Literal::floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  weights.set("head.bias", Literal::floats({2}, {0.5, -0.5}));
  weights.set("norm.running_mean", Literal::floats({2}, {7, 8}));
  weights.set("norm.count", Literal::integer(11));
  return weights;
}

void expect_loaded(const Session& session) {
  EXPECT_EQ(session.parameter("embed.weight"), all_weights().read("embed.weight"));
  EXPECT_EQ(session.parameter("head.bias"), all_weights().read("head.bias"));
  EXPECT_EQ(session.state("norm.running_mean"), all_weights().read("norm.running_mean"));
  EXPECT_EQ(session.state("norm.count"), Literal::integer(11));
}

void expect_untouched(const Session& session) {
  EXPECT_EQ(session.parameter("embed.weight"), Literal::floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(session.parameter("head.bias"), Literal::floats({2}, {0, 0}));
  EXPECT_EQ(session.state("norm.running_mean"), Literal::floats({2}, {0, 0}));
  EXPECT_EQ(session.state("norm.count"), Literal::integer(0));
}

TEST(LoadWeights, parameters_and_states_are_taken_and_used) {
  Session session = make_session();
  const LoadWeightsReport report = session.load_weights(all_weights());
  EXPECT_THAT(report.loaded,
              ElementsAre("embed.weight", "head.bias", "norm.count", "norm.running_mean"));
  EXPECT_TRUE(report.fits());
  EXPECT_EQ(report.text(), "4 tensors loaded");
  expect_loaded(session);
  session.set_input("x", std::vector<float>{1, 0, 1});
  session.step();
  EXPECT_EQ(session.output("y"), Literal::floats({1, 2}, {4 + 7.5, 10 + 7.5}));
  EXPECT_EQ(session.output("count"), Literal::integer(22));
}

TEST(LoadWeights, a_session_gives_what_it_takes) {
  Session session = make_session();
  session.load_weights(all_weights());
  const Weights weights = session.weights();
  EXPECT_EQ(weights.names(), all_weights().names());
  for (const std::string& name : weights.names())
    EXPECT_EQ(weights.read(name), all_weights().read(name)) << name;
  session.set_parameter("head.bias", Literal::floats({2}, {0, 0}));
  EXPECT_EQ(weights.read("head.bias"), all_weights().read("head.bias"));  // a copy
  const tests::TemporaryFolder folder;
  weights.save(folder.path(), {.max_shard_bytes = 24});
  Session other = make_session();
  other.load_weights(Weights::open(folder.path()));
  expect_loaded(other);
  Session third = make_session();
  third.load(folder.path());  // the same files
  expect_loaded(third);
}

TEST(LoadWeights, everything_that_does_not_fit_is_said_at_once_and_nothing_changes) {
  Session session = make_session();
  Weights weights = all_weights();
  weights.rename("head.bias", "haed.bias");
  weights.set("embed.weight", Literal::floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  weights.set("norm.running_mean", Literal::ints({2}, {1, 2}));
  weights.set("extra", Literal::integer(1));
  EXPECT_EQ(message_of<TypeError>([&] { session.load_weights(weights); }),
            "the weights: does not fit the model:\n"
            "1 missing:\n"
            "  head.bias (given: haed.bias?)\n"
            "2 unexpected:\n"
            "  extra\n"
            "  haed.bias (in the model: head.bias?)\n"
            "2 of another type:\n"
            "  embed.weight: f32[2,3] in the model, f32[3,2] given\n"
            "  norm.running_mean: f32[2] in the model, i64[2] given");
  expect_untouched(session);
  const LoadWeightsReport report = session.load_weights(weights, {.strict = false});
  EXPECT_THAT(report.loaded, ElementsAre("norm.count"));
  EXPECT_THAT(report.missing, ElementsAre("head.bias"));
  EXPECT_THAT(report.unexpected, ElementsAre("extra", "haed.bias"));
  EXPECT_EQ(report.mismatched.size(), 2U);
  EXPECT_EQ(session.state("norm.count"), Literal::integer(11));
  EXPECT_EQ(session.parameter("head.bias"), Literal::floats({2}, {0, 0}));
}

TEST(LoadWeights, prefixes_are_mapped_and_suggested) {
  Weights weights;
  for (const std::string& name : all_weights().names())
    weights.set("model." + name, all_weights().read(name));
  Session session = make_session();
  EXPECT_THAT(message_of<TypeError>([&] { session.load_weights(weights); }),
              HasSubstr("\nthe prefixes {\"model.\", \"\"} would fit 4 of them"));
  expect_untouched(session);
  session.load_weights(weights, {.prefixes = {{"model.embed.", "embed."}, {"model.", ""}}});
  expect_loaded(session);
  weights.set("norm.count", Literal::integer(2));
  EXPECT_EQ(
      message_of<TypeError>([&] { session.load_weights(weights, {.prefixes = {{"model.", ""}}}); }),
      "the weights: \"model.norm.count\" and \"norm.count\" are both \"norm.count\" in the "
      "model; see `prefixes`");
}

TEST(LoadWeights, skipped_names_keep_their_values_whatever_is_given) {
  Weights weights = all_weights();
  weights.set("head.bias", Literal::floats({1000}, std::vector<double>(1000)));
  weights.set("head.extra", Literal::integer(1));
  weights.erase("norm.count");
  Session session = make_session();
  session.set_parameter("head.bias", Literal::floats({2}, {3, 4}));
  const LoadWeightsReport report = session.load_weights(weights, {.skip = {"head.*", "*count"}});
  EXPECT_THAT(report.skipped, ElementsAre("head.bias", "head.extra", "norm.count"));
  EXPECT_EQ(session.parameter("head.bias"), Literal::floats({2}, {3, 4}));
  EXPECT_EQ(session.state("norm.count"), Literal::integer(0));
  EXPECT_EQ(session.parameter("embed.weight"), weights.read("embed.weight"));
}

TEST(LoadWeights, bookkeeping_of_other_frameworks_is_left_out) {
  Weights weights = all_weights();
  weights.set("norm.num_batches_tracked", Literal::integer(5));
  weights.set("layers.0.rotary_emb.inv_freq", Literal::floats({2}, {1, 2}));
  Session session = make_session();
  EXPECT_THAT(session.load_weights(weights).skipped,
              ElementsAre("layers.0.rotary_emb.inv_freq", "norm.num_batches_tracked"));
  EXPECT_THAT(message_of<TypeError>([&] { session.load_weights(weights, {.ignore = {}}); }),
              HasSubstr("2 unexpected:"));
}

// A model that ties its output to its embedding has one of the two names; files often have both.
TEST(LoadWeights, a_second_name_of_the_same_matrix_is_tied_and_another_matrix_is_not) {
  Weights weights = all_weights();
  weights.set("lm_head.weight", weights.read("embed.weight"));
  Session session = make_session();
  const LoadWeightsReport report = session.load_weights(weights);
  EXPECT_THAT(report.tied, ElementsAre("lm_head.weight: the same as embed.weight"));
  EXPECT_THAT(report.unexpected, IsEmpty());
  EXPECT_EQ(report.text(), "4 tensors loaded, 1 tied");
  weights.set("lm_head.weight", Literal::floats({2, 3}, {1, 2, 3, 4, 5, 7}));
  EXPECT_THAT(message_of<TypeError>([&] { session.load_weights(weights); }),
              HasSubstr("1 unexpected:\n  lm_head.weight"));
  // Equal by chance: vectors and constants.
  for (const Literal& value :
       {Literal::floats({2}, {0.5, -0.5}), Literal::floats({2, 3}, {1, 1, 1, 1, 1, 1})}) {
    weights = all_weights();
    weights.set("embed.weight", Literal::floats({2, 3}, {1, 1, 1, 1, 1, 1}));
    weights.set("lm_head.weight", value);
    EXPECT_THAT(session.load_weights(weights, {.strict = false}).unexpected,
                ElementsAre("lm_head.weight"));
  }
}

TEST(LoadWeights, floats_of_other_types_are_converted) {
  Session session = make_session();
  for (const DType dtype : {f16, bf16, f64}) {
    Weights weights = all_weights();
    weights.set("embed.weight",
                Literal::floats({2, 3}, {1, -0.0, 0.0999755859375, 6e-8, INFINITY, -2}, dtype));
    const LoadWeightsReport report = session.load_weights(weights);
    EXPECT_EQ(report.loaded.size(), 4U);
    const Literal stored = weights.read("embed.weight");
    std::vector<double> expected;
    for (const double value : stored.f())
      expected.push_back(static_cast<double>(static_cast<float>(value)));
    EXPECT_EQ(session.parameter("embed.weight"), Literal::floats({2, 3}, expected))
        << dtype_name(dtype);
  }
  Weights weights = all_weights();  // rounded to the nearest, ties to even
  weights.set("head.bias", Literal::floats({2}, {1 + 0x1p-24, 1 + 0x1.8p-23}, f64));
  session.load_weights(weights);
  EXPECT_EQ(session.parameter("head.bias"), Literal::floats({2}, {1, 1 + 0x1p-22}));
}

TEST(LoadWeights, equal_types_keep_the_bits_of_nans) {
  const std::vector<std::uint32_t> bits = {0x7F800001, 0xFFC12345};
  const auto* bytes = reinterpret_cast<const std::byte*>(bits.data());
  Weights weights = all_weights();
  weights.set("head.bias", {f32, {2}}, {bytes, bytes + 8});
  Session session = make_session();
  session.load_weights(weights);
  EXPECT_EQ(std::memcmp(session.weights().bytes("head.bias").data(), bytes, 8), 0);
}

TEST(LoadWeights, integers_are_taken_if_each_fits) {
  Graph graph;
  const Tensor state = graph.state("n", {2}, init::zeros(), i32);
  const Tensor flags = graph.state("flags", {2}, init::zeros(), boolean);
  graph.output("y", add(state, state));
  graph.output("z", logical_not(flags));
  Session session = build_inference_session(graph);
  Weights weights;
  weights.set("n", Literal::ints({2}, {-3, 1 << 20}, i64));
  weights.set("flags", {boolean, {2}}, {std::byte{0}, std::byte{2}});  // not as Pantala writes it
  session.load_weights(weights);
  EXPECT_EQ(session.state("n"), Literal::ints({2}, {-3, 1 << 20}, i32));
  EXPECT_EQ(session.weights().bytes("flags")[1], std::byte{1});
  weights.set("n", Literal::ints({2}, {5, std::int64_t{1} << 31}, i64));
  EXPECT_EQ(message_of<ValueError>([&] { session.load_weights(weights); }),
            "tensor 'n': 2147483648 at position 1 is not in [-2147483648, 2147483647]");
  EXPECT_EQ(session.state("n"), Literal::ints({2}, {-3, 1 << 20}, i32));
}

}  // namespace
}  // namespace pantala::load_weights_test
