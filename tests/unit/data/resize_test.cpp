// Images brought to other sizes: against what Pillow and torchvision make of them
// (tests/fixtures/resize.json), for every element type, and for items of any size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::data::resize_test {
namespace {

using testing::ElementsAre;
using tests::message_of;

// The image that the recorded cases were made of.
std::vector<std::int64_t> pattern(std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t k = 0; k < count; ++k)
    values.push_back((k * k * 7 + k * 31 + k / 8 * 13) % 256);
  return values;
}

template <class Element>
Dataset one_image(const Shape& shape, const std::vector<std::int64_t>& values) {
  return make_dataset({shape.insert(0, 1), std::vector<Element>(values.begin(), values.end())},
                      {{1}, std::vector<std::int64_t>{0}});
}
template <class Element>
Dataset pattern_image(const Shape& shape) {
  return one_image<Element>(shape, pattern(shape.numel()));
}

Array transformed(const Dataset& dataset, const Transform& transform) {
  return make_loader(dataset, {.batch_size = dataset.size(),
                               .shuffle = false,
                               .threads = 0,
                               .transforms = {transform}})
      ->next_batch()
      ->data;
}
template <class Element>
const std::vector<Element>& values(const Array& array) {
  return std::get<std::vector<Element>>(array.values);
}

const io::Json& recorded() {
  static const io::Json json =
      io::read_json(std::filesystem::path(PANTALA_FIXTURES_DIR) / "resize.json");
  return json;
}

TEST(Resize, bytes_are_those_of_pillow) {
  int cases = 0;
  for (const io::Json& made : recorded().at("resize")) {
    const Shape shape{made.at("channels"), made.at("height"), made.at("width")};
    const Resize resize{made.at("to").at(0), made.at("to").at(1)};
    const Array result = transformed(pattern_image<std::uint8_t>(shape), resize);
    EXPECT_EQ(result.shape, (Shape{1, shape[0], resize.height, resize.width}));
    EXPECT_EQ(values<std::uint8_t>(result), made.at("u8").get<std::vector<std::uint8_t>>())
        << shape.str() << " to " << resize.height << "x" << resize.width;
    ++cases;
  }
  EXPECT_EQ(cases, 11);
}

TEST(Resize, floats_are_those_of_pillow) {
  for (const io::Json& made : recorded().at("resize")) {
    const auto expected = made.at("f32").get<std::vector<float>>();
    if (expected.empty()) continue;
    const Shape shape{made.at("channels"), made.at("height"), made.at("width")};
    const Resize resize{made.at("to").at(0), made.at("to").at(1)};
    const Array f32_result = transformed(pattern_image<float>(shape), resize),
                f64_result = transformed(pattern_image<double>(shape), resize),
                i32_result = transformed(pattern_image<std::int32_t>(shape), resize),
                i64_result = transformed(pattern_image<std::int64_t>(shape), resize);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(values<float>(f32_result)[k], expected[k], 1e-4) << shape.str() << " " << k;
      EXPECT_NEAR(values<double>(f64_result)[k], static_cast<double>(expected[k]), 1e-4);
      EXPECT_NEAR(values<std::int32_t>(i32_result)[k], expected[k], 1.01);  // rounded twice
      EXPECT_EQ(values<std::int32_t>(i32_result)[k], values<std::int64_t>(i64_result)[k]);
    }
  }
}

TEST(Resize, shorter_side_as_in_torchvision) {
  for (const io::Json& made : recorded().at("shorter_side")) {
    const Shape shape{1, made.at("height"), made.at("width")};
    const Array result =
        transformed(pattern_image<std::uint8_t>(shape), Resize{.height = made.at("size")});
    EXPECT_EQ(result.shape, (Shape{1, 1, made.at("to").at(0), made.at("to").at(1)}));
    const auto expected = made.at("u8").get<std::vector<std::uint8_t>>();
    if (!expected.empty()) { EXPECT_EQ(values<std::uint8_t>(result), expected) << shape.str(); }
  }
}

TEST(Resize, center_crop_rounds_its_margins_as_torchvision) {
  for (const io::Json& made : recorded().at("center_crop")) {
    const Shape shape{1, made.at("height"), made.at("width")};
    const Array result = transformed(pattern_image<std::uint8_t>(shape),
                                     CenterCrop{made.at("to").at(0), made.at("to").at(1)});
    EXPECT_EQ(values<std::uint8_t>(result), made.at("u8").get<std::vector<std::uint8_t>>())
        << shape.str();
  }
}

TEST(Resize, the_same_size_changes_nothing) {
  const Dataset dataset = pattern_image<std::uint8_t>({2, 5, 6});
  EXPECT_EQ(transformed(dataset, Resize{5, 6}), *dataset.data);
  EXPECT_EQ(transformed(dataset, Resize{5}), *dataset.data);
}

TEST(Resize, largest_integers_stay) {
  const std::vector<std::int64_t> largest(4, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(
      values<std::int64_t>(transformed(one_image<std::int64_t>({1, 2, 2}, largest), Resize{1, 1}))
          .front(),
      largest.front());
}

TEST(Channels, gray_as_pillow_has_it) {
  const io::Json& made = recorded().at("gray");
  const Shape shape{3, made.at("height"), made.at("width")};
  const auto expected = made.at("u8").get<std::vector<std::uint8_t>>();
  const Array result = transformed(pattern_image<std::uint8_t>(shape), Channels{1});
  EXPECT_EQ(result.shape, (Shape{1, 1, shape[1], shape[2]}));
  EXPECT_EQ(values<std::uint8_t>(result), expected);
  const Array floats = transformed(pattern_image<float>(shape), Channels{1});
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(values<float>(floats)[k], expected[k], 0.51);
}

TEST(Channels, one_becomes_many) {
  const Array result = transformed(pattern_image<float>({1, 1, 2}), Channels{3});
  EXPECT_EQ(result.shape, (Shape{1, 3, 1, 2}));
  EXPECT_THAT(values<float>(result), ElementsAre(0, 38, 0, 38, 0, 38));
  const Dataset three = pattern_image<float>({3, 1, 2});
  EXPECT_EQ(transformed(three, Channels{3}), *three.data);
}

TEST(RandomResizedCrop, gives_windows_of_the_allowed_areas_and_ratios) {
  // The mean of a window of the ramp row + 1000 column says where it is; its spread how large.
  std::vector<float> ramp;
  constexpr std::int64_t kItems = 400, kSide = 40;
  for (std::int64_t item = 0; item < kItems; ++item)
    for (std::int64_t row = 0; row < kSide; ++row)
      for (std::int64_t column = 0; column < kSide; ++column)
        ramp.push_back(static_cast<float>(row + 1000 * column));
  const Dataset dataset = make_dataset({{kItems, 1, kSide, kSide}, ramp},
                                       {{kItems}, std::vector<std::int64_t>(kItems)});
  const Array result =
      transformed(dataset, RandomResizedCrop{.height = 2, .width = 2, .min_area = 0.25});
  EXPECT_EQ(result.shape, (Shape{kItems, 1, 2, 2}));
  double smallest = 1e9, largest = 0;
  for (std::size_t item = 0; item < kItems; ++item) {
    const float* at = values<float>(result).data() + item * 4;
    // Two halves of a window of n pixels are n / 2 apart, and a little less at its borders.
    const double width = 2 * (at[1] - at[0]) / 1000.0, height = 2 * (at[2] - at[0]);
    EXPECT_GT(width / height, 3.0 / 4 * 0.85);
    EXPECT_LT(width / height, 4.0 / 3 * 1.15);
    smallest = std::min(smallest, width * height);
    largest = std::max(largest, width * height);
  }
  EXPECT_GT(smallest, 0.15 * kSide * kSide);
  EXPECT_LT(smallest, 0.35 * kSide * kSide);
  EXPECT_GT(largest, 0.5 * kSide * kSide);
}

TEST(RandomResizedCrop, takes_the_middle_when_nothing_else_fits) {
  // A row of 100 pixels: no window of an allowed ratio has half of its area.
  const Array result = transformed(
      pattern_image<std::uint8_t>({1, 1, 100}),
      RandomResizedCrop{.height = 1, .width = 1, .min_area = 0.5, .min_ratio = 1, .max_ratio = 1});
  EXPECT_THAT(values<std::uint8_t>(result), ElementsAre(pattern(100)[49]));
}

void expect_refused(const Shape& shape, const Transform& transform, const std::string& message) {
  EXPECT_EQ(
      message_of<TypeError>([&] { item_type(pattern_image<std::uint8_t>(shape), {transform}); }),
      message);
}

TEST(Resize, refuses_what_it_cannot_do) {
  expect_refused({3, 4, 4}, Resize{}, "resize(0): expected sides from 1 to 65536");
  expect_refused({3, 4, 4}, Resize{8, -1}, "resize(8x-1): expected sides from 1 to 65536");
  expect_refused({5}, Resize{8}, "resize(8): needs items of at least two axes, not u8[5]");
  expect_refused({3, 0, 4}, Resize{8}, "resize(8): the items are u8[3,0,4], without a pixel");
  expect_refused({1, 1, 60000}, Resize{60000},
                 "resize(60000): an item of [1,60000,3600000000] would be larger than 2 GiB");
  expect_refused({3, 4, 4}, RandomResizedCrop{4, 0},
                 "random_resized_crop(4x0, area 0.08 to 1, ratio 0.75 to 1.3333333333333333): "
                 "expected sides from 1 to 65536");
  expect_refused({3, 4, 4}, RandomResizedCrop{4, 4, 0.5, 0.25},
                 "random_resized_crop(4x4, area 0.5 to 0.25, ratio 0.75 to 1.3333333333333333): "
                 "the area must be a share of the image, above 0 and up to 1");
  expect_refused({2, 4, 4}, Channels{1},
                 "channels(1): one channel becomes any number of them, and three become one, but "
                 "the items are u8[2,4,4]");
  expect_refused({4, 4}, Channels{1},
                 "channels(1): needs items [channels, height, width], not u8[4,4]");
}

// Images of 3 channels; number k has k + 2 rows and 2 k + 3 columns, all of the value k.
class Growing : public ItemSource {
 public:
  std::int64_t items() const override { return 20; }
  ItemForm form() const override { return {u8, {3, 0, 0}, true}; }
  Array item(std::int64_t number) const override {
    const Shape shape{3, number + 2, 2 * number + 3};
    return {shape, std::vector<std::uint8_t>(static_cast<std::size_t>(shape.numel()),
                                             static_cast<std::uint8_t>(number))};
  }
  std::string item_name(std::int64_t number) const override {
    return "image " + std::to_string(number);
  }
  std::uint64_t hash() const override { return 7; }
};
Dataset growing() {
  std::vector<std::int64_t> labels(20);
  for (std::size_t k = 0; k < 20; ++k) labels[k] = static_cast<std::int64_t>(k);
  return make_dataset(std::make_shared<Growing>(), {{20}, labels}, "growing");
}

TEST(AnySize, resize_and_crop_make_batches) {
  const std::vector<Transform> transforms = {RandomFlip{},        Resize{8},    Pad{1},
                                             RandomCrop{8, 8},    Channels{1},  Scale{1},
                                             Normalize{{1}, {2}}, Reshape{{-1}}};
  EXPECT_EQ(item_type(growing(), transforms), (Type{f32, {64}}));
  const auto all = [&](int threads) {
    const auto loader =
        make_loader(growing(), {.batch_size = 6, .threads = threads, .transforms = transforms});
    std::vector<Batch> batches;
    while (auto batch = loader->next_batch()) batches.push_back(std::move(*batch));
    return batches;
  };
  const std::vector<Batch> alone = all(0), together = all(3);
  ASSERT_EQ(alone.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(alone[k].data, together[k].data);
    EXPECT_EQ(alone[k].labels, together[k].labels);
    for (std::int64_t item = 0; item < alone[k].items(); ++item)
      EXPECT_EQ(values<float>(alone[k].data)[static_cast<std::size_t>(item * 64 + 36)],
                (static_cast<float>(
                     values<std::int64_t>(alone[k].labels)[static_cast<std::size_t>(item)]) -
                 1) /
                    2);
  }
}

TEST(AnySize, slices_and_splits_keep_their_items) {
  const Dataset part = slice(growing(), 3, 2);
  EXPECT_EQ(part.size(), 2);
  const Array data = transformed(part, Resize{1, 1});
  EXPECT_THAT(values<std::uint8_t>(data), ElementsAre(3, 3, 3, 4, 4, 4));
  const auto [rest, held] = split(growing(), 5, 1);
  EXPECT_EQ(rest.size(), 15);
  EXPECT_EQ(held.size(), 5);
  const Array held_data = transformed(held, Resize{1, 1});
  for (std::size_t k = 0; k < 5; ++k)
    EXPECT_EQ(values<std::uint8_t>(held_data)[3 * k], values<std::int64_t>(*held.labels)[k]);
  const auto print = [](const Dataset& set) {
    return make_loader(set, {.transforms = {Resize{2, 2}}})->fingerprint();
  };
  EXPECT_EQ(print(part), print(slice(growing(), 3, 2)));
  EXPECT_NE(print(part), print(slice(growing(), 4, 2)));
}

TEST(AnySize, mistakes_are_found_early_or_name_the_item) {
  const auto message = [](const std::vector<Transform>& transforms) -> std::string {
    return message_of<TypeError>(
        [&] { make_loader(growing(), {.threads = 0, .transforms = transforms})->next_batch(); });
  };
  EXPECT_EQ(message({Resize{4}}),
            "data set 'growing': the items are u8[3,height,width], each of its own size; batches "
            "need one, as resize or crop to height x width gives it");
  EXPECT_EQ(message({Reshape{{-1}}}),
            "reshape([-1]): the items are u8[3,height,width]: of any size; resize or crop them "
            "first");
  EXPECT_THAT(message({CenterCrop{20, 20}}),
              testing::MatchesRegex("'image [0-9]+' of 'growing': center_crop\\(20x20\\): the "
                                    "window must be at least 1x1 and fit into [0-9]+x[0-9]+ "
                                    "\\(items are u8\\[3,[0-9]+,[0-9]+\\]\\)"));
  EXPECT_EQ(message({Normalize{{1, 2}, {1, 1}}, Resize{2, 2}}),
            "normalize(mean [1, 2], std [1, 1]): 2 channels, but an item is u8[3,height,width]; "
            "give one number or 3");
}

}  // namespace
}  // namespace pantala::data::resize_test
