// Helpers of src/base: names, globs, texts of numbers and strings, hashes.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/hash.h"
#include "base/philox.h"
#include "base/text.h"

namespace pantala {
namespace {

const std::vector<std::string> kNames = {"relu", "gelu", "softmax", "log_softmax", "sum"};

TEST(Nearest, finds_a_slip_of_one_or_two_letters) {
  EXPECT_EQ(nearest("rellu", kNames), "relu");
  EXPECT_EQ(nearest("relU", kNames), "relu");
  EXPECT_EQ(nearest("sofmtax", kNames), "softmax");
  EXPECT_EQ(nearest("sum", kNames), "sum");
}

TEST(Nearest, finds_nothing_for_another_word_an_empty_list_or_an_endless_name) {
  EXPECT_EQ(nearest("convolution", kNames), "");
  EXPECT_EQ(nearest("relu", {}), "");
  EXPECT_EQ(nearest(std::string(100000, 'r'), kNames), "");
}

TEST(Nearest, prefers_the_nearer_and_of_equals_the_first) {
  EXPECT_EQ(nearest("gelu2", kNames), "gelu");
  EXPECT_EQ(nearest("celu", kNames), "relu");
  const std::vector<std::string> names = {"elu", "relu"};
  EXPECT_EQ(nearest("rleu", names), "relu");  // an exchange is one slip
}

TEST(Nearest, is_never_the_opposite) {
  const std::vector<std::string> names = {"model.fresh", "--fresh"};
  for (const char* name : {"model.freeze", "model.frozen", "--freeze"})
    EXPECT_EQ(nearest(name, names), "") << name;
  EXPECT_EQ(nearest("model.frehs", names), "model.fresh");
}

TEST(DidYouMean, is_a_phrase_or_empty) {
  EXPECT_EQ(did_you_mean("rellu", kNames), "; did you mean 'relu'?");
  EXPECT_EQ(did_you_mean("convolution", kNames), "");
}

TEST(Glob, matches_stars_and_question_marks) {
  EXPECT_TRUE(glob_match("*.weight", "fc1.weight"));
  EXPECT_TRUE(glob_match("layer?.*.bias", "layer3.0.conv1.bias"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a*b*c", "aXbXbc"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("**a", "ba"));
}

TEST(Glob, must_match_the_whole_text) {
  EXPECT_FALSE(glob_match("fc1", "fc1.weight"));
  EXPECT_FALSE(glob_match("*.weight", "fc1.weight2"));
  EXPECT_FALSE(glob_match("a?", "a"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("[ab]", "a"));  // no classes: brackets are plain characters
}

TEST(Exact, is_the_shortest_text_that_reads_back) {
  EXPECT_EQ(exact(0.1), "0.1");
  EXPECT_EQ(exact(1), "1");
  EXPECT_EQ(exact(0.0), "0");
  EXPECT_EQ(exact(-0.0), "-0");
  EXPECT_EQ(exact(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(exact(INFINITY), "inf");
  EXPECT_EQ(exact(-INFINITY), "-inf");
  EXPECT_EQ(exact(NAN), "nan");
  EXPECT_EQ(exact(-NAN), "nan");
}

TEST(Exact, reads_back_to_the_same_bits) {
  std::vector<double> values = {5e-324,
                                -5e-324,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::min(),
                                0x1p53 + 2,
                                1e22,
                                123456789012345680.0,
                                -0.0};
  for (std::uint64_t k = 1; k < 2000; ++k) values.push_back(std::bit_cast<double>(mix64(k)));
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const std::string text = exact(value);
    double read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    EXPECT_EQ(error, std::errc{}) << text;
    EXPECT_EQ(end, text.data() + text.size()) << text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(value)) << text;
  }
}

TEST(Quoted, escapes_quotes_backslashes_and_control_characters) {
  EXPECT_EQ(in_quotes("fc1.weight"), "\"fc1.weight\"");
  EXPECT_EQ(in_quotes("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(in_quotes("a\nb\t"), "\"a\\x0ab\\x09\"");
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "\"\\x00\"");
  EXPECT_EQ(in_quotes("größe"), "\"größe\"");
}

TEST(Counted, has_a_plural) {
  EXPECT_EQ(counted(1, "input"), "1 input");
  EXPECT_EQ(counted(0, "input"), "0 inputs");
}

TEST(BaseName, is_what_follows_the_last_slash) {
  EXPECT_EQ(base_name("/a/b/net.cpp"), "net.cpp");
  EXPECT_EQ(base_name("net.cpp"), "net.cpp");
}

TEST(Hash, is_the_same_on_every_machine) {
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325u);
  EXPECT_EQ(fnv1a("a"), 0xAF63DC4C8601EC8Cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171F73967E8u);
  EXPECT_EQ(mix64(0), 0u);
}

TEST(Hash, depends_on_order_and_spreads) {
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 100; ++a)
    for (std::uint64_t b = 0; b < 100; ++b) seen.insert(hash_combine(a, b));
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(Hash, tells_zeros_apart_but_not_nans) {
  EXPECT_NE(hash_double(0.0), hash_double(-0.0));
  EXPECT_EQ(hash_double(NAN), hash_double(-NAN));
  EXPECT_EQ(hash_double(NAN),
            hash_double(std::bit_cast<double>(std::uint64_t{0x7FF8000000000123})));
  EXPECT_NE(hash_double(INFINITY), hash_double(-INFINITY));
}

// The known answers of the reference implementation of Philox4x32-10 (Random123's kat_vectors).
TEST(Philox, gives_the_known_answers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox4x32({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {0xFFFFFFFF, 0xFFFFFFFF}),
            (PhiloxBlock{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (PhiloxBlock{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Philox, elements_are_lanes_of_blocks) {
  const PhiloxBlock block = philox4x32({1, 7, 5, 0}, {3, 0});
  for (std::uint64_t lane = 0; lane < 4; ++lane)
    EXPECT_EQ(random_bits(3, 5, 7, 4 + lane), block[lane]);
}

TEST(Philox, many_at_once_are_the_same) {
  const std::uint64_t far = (std::uint64_t{1} << 34) - 3;  // the block number outgrows 32 bits
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3}, far}) {
    std::array<std::uint32_t, 700> bits{};  // also where they are drawn in vectors
    random_bits(3, 5, 7, first, bits);
    for (std::size_t k = 0; k < bits.size(); ++k)
      EXPECT_EQ(bits[k], random_bits(3, 5, 7, first + k)) << first << "+" << k;
  }
}

}  // namespace
}  // namespace pantala
