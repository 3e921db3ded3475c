// Weights: tensors by name, in files of one part or of several, and as values that are copied.
#include "pantala/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/file.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::message_of;
namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
template <class T>
std::vector<std::byte> raw(std::vector<T> values) {
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  return {data, data + values.size() * sizeof(T)};
}
std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

class WeightsFiles : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static Weights three() {
    Weights weights;
    weights.set("a", Literal::floats({4}, {1, 2, 3, 4}));
    weights.set("b", Literal::floats({2, 2}, {5, 6, 7, 8}));
    weights.set("c", Literal::ints({4}, {1, 0, 1, 1}, boolean));
    return weights;
  }

  const tests::TemporaryFolder folder_{tests::Place::memory};
};

// Every dtype with the bits that conversions lose: payloads of NaNs, signalling ones, -0,
// subnormals, the ends of the ranges; scalars and empty tensors.
TEST_F(WeightsFiles, every_dtype_keeps_its_bits) {
  const std::vector<std::tuple<std::string, Type, std::vector<std::byte>>> tensors = {
      {"f64",
       {f64, {4}},
       raw<std::uint64_t>({0x7FF0000000000001, 0xFFF8DEADBEEF1234, 0x8000000000000000, 1})},
      {"f32", {f32, {2, 2}}, raw<std::uint32_t>({0x7F800001, 0xFFC12345, 0x80000000, 1})},
      {"f16", {f16, {4}}, raw<std::uint16_t>({0x7C01, 0xFE34, 0x8000, 1})},
      {"bf16", {bf16, {1, 4, 1}}, raw<std::uint16_t>({0x7F81, 0xFFC5, 0x8000, 1})},
      {"i64", {i64, {2}}, raw<std::int64_t>({INT64_MIN, INT64_MAX})},
      {"i32", {i32, {2}}, raw<std::int32_t>({INT32_MIN, INT32_MAX})},
      {"u8", {u8, {3}}, raw<std::uint8_t>({0, 127, 255})},
      {"bool", {boolean, {2}}, raw<std::uint8_t>({0, 1})},
      {"scalar", {f32, {}}, raw<float>({1.5F})},
      {"empty", {f16, {3, 0, 2}}, {}},
      {"rank 8", {u8, {1, 1, 1, 1, 1, 1, 1, 2}}, raw<std::uint8_t>({3, 4})},
      {"name: \"\\\n\xC3\xA4", {u8, {}}, raw<std::uint8_t>({9})},
  };
  Weights weights;
  for (const auto& [name, type, bytes] : tensors) weights.set(name, type, bytes);
  weights.set_metadata("format", "pt");
  weights.set_metadata("", "line\nbreak \xE2\x82\xAC");
  for (const std::uint64_t shard_bytes : {0, 1, 20}) {
    const fs::path path = folder_.path() / "all.safetensors";
    weights.save(path, {.max_shard_bytes = shard_bytes});
    const Weights back = Weights::open(path);
    EXPECT_EQ(back.names(), weights.names());
    EXPECT_EQ(back.metadata(), weights.metadata());
    for (const auto& [name, type, bytes] : tensors) {
      EXPECT_EQ(back.type(name), type) << name;
      EXPECT_EQ(copy(back.bytes(name)), bytes) << name;
    }
    EXPECT_TRUE(std::signbit(back.read("f16").at(2)));
    EXPECT_EQ(back.read("scalar"), Literal::scalar(1.5, f32));
    EXPECT_EQ(back.read("empty").numel(), 0);
  }
}

TEST_F(WeightsFiles, data_of_every_tensor_is_aligned_to_its_elements) {
  Weights weights;
  weights.set("a", {u8, {3}}, std::vector<std::byte>(3));
  weights.set("b", {f64, {1}}, std::vector<std::byte>(8));
  weights.set("c", {bf16, {1}}, std::vector<std::byte>(2));
  weights.set("d", {f32, {1}}, std::vector<std::byte>(4));
  weights.save(folder_.file("x.safetensors"));
  const Weights back = Weights::open(folder_.file("x.safetensors"));
  for (const std::string& name : back.names())
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.bytes(name).data()) %
                  static_cast<std::uintptr_t>(dtype_bytes(back.type(name).dtype)),
              0U)
        << name;
}

TEST_F(WeightsFiles, shards_are_filled_in_order_and_listed_by_an_index) {
  three().save(folder_.file("m.safetensors"), {.max_shard_bytes = 20});
  EXPECT_THAT(files(), ElementsAre("m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                   "m.safetensors.index.json"));
  EXPECT_EQ(io::read_file(folder_.file("m.safetensors.index.json")),
            R"({
  "metadata": {
    "total_size": 36
  },
  "weight_map": {
    "a": "m-00001-of-00002.safetensors",
    "b": "m-00002-of-00002.safetensors",
    "c": "m-00002-of-00002.safetensors"
  }
}
)");
  for (const char* name : {"m.safetensors", "m.safetensors.index.json", ""}) {
    const Weights back = Weights::open(folder_.path() / name);
    EXPECT_THAT(back.names(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(back.read("b"), three().read("b"));
    EXPECT_EQ(back.source(), folder_.file("m.safetensors.index.json"));
  }
}

TEST_F(WeightsFiles, a_save_removes_what_an_earlier_one_left) {
  const std::string path = folder_.file("model.safetensors");
  const std::string other = "model-1-of-2.safetensors", third = "other-00001-of-00002.safetensors";
  io::write_file(folder_.path() / other, "not a shard");
  io::write_file(folder_.path() / third, "another model's");
  three().save(path, {.max_shard_bytes = 1});
  EXPECT_EQ(files().size(), 4U + 2U);
  three().save(path, {.max_shard_bytes = 20});
  EXPECT_THAT(files(),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          other, "model.safetensors.index.json", third));
  three().save(folder_.path());
  EXPECT_THAT(files(), ElementsAre(other, "model.safetensors", third));
  three().save(folder_.path(), {.max_shard_bytes = 35});
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(Weights::open(folder_.path()).read("a"), three().read("a"));
  three().save(path, {.max_shard_bytes = 36});  // they fit one file
  EXPECT_THAT(files(), ElementsAre(other, "model.safetensors", third));
}

TEST_F(WeightsFiles, a_file_of_another_name_touches_no_model) {
  three().save(folder_.file("model.safetensors"), {.max_shard_bytes = 1});
  const std::vector<std::string> before = files();
  three().save(folder_.file("model"));
  EXPECT_EQ(files().size(), before.size() + 1);
  EXPECT_EQ(Weights::open(folder_.file("model")).read("a"), three().read("a"));
  EXPECT_THROW(three().save(folder_.file("model"), {.max_shard_bytes = 1}), TypeError);
}

TEST_F(WeightsFiles, a_folder_is_its_model) {
  const auto refused = [&] { return message_of<IoError>([&] { Weights::open(folder_.path()); }); };
  EXPECT_EQ(refused(), folder_.path().string() +
                           ": expected model.safetensors, model.safetensors.index.json, or one "
                           "file of either kind, found 0 other .safetensors files and no index");
  three().save(folder_.file("other.safetensors"));
  EXPECT_EQ(Weights::open(folder_.path()).source(), folder_.file("other.safetensors"));
  three().save(folder_.file("third.safetensors"));
  EXPECT_THAT(refused(), HasSubstr("found 2 other .safetensors files and no index"));
  three().save(folder_.file("parts.safetensors"), {.max_shard_bytes = 16});
  EXPECT_EQ(Weights::open(folder_.path()).source(), folder_.file("parts.safetensors.index.json"));
  three().save(folder_.file("model.safetensors"));
  EXPECT_EQ(Weights::open(folder_.path()).source(), folder_.file("model.safetensors"));
}

TEST_F(WeightsFiles, a_file_that_is_replaced_stays_what_it_was) {
  const std::string path = folder_.file("model.safetensors");
  three().save(path);
  const Weights before = Weights::open(path);
  const std::span<const std::byte> view = before.bytes("a");
  Weights changed = before;
  changed.set("a", Literal::floats({1}, {9}));
  changed.save(path);  // partly from the file that it replaces
  EXPECT_EQ(before.read("a"), three().read("a"));
  EXPECT_EQ(copy(view), copy(three().bytes("a")));
  EXPECT_EQ(Weights::open(path).read("a"), Literal::floats({1}, {9}));
  EXPECT_EQ(Weights::open(path).read("b"), three().read("b"));
  fs::remove(path);
  EXPECT_EQ(before.read("b"), three().read("b"));
}

TEST_F(WeightsFiles, a_file_that_is_cut_off_is_refused_instead_of_read) {
  const std::string path = folder_.file("model.safetensors");
  three().save(path);
  const Weights weights = Weights::open(path);
  const std::uintmax_t size = fs::file_size(path);
  fs::resize_file(path, 100);
  const std::string expected =
      path + ": the file had " + std::to_string(size) + " bytes when it was opened and has 100 now";
  EXPECT_EQ(message_of<IoError>([&] { weights.bytes("a"); }), expected);
  EXPECT_EQ(message_of<IoError>([&] { weights.read("b"); }), expected);
  EXPECT_EQ(message_of<IoError>([&] { weights.save(folder_.file("copy.safetensors")); }), expected);
  EXPECT_FALSE(fs::exists(folder_.file("copy.safetensors")));
}

TEST(Weights, copies_share_until_they_are_changed) {
  Weights a;
  a.set("x", Literal::floats({2}, {1, 2}));
  const Weights b = a;
  EXPECT_EQ(a.bytes("x").data(), b.bytes("x").data());
  a.set("x", Literal::floats({1}, {3}));
  a.set("y", Literal::integer(4));
  a.set_metadata("k", "v");
  EXPECT_EQ(b.read("x"), Literal::floats({2}, {1, 2}));
  EXPECT_THAT(b.names(), ElementsAre("x"));
  EXPECT_TRUE(b.metadata().empty());
  Weights c = a;
  c.rename("x", "z");
  c.erase("y");
  EXPECT_THAT(c.names(), ElementsAre("z"));
  EXPECT_THAT(a.names(), ElementsAre("x", "y"));
  EXPECT_EQ(c.bytes("z").data(), a.bytes("x").data());
}

TEST(Weights, names_and_sizes_are_checked) {
  Weights weights;
  EXPECT_FALSE(weights.contains("fc.weight"));
  weights.set("fc.weight", Literal::floats({2}, {1, 2}));
  weights.set("fc.bias", Literal::floats({1}, {1}));
  const std::string unknown =
      "the weights: there is no tensor \"fc.wieght\"; did you mean 'fc.weight'?";
  EXPECT_EQ(message_of<TypeError>([&] { weights.read("fc.wieght"); }), unknown);
  EXPECT_EQ(message_of<TypeError>([&] { weights.bytes("fc.wieght"); }), unknown);
  EXPECT_EQ(message_of<TypeError>([&] { weights.type("fc.wieght"); }), unknown);
  EXPECT_EQ(message_of<TypeError>([&] { weights.erase("fc.wieght"); }), unknown);
  EXPECT_EQ(message_of<TypeError>([&] { weights.rename("fc.wieght", "x"); }), unknown);
  EXPECT_EQ(message_of<TypeError>([&] { weights.rename("fc.weight", "fc.bias"); }),
            "the weights: \"fc.weight\" cannot be renamed to \"fc.bias\": there is one already");
  weights.rename("fc.bias", "fc.bias");
  EXPECT_EQ(message_of<TypeError>([&] { weights.set("x", {f32, {2}}, bytes_of("12345")); }),
            "weights: \"x\" f32[2] has 8 bytes, 5 were given");
  const tests::TemporaryFolder folder;
  weights.set("\xFF", Literal::integer(1));
  EXPECT_EQ(message_of<TypeError>([&] { weights.save(folder.file("x.safetensors")); }),
            "safetensors: a name or a text of the metadata is not valid UTF-8");
  weights.rename("\xFF", "__metadata__");
  EXPECT_EQ(message_of<TypeError>([&] { weights.save(folder.file("x.safetensors")); }),
            "safetensors: no tensor can be named \"__metadata__\"");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Weights, the_report_says_all_of_it_with_the_nearest_names) {
  LoadWeightsReport report;
  report.loaded = {"a"};
  EXPECT_TRUE(report.fits());
  EXPECT_EQ(report.text(), "1 tensor loaded");
  report.skipped = {"b", "c"};
  report.tied = {"lm_head.weight: the same as embed.weight"};
  report.missing = {"encoder.fc1.weight", "encoder.fc2.bias", "head.weight"};
  report.unexpected = {"fc1.weight", "fc2.bias", "haed.weight"};
  report.mismatched = {"fc3.bias: f32[2] in the model, f32[3] given"};
  EXPECT_FALSE(report.fits());
  EXPECT_EQ(report.text(),
            "1 tensor loaded, 2 skipped, 1 tied\n"
            "3 missing:\n"
            "  encoder.fc1.weight (given: fc1.weight?)\n"
            "  encoder.fc2.bias (given: fc2.bias?)\n"
            "  head.weight (given: haed.weight?)\n"
            "3 unexpected:\n"
            "  fc1.weight (in the model: encoder.fc1.weight?)\n"
            "  fc2.bias (in the model: encoder.fc2.bias?)\n"
            "  haed.weight (in the model: head.weight?)\n"
            "1 of another type:\n"
            "  fc3.bias: f32[2] in the model, f32[3] given\n"
            "the prefixes {\"\", \"encoder.\"} would fit 2 of them");
  report = {};
  for (int k = 100; k < 400; ++k) report.missing.push_back("layer." + std::to_string(k) + ".w");
  const std::string text = report.text();
  EXPECT_THAT(text, HasSubstr("\n300 missing:\n  layer.100.w\n"));
  EXPECT_THAT(text, testing::EndsWith("\n  layer.119.w\n  and 280 more"));
}

}  // namespace
}  // namespace pantala
