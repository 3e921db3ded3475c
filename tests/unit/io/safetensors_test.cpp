// The safetensors reader on good files and on hostile ones: every one of those ends in a typed
// error that names the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/file.h"
#include "pantala/error.h"
#include "pantala/weights.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;

class SafeTensors : public testing::Test {
 protected:
  static std::string bytes_of(std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), 8);
  }
  std::filesystem::path write(const std::string& name, const std::string& header,
                              const std::string& data) const {
    write_file(folder_ / name, bytes_of(header.size()) + header + data);
    return folder_ / name;
  }
  // The message with which a file of this header and so many bytes of data is refused.
  std::string refusal(const std::string& header, std::size_t data_bytes) const {
    const std::filesystem::path path =
        write("bad.safetensors", header, std::string(data_bytes, '\0'));
    std::string message = message_of<ParseError>([&] { Weights::open(path); });
    EXPECT_THAT(message, testing::StartsWith(path.string() + ": "));
    return message;
  }

  const tests::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

template <class T>
std::string raw(std::vector<T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST_F(SafeTensors, reads_every_dtype) {
  const std::string data = raw<double>({0.1, -2}) + raw<float>({1.5f}) +
                           raw<std::uint16_t>({0x3C00, 0xC000, 0x0001, 0x7C00, 0x7E00}) +
                           raw<std::uint16_t>({0x3FC0}) + raw<std::int64_t>({-5}) +
                           raw<std::int32_t>({-7}) + raw<std::uint8_t>({255}) +
                           raw<std::uint8_t>({1, 0, 2});
  const Weights file = Weights::open(write(
      "all.safetensors",
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},)"
      R"("c":{"dtype":"F16","shape":[5],"data_offsets":[20,30]},"d":{"dtype":"BF16","shape":[1,1],"data_offsets":[30,32]},)"
      R"("e":{"dtype":"I64","shape":[],"data_offsets":[32,40]},"f":{"dtype":"I32","shape":[1],"data_offsets":[40,44]},)"
      R"("g":{"dtype":"U8","shape":[1],"data_offsets":[44,45]},"h":{"dtype":"BOOL","shape":[3],"data_offsets":[45,48]},)"
      R"("i":{"dtype":"F32","shape":[0,3],"data_offsets":[48,48]}})",
      data));
  EXPECT_THAT(file.names(), ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.read("a"), Literal::floats({2}, {0.1, -2}, f64));
  EXPECT_EQ(file.read("b"), Literal::floats({1}, {1.5}, f32));
  const Literal half = file.read("c");
  EXPECT_EQ(half.dtype(), f16);
  EXPECT_THAT(half.f().first(4), ElementsAre(1.0, -2.0, std::ldexp(1.0, -24), HUGE_VAL));
  EXPECT_TRUE(std::isnan(half.at(4)));
  EXPECT_EQ(file.read("d"), Literal::floats({1, 1}, {1.5}, bf16));
  EXPECT_EQ(file.read("e"), Literal::ints({}, {-5}, i64));
  EXPECT_EQ(file.read("f"), Literal::ints({1}, {-7}, i32));
  EXPECT_EQ(file.read("g"), Literal::ints({1}, {255}, u8));
  EXPECT_EQ(file.read("h"), Literal::ints({3}, {1, 0, 1}, boolean));
  EXPECT_EQ(file.type("i"), (Type{f32, {0, 3}}));
  EXPECT_EQ(file.read("i").numel(), 0);
}

TEST_F(SafeTensors, widens_integers_that_pantala_does_not_have) {
  // The first tensor has one byte, so that the others are not aligned.
  const std::string data = raw<std::int8_t>({-128}) + raw<std::int16_t>({-32768, 32767}) +
                           raw<std::uint16_t>({65535}) + raw<std::uint32_t>({4294967295U, 0}) +
                           raw<std::uint64_t>({7, (std::uint64_t{1} << 63) - 1});
  const auto path = write(
      "narrow.safetensors",
      R"({"a":{"dtype":"I8","shape":[],"data_offsets":[0,1]},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[1,5]},)"
      R"("c":{"dtype":"U16","shape":[1],"data_offsets":[5,7]},"d":{"dtype":"U32","shape":[2],"data_offsets":[7,15]},)"
      R"("e":{"dtype":"U64","shape":[2],"data_offsets":[15,31]},"f":{"dtype":"U64","shape":[0],"data_offsets":[31,31]}})",
      data);
  const Weights file = Weights::open(path);
  EXPECT_EQ(file.read("a"), Literal::ints({}, {-128}, i32));
  EXPECT_EQ(file.read("b"), Literal::ints({2, 1}, {-32768, 32767}, i32));
  EXPECT_EQ(file.read("c"), Literal::ints({1}, {65535}, i32));
  EXPECT_EQ(file.read("d"), Literal::ints({2}, {4294967295, 0}, i64));
  EXPECT_EQ(file.read("e"), Literal::ints({2}, {7, std::numeric_limits<std::int64_t>::max()}, i64));
  EXPECT_EQ(file.type("f"), (Type{i64, {0}}));
  EXPECT_EQ(file.bytes("b").size(), 8u);

  const auto copy = folder_ / "copy.safetensors";
  file.save(copy);
  const Weights again = Weights::open(copy);
  for (const std::string& name : file.names()) EXPECT_EQ(again.read(name), file.read(name)) << name;
}

TEST_F(SafeTensors, a_number_beyond_i64_is_named) {
  const auto path =
      write("large.safetensors", R"({"ids":{"dtype":"U64","shape":[2],"data_offsets":[0,16]}})",
            raw<std::uint64_t>({1, std::uint64_t{1} << 63}));
  EXPECT_EQ(message_of<UnsupportedError>([&] { Weights::open(path); }),
            path.string() +
                ": tensor \"ids\": element 1 is 9223372036854775808; U64 is read as i64, "
                "which ends below 2^63");
}

TEST_F(SafeTensors, unknown_tensor_gets_the_nearest_name) {
  const Weights file = Weights::open(write(
      "one.safetensors", R"({"weight":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x"));
  EXPECT_FALSE(file.contains("wieght"));
  EXPECT_THAT(message_of<TypeError>([&] { file.read("wieght"); }),
              HasSubstr("did you mean 'weight'?"));
}

TEST_F(SafeTensors, header_length_is_checked_against_the_file) {
  const auto path = folder_ / "length.safetensors";
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    write_file(path, bytes_of(length) + "{}");
    EXPECT_THROW(Weights::open(path), ParseError) << length;
  }
  write_file(path, "short");
  EXPECT_THROW(Weights::open(path), ParseError);
}

TEST_F(SafeTensors, refuses_what_is_not_a_header) {
  EXPECT_THAT(refusal("", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\":", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]", 0), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("{\"a\":1}", 0), HasSubstr("tensor \"a\""));
  EXPECT_THAT(refusal("{\"\xff\":1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(std::string(100'000, '['), 0), HasSubstr("nested deeper than"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__"));
}

TEST_F(SafeTensors, refuses_bad_entries) {
  const auto entry = [&](const std::string& fields, std::size_t bytes) {
    return refusal("{\"w\":{" + fields + "}}", bytes);
  };
  EXPECT_THAT(entry(R"("shape":[],"data_offsets":[0,4])", 4), HasSubstr("'dtype' not found"));
  EXPECT_THAT(entry(R"("dtype":"F33","shape":[],"data_offsets":[0,4])", 4),
              HasSubstr("unknown dtype \"F33\""));
  EXPECT_THAT(entry(R"("dtype":7,"shape":[],"data_offsets":[0,4])", 4),
              HasSubstr("must be string"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":4,"data_offsets":[0,4])", 4),
              HasSubstr("tensor \"w\""));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4),
              HasSubstr("found -1"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", 4),
              HasSubstr("found 1.0"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])", 4),
              HasSubstr("below 2^62"));
  EXPECT_THAT(
      entry(R"("dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4])", 4),
      HasSubstr("tensor \"w\""));
  EXPECT_THAT(entry(R"("dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0])", 0),
              HasSubstr("does not fit"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])", 4),
              HasSubstr("tensor \"w\""));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
              HasSubstr("does not fit its 4 bytes"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", 4),
              HasSubstr("not within the 4 bytes"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4),
              HasSubstr("not within the 4 bytes"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", 4),
              HasSubstr("two whole numbers"));
  EXPECT_THAT(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0])", 4),
              HasSubstr("two whole numbers"));
}

TEST_F(SafeTensors, refuses_overlaps_holes_and_repetitions) {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
              HasSubstr("tensors overlap"));
  EXPECT_THAT(refusal("{" + a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", 6),
              HasSubstr("no tensor owns"));
  EXPECT_THAT(refusal("{" + a + "}", 5), HasSubstr("5 bytes of data, but the header describes 4"));
  EXPECT_THAT(refusal("{" + a + "," + a + "}", 4), HasSubstr("the key \"a\" appears twice"));
}

TEST_F(SafeTensors, lists_all_dtypes_that_are_not_supported) {
  const auto path = write(
      "new.safetensors",
      R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[2,3]}})",
      "123");
  EXPECT_THAT(message_of<UnsupportedError>([&] { Weights::open(path); }),
              HasSubstr("a (F8_E4M3), b (F8_E5M2)"));
}

TEST_F(SafeTensors, missing_file_and_folder_are_io_errors) {
  EXPECT_THROW(Weights::open(folder_ / "nothing.safetensors"), IoError);
  EXPECT_THROW(Weights::open(folder_), IoError);
}

TEST_F(SafeTensors, reads_shards_by_their_index) {
  write("m-1.safetensors", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\x01");
  write("m-2.safetensors", R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\x02");
  write_file(folder_ / "m.safetensors.index.json",
             R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  for (const char* name : {"m.safetensors", "m.safetensors.index.json"}) {
    const Weights model = Weights::open(folder_ / name);
    EXPECT_THAT(model.names(), ElementsAre("a", "b"));
    EXPECT_EQ(model.read("b"), Literal::ints({1}, {2}, u8));
  }
}

TEST_F(SafeTensors, refuses_bad_indices) {
  write("m-1.safetensors", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\x01");
  write(
      "m-2.safetensors",
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      "\x02\x03");
  const auto path = folder_ / "m.safetensors.index.json";
  const auto refused = [&](const std::string& text, const std::string& why) {
    write_file(path, text);
    const std::string message = message_of<ParseError>([&] { Weights::open(path); });
    EXPECT_NE(message, "no error") << text;
    EXPECT_THAT(message, HasSubstr(why));
  };
  refused("{}", "weight_map");
  refused("[]", "");
  refused(R"({"weight_map":{"a":1}})", "must be string");
  refused(R"({"weight_map":{"z":"m-1.safetensors"}})",
          "tensor \"z\" is not in \"m-1.safetensors\"");
  refused(R"({"weight_map":{"a":"../m-1.safetensors"}})", "in the same folder");
  refused(R"({"weight_map":{"a":"/etc/passwd"}})", "in the same folder");
  refused(R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})",
          "in another file of the model too");
  write_file(path, R"({"weight_map":{"a":"m-9.safetensors"}})");
  EXPECT_THROW(Weights::open(path), IoError);
}

// Any damage is either harmless or a typed error.
TEST_F(SafeTensors, survives_random_damage) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";
  const std::string good = bytes_of(header.size()) + header + std::string(32, 'x');
  std::uint64_t state = 1;
  const auto next = [&state](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  const auto path = folder_ / "damaged.safetensors";
  for (int k = 0; k < 2000; ++k) {
    std::string bad = good;
    for (std::uint64_t edits = 1 + next(3); edits > 0; --edits)
      bad[next(bad.size())] = static_cast<char>(next(256));
    if (next(4) == 0) bad.resize(next(bad.size()));
    std::FILE* out = std::fopen(path.c_str(), "wb");
    std::fwrite(bad.data(), 1, bad.size(), out);
    std::fclose(out);
    try {
      const Weights file = Weights::open(path);
      for (const std::string& name : file.names()) file.read(name);
    } catch (const InternalError& error) { FAIL() << error.what(); } catch (const Error&) {
    }
  }
}

TEST_F(SafeTensors, writes_replace_the_whole_file_and_leave_nothing_behind) {
  write_file(folder_ / "text", "a longer first content");
  write_file(folder_ / "text", "second");
  EXPECT_EQ(read_file(folder_ / "text"), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write_file(folder_ / "missing" / "text", "x"), IoError);
  EXPECT_THROW(write_file(folder_, "x"), IoError);
  EXPECT_THROW(read_file(folder_ / "text", 5), IoError);
  EXPECT_EQ(read_file(folder_ / "text", 6), "second");
}

}  // namespace
}  // namespace pantala::io
