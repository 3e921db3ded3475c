// Transforms: what they do to items and labels, and what random ones depend on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data::transforms_test {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::Pointwise;

// Elements 0, 1, 2, ... in items of `shape`; label k of item k.
template <class Element>
Dataset counting(std::int64_t items, const Shape& shape) {
  std::vector<Element> values(static_cast<std::size_t>(items * shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<Element>(k);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(items));
  std::iota(labels.begin(), labels.end(), 0);
  return make_dataset({shape.insert(0, items), values}, {{items}, labels});
}

Batch transformed(const Dataset& dataset, std::vector<Transform> transforms) {
  return *make_loader(dataset, {.batch_size = dataset.size(),
                                .shuffle = false,
                                .threads = 0,
                                .transforms = std::move(transforms)})
              ->next_batch();
}
template <class Element>
const std::vector<Element>& values(const Array& array) {
  return std::get<std::vector<Element>>(array.values);
}

TEST(Transforms, none_leaves_the_type_alone) {
  const Batch batch = transformed(counting<std::uint8_t>(2, {3}), {});
  EXPECT_EQ(batch.data.shape, (Shape{2, 3}));
  EXPECT_THAT(values<std::uint8_t>(batch.data), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<std::int32_t>(batch.labels), ElementsAre(0, 1));
}

TEST(Transforms, scale_of_every_type) {
  const auto check = [](const Dataset& dataset) {
    const Batch batch = transformed(dataset, {Scale{0.5}});
    EXPECT_THAT(values<float>(batch.data), ElementsAre(0, 0.5f, 1, 1.5f));
  };
  check(counting<float>(2, {2}));
  check(counting<double>(2, {2}));
  check(counting<std::int32_t>(2, {2}));
  check(counting<std::int64_t>(2, {2}));
  check(counting<std::uint8_t>(2, {2}));
}

TEST(Transforms, scale_is_a_product_in_f32) {
  const Batch batch = transformed(counting<std::uint8_t>(1, {256}), {Scale{}});
  for (int k = 0; k < 256; ++k)
    EXPECT_EQ(values<float>(batch.data)[static_cast<std::size_t>(k)],
              static_cast<float>(k) * static_cast<float>(1.0 / 255));
}

TEST(Transforms, normalize_by_one_or_by_channel) {
  const Dataset dataset = counting<float>(1, {2, 1, 2});
  EXPECT_THAT(values<float>(transformed(dataset, {Normalize{{1}, {2}}}).data),
              ElementsAre(-0.5f, 0, 0.5f, 1));
  EXPECT_THAT(values<float>(transformed(dataset, {Normalize{{1, 2}, {2, 4}}}).data),
              ElementsAre(-0.5f, 0, 0, 0.25f));
}

TEST(Transforms, scale_then_normalize) {
  const Batch batch =
      transformed(counting<std::uint8_t>(3, {1, 2, 2}), {Scale{0.25}, Normalize{{1}, {0.5}}});
  std::vector<float> expected;
  for (int k = 0; k < 12; ++k) expected.push_back((static_cast<float>(k) * 0.25F - 1.0F) / 0.5F);
  EXPECT_EQ(values<float>(batch.data), expected);
  EXPECT_EQ(batch.data.shape, (Shape{3, 1, 2, 2}));
}

TEST(Transforms, reshape_finds_the_open_size) {
  const Dataset dataset = counting<std::uint8_t>(2, {2, 3});
  EXPECT_EQ(transformed(dataset, {Reshape{{6}}}).data.shape, (Shape{2, 6}));
  EXPECT_EQ(transformed(dataset, {Reshape{{3, -1}}}).data.shape, (Shape{2, 3, 2}));
  const Batch batch = transformed(dataset, {Reshape{{-1}}, Scale{1}, Reshape{{1, 2, 3}}});
  EXPECT_EQ(batch.data.shape, (Shape{2, 1, 2, 3}));
  EXPECT_EQ(values<float>(batch.data)[11], 11);
}

TEST(Transforms, pad_puts_zeros_around) {
  const Batch batch = transformed(counting<std::int32_t>(2, {1, 1, 2}), {Pad{1}});
  EXPECT_EQ(batch.data.shape, (Shape{2, 1, 3, 4}));
  EXPECT_THAT(values<std::int32_t>(batch.data), ElementsAre(0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,  //
                                                            0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0));
}

TEST(Transforms, center_crop_takes_the_middle) {
  const Batch batch = transformed(counting<std::uint8_t>(1, {2, 3, 4}), {CenterCrop{1, 2}});
  EXPECT_EQ(batch.data.shape, (Shape{1, 2, 1, 2}));
  EXPECT_THAT(values<std::uint8_t>(batch.data), ElementsAre(5, 6, 17, 18));
}

TEST(Transforms, flip_always_and_never) {
  const Dataset dataset = counting<double>(2, {2, 3});
  EXPECT_THAT(values<double>(transformed(dataset, {RandomFlip{1}}).data),
              ElementsAre(2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9));
  EXPECT_EQ(transformed(dataset, {RandomFlip{0}}).data, *dataset.data);
  EXPECT_THAT(
      values<std::uint8_t>(transformed(counting<std::uint8_t>(1, {3}), {RandomFlip{1}}).data),
      ElementsAre(2, 1, 0));
  EXPECT_THAT(values<float>(transformed(counting<float>(1, {3}), {RandomFlip{1}}).data),
              ElementsAre(2, 1, 0));
}

TEST(Transforms, flip_happens_with_its_probability) {
  const Batch batch = transformed(counting<std::int64_t>(4000, {2}), {RandomFlip{0.25}});
  int flipped = 0;
  for (std::size_t k = 0; k < 4000; ++k)
    flipped +=
        values<std::int64_t>(batch.data)[2 * k] > values<std::int64_t>(batch.data)[2 * k + 1];
  EXPECT_NEAR(flipped, 1000, 100);  // 3.6 standard deviations
}

TEST(Transforms, random_crop_reaches_every_place_equally) {
  const Batch batch = transformed(counting<std::int64_t>(9000, {3, 3}), {RandomCrop{1, 1}});
  EXPECT_EQ(batch.data.shape, (Shape{9000, 1, 1}));
  std::map<std::int64_t, int> places;
  for (std::size_t k = 0; k < 9000; ++k)
    ++places[values<std::int64_t>(batch.data)[k] - static_cast<std::int64_t>(9 * k)];
  ASSERT_EQ(places.size(), 9u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 1000, 120) << place;
}

TEST(Transforms, crops_are_windows) {
  const Dataset dataset = counting<std::int32_t>(50, {2, 4, 5});
  const Batch batch = transformed(dataset, {RandomCrop{2, 3}});
  for (std::int64_t item = 0; item < 50; ++item) {
    const std::int32_t* window = values<std::int32_t>(batch.data).data() + item * 12;
    const std::int64_t corner = window[0] - item * 40;
    EXPECT_LT(corner / 5, 3);
    EXPECT_LT(corner % 5, 3);
    for (int channel = 0; channel < 2; ++channel)
      for (int row = 0; row < 2; ++row)
        for (int column = 0; column < 3; ++column)
          EXPECT_EQ(window[(channel * 2 + row) * 3 + column],
                    window[0] + channel * 20 + row * 5 + column);
  }
}

TEST(Transforms, random_ones_draw_from_seed_epoch_and_item) {
  const Dataset dataset = counting<std::uint8_t>(40, {1, 6, 6});
  const auto epoch_of = [&](std::uint64_t seed, std::uint64_t epoch, bool shuffle,
                            std::int64_t size) {
    const auto loader =
        make_loader(dataset, {.batch_size = size,
                              .shuffle = shuffle,
                              .seed = seed,
                              .threads = 0,
                              .transforms = {Pad{1}, RandomCrop{6, 6}, RandomFlip{}}});
    loader->shuffle(epoch);
    std::map<std::int32_t, std::vector<std::uint8_t>> items;
    while (const auto batch = loader->next_batch())
      for (std::size_t k = 0; k < static_cast<std::size_t>(batch->items()); ++k) {
        const auto& all = values<std::uint8_t>(batch->data);
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(36 * k);
        items[values<std::int32_t>(batch->labels)[k]] = {first, first + 36};
      }
    return items;
  };
  const auto items = epoch_of(1, 3, true, 8);
  EXPECT_EQ(items.size(), 40u);
  // Neither the order nor the batches matter.
  EXPECT_EQ(items, epoch_of(1, 3, false, 40));
  EXPECT_EQ(items, epoch_of(1, 3, true, 7));
  EXPECT_NE(items, epoch_of(1, 4, true, 8));
  EXPECT_NE(items, epoch_of(2, 3, true, 8));
}

TEST(Transforms, the_same_transform_twice_draws_twice) {
  // Two flips with p = 1/2 of their own leave an item alone, or not.
  const Dataset dataset = counting<std::int64_t>(200, {2});
  const Batch once = transformed(dataset, {RandomFlip{}});
  const Batch twice = transformed(dataset, {RandomFlip{}, RandomFlip{}});
  EXPECT_NE(twice.data, *dataset.data);
  EXPECT_NE(twice.data, once.data);
}

TEST(Transforms, one_hot_of_the_label) {
  const Batch batch = transformed(counting<float>(3, {1}), {OneHot{4}});
  EXPECT_EQ(batch.labels.shape, (Shape{3, 4}));
  EXPECT_THAT(values<float>(batch.labels), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0));
  EXPECT_EQ(batch.data.shape, (Shape{3, 1}));
}

TEST(Transforms, item_type_is_that_of_the_batches) {
  const Dataset dataset = counting<std::uint8_t>(2, {1, 4, 4});
  const std::vector<Transform> transforms = {Pad{2},  RandomCrop{5, 6}, RandomFlip{},
                                             Scale{}, Reshape{{-1}},    OneHot{2}};
  EXPECT_EQ(item_type(dataset, transforms), (Type{f32, {30}}));
  EXPECT_EQ(item_type(dataset, {}), (Type{u8, {1, 4, 4}}));
  EXPECT_EQ(transformed(dataset, transforms).data.shape, (Shape{2, 30}));
}

TEST(Transforms, items_without_elements) {
  const Dataset dataset = counting<float>(2, {0, 3, 3});
  EXPECT_EQ(transformed(dataset, {Pad{1}, RandomCrop{2, 2}, RandomFlip{1}, Scale{}}).data.shape,
            (Shape{2, 0, 2, 2}));
  // Around nothing there are only zeros.
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}}) {
    const Batch batch = transformed(counting<float>(1, shape),
                                    {Scale{}, Normalize{{1}, {1}}, RandomFlip{}, Pad{1}});
    EXPECT_EQ(batch.data.shape, (Shape{1, shape[0] + 2, shape[1] + 2}));
    EXPECT_EQ(values<float>(batch.data), std::vector<float>(10));
  }
}

}  // namespace
}  // namespace pantala::data::transforms_test
