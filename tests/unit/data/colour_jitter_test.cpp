// Random changes of colour and rotation: what they make of pixels, and what they depend on.
#include "data/colour_jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "data/rotate.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::data::colour_jitter_test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// Two pixels, channel by channel.
std::vector<float> two_pixels(std::array<float, 3> a, std::array<float, 3> b) {
  return {a[0], b[0], a[1], b[1], a[2], b[2]};
}
std::vector<float> changed(std::vector<float> pixels, const ColourChange& change,
                           std::int64_t channels = 3) {
  change_colours(pixels, channels, change);
  return pixels;
}

TEST(ColourChange, brightness_is_a_factor_that_ends_at_white) {
  EXPECT_THAT(changed(two_pixels({0.25F, 0.5F, 0}, {1, 0.75F, 0.5F}), {.brightness = 1.5}),
              ElementsAre(0.375F, 1, 0.75F, 1, 0, 0.75F));
}

TEST(ColourChange, contrast_is_about_the_mean_gray) {
  const std::vector<float> pixels = two_pixels({0.2F, 0.4F, 0.6F}, {0.8F, 0.6F, 0.4F});
  const float mean = (0.2989F * 1.0F + 0.587F * 1.0F + 0.114F * 1.0F) / 2;
  std::vector<float> expected;
  for (const float value : pixels) expected.push_back(0.5F * value + 0.5F * mean);
  EXPECT_THAT(changed(pixels, {.contrast = 0.5}), Pointwise(FloatNear(1e-6F), expected));
  EXPECT_THAT(changed({0.25F, 0.75F}, {.contrast = 0}, 1), ElementsAre(0.5F, 0.5F));
}

TEST(ColourChange, without_saturation_all_is_gray) {
  const float gray = 0.2989F * 0.2F + 0.587F * 0.4F + 0.114F * 0.6F;
  EXPECT_THAT(changed({0.2F, 0.4F, 0.6F}, {.saturation = 0}),
              Pointwise(FloatNear(1e-6F), std::vector<float>{gray, gray, gray}));
  EXPECT_THAT(changed({0.2F, 0.4F}, {.saturation = 0, .hue = 0.3}, 1), ElementsAre(0.2F, 0.4F));
}

// The numbers are those of Python's colorsys.
TEST(ColourChange, the_hue_turns) {
  EXPECT_THAT(changed({0.8F, 0.4F, 0.2F}, {.hue = 0.25}),
              Pointwise(FloatNear(1e-5F), std::vector<float>{0.3F, 0.8F, 0.2F}));
  EXPECT_THAT(changed({0.1F, 0.5F, 0.9F}, {.hue = -0.1}),
              Pointwise(FloatNear(1e-5F), std::vector<float>{0.1F, 0.9F, 0.82F}));
  EXPECT_THAT(changed({0.9F, 0.1F, 0.5F}, {.hue = 0.5}),
              Pointwise(FloatNear(1e-5F), std::vector<float>{0.1F, 0.9F, 0.5F}));
  EXPECT_THAT(changed({0.3F, 0.3F, 0.3F}, {.hue = 0.4}), ElementsAre(0.3F, 0.3F, 0.3F));
}

TEST(ColourChange, the_order_counts_and_all_of_them_occur) {
  std::set<std::array<int, 4>> orders;
  for (std::int64_t k = 0; k < 24; ++k) orders.insert(order_of_four(k));
  EXPECT_EQ(orders.size(), 24U);
  const std::vector<float> pixels = two_pixels({0.1F, 0.9F, 0.4F}, {0.7F, 0.2F, 0.6F});
  EXPECT_NE(changed(pixels, {.brightness = 1.5, .contrast = 0.5, .order = {0, 1, 2, 3}}),
            changed(pixels, {.brightness = 1.5, .contrast = 0.5, .order = {1, 0, 2, 3}}));
}

// --- as a transform
Dataset pictures(std::int64_t items) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(items * 3 * 4 * 4));
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(k * 37 % 251);
  return make_dataset({{items, 3, 4, 4}, bytes},
                      {{items}, std::vector<std::int64_t>(static_cast<std::size_t>(items))});
}
Array epoch_of(const Dataset& set, const Transform& transform, std::uint64_t epoch, int threads,
               std::int64_t batch) {
  const auto loader = make_loader(set, {.batch_size = batch,
                                        .shuffle = false,
                                        .seed = 3,
                                        .threads = threads,
                                        .transforms = {transform}});
  loader->shuffle(epoch);
  std::vector<std::uint8_t> all;
  while (const auto part = loader->next_batch()) {
    const auto& bytes = std::get<std::vector<std::uint8_t>>(part->data.values);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return {.shape = set.data->shape, .values = all};
}

TEST(ColourChange, draws_depend_on_seed_epoch_and_item_alone) {
  const Dataset set = pictures(12);
  for (const Transform& transform :
       {Transform(ColorJitter{0.4, 0.4, 0.4, 0.1}), Transform(RandomRotation{30})}) {
    const Array first = epoch_of(set, transform, 1, 0, 12);
    EXPECT_NE(first, *set.data);
    EXPECT_EQ(first, epoch_of(set, transform, 1, 3, 5));
    EXPECT_NE(first, epoch_of(set, transform, 2, 0, 12));
  }
}

TEST(ColourChange, none_leaves_every_byte) {
  const Dataset set = pictures(6);
  EXPECT_EQ(epoch_of(set, ColorJitter{}, 0, 0, 6), *set.data);
  EXPECT_EQ(epoch_of(set, RandomRotation{}, 0, 0, 6), *set.data);
}

TEST(ColourChange, brightness_lies_within_what_was_asked_for) {
  const Dataset set = make_dataset({{2000, 1, 1, 1}, std::vector<std::uint8_t>(2000, 100)},
                                   {{2000}, std::vector<std::int64_t>(2000)});
  const Array bright = epoch_of(set, ColorJitter{.brightness = 0.2}, 0, 0, 2000);
  const auto& bytes = std::get<std::vector<std::uint8_t>>(bright.values);
  const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
  EXPECT_EQ(*low, 80);
  EXPECT_EQ(*high, 120);
  EXPECT_NEAR(std::accumulate(bytes.begin(), bytes.end(), 0.0) / 2000, 100, 1.5);
}

TEST(ColourChange, says_what_it_cannot_change) {
  const auto refusal = [](const Array& data, const Transform& transform) {
    return tests::message_of<Error>([&] {
      make_loader(make_dataset(data, {{1}, std::vector<std::int64_t>(1)}),
                  {.threads = 0, .transforms = {transform}})
          ->next_batch();
    });
  };
  const Array bytes{{1, 3, 2, 2}, std::vector<std::uint8_t>(12)};
  EXPECT_EQ(
      refusal(bytes, ColorJitter{.hue = 0.7}),
      "color_jitter(brightness 0, contrast 0, saturation 0, hue 0.7): the hue must lie in [0, "
      "0.5]");
  EXPECT_EQ(
      refusal(bytes, ColorJitter{.contrast = -1}),
      "color_jitter(brightness 0, contrast -1, saturation 0, hue 0): brightness, contrast and "
      "saturation must be finite and not negative");
  EXPECT_EQ(refusal({{1, 2, 2, 2}, std::vector<std::uint8_t>(8)}, ColorJitter{}),
            "color_jitter(brightness 0, contrast 0, saturation 0, hue 0): needs images with 1 or 3 "
            "channels, of u8 or f32, not u8[2,2,2]");
  EXPECT_EQ(refusal({{1, 2, 2}, std::vector<float>(4, 2)}, ColorJitter{}),
            "color_jitter(brightness 0, contrast 0, saturation 0, hue 0): item 0 has the value 2; "
            "colours are bytes, or f32 from 0 to 1");
  EXPECT_EQ(refusal(bytes, RandomRotation{200}),
            "random_rotation(200): the degrees must lie in [0, 180]");
}

// --- rotation
std::vector<float> rotated(const std::vector<float>& image, std::int64_t height, std::int64_t width,
                           double degrees) {
  std::vector<float> out(image.size());
  rotate_images(f32, reinterpret_cast<const std::byte*>(image.data()), {1, height, width},
                degrees * std::acos(-1.0) / 180, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

TEST(Rotation, quarters_move_whole_pixels_counter_clockwise) {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_THAT(rotated(image, 3, 3, 90),
              Pointwise(FloatNear(1e-4F), std::vector<float>{3, 6, 9, 2, 5, 8, 1, 4, 7}));
  EXPECT_THAT(rotated(image, 3, 3, 180),
              Pointwise(FloatNear(1e-4F), std::vector<float>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(rotated(image, 3, 3, 0), image);
}

TEST(Rotation, between_pixels_is_bilinear_and_outside_is_0) {
  // The corners of the result come from beyond the image.
  const std::vector<float> turned = rotated(std::vector<float>(25, 1), 5, 5, 45);
  EXPECT_EQ(turned[12], 1);
  EXPECT_NEAR(turned[0], 0, 0.2);
  EXPECT_NEAR(turned[2], 1, 1e-6);
}

}  // namespace
}  // namespace pantala::data::colour_jitter_test
