// Mistakes in the use of data sets, transforms and loaders, and the exact messages that answer
// them. Those in files stand with the tests of their formats.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::data {
namespace {

using tests::message_of;

// Three images [2,4,5], labels 0, 1, 5.
Dataset images() {
  return make_dataset({{3, 2, 4, 5}, std::vector<std::uint8_t>(120)},
                      {{3}, std::vector<std::int64_t>{0, 1, 5}}, "images");
}

TEST(DataErrors, datasets) {
  const auto make = [](Array data, Array labels) {
    return message_of<TypeError>([&] { make_dataset(std::move(data), std::move(labels), "toys"); });
  };
  EXPECT_EQ(make({{2, 2}, std::vector<float>(4)}, {{3}, std::vector<std::int32_t>(3)}),
            "data set 'toys': 2 items with 3 labels (data [2,2], labels [3])");
  EXPECT_EQ(make({{2, 2}, std::vector<float>(5)}, {{2}, std::vector<std::int32_t>(2)}),
            "data set 'toys': data: the shape [2,2] has 4 elements, but there are 5");
  EXPECT_EQ(make({{2, 2}, std::vector<float>(4)}, {{}, std::vector<std::int32_t>(1)}),
            "data set 'toys': labels: a scalar has no items; expected [items, ...]");
  Dataset empty;
  empty.name = "none";
  EXPECT_EQ(message_of<TypeError>([&] { make_loader(empty); }), "data set 'none': has no data");
  EXPECT_EQ(message_of<TypeError>([&] { slice(empty, 0, 0); }), "data set 'none': has no data");
  empty.data = images().data;
  EXPECT_EQ(message_of<TypeError>([&] { make_loader(empty); }), "data set 'none': has no labels");
}

TEST(DataErrors, parts) {
  const auto cut = [](std::int64_t first, std::int64_t count) {
    return message_of<TypeError>([&] { slice(images(), first, count); });
  };
  EXPECT_EQ(cut(1, 3), "slice: 3 items from item 1 on are not within the 3 of 'images'");
  EXPECT_EQ(cut(-1, 1), "slice: 1 items from item -1 on are not within the 3 of 'images'");
  EXPECT_EQ(cut(0, -1), "slice: -1 items from item 0 on are not within the 3 of 'images'");
  EXPECT_EQ(cut(std::numeric_limits<std::int64_t>::max(), 1),
            "slice: 1 items from item 9223372036854775807 on are not within the 3 of 'images'");
  EXPECT_EQ(message_of<TypeError>([] { split(images(), 4, 0); }),
            "split: 4 of the 3 items of 'images'");
  EXPECT_EQ(message_of<TypeError>([] { split(images(), -1, 0); }),
            "split: -1 of the 3 items of 'images'");
}

TEST(DataErrors, loader_options) {
  const auto make = [](const LoaderOptions& options) {
    return message_of<TypeError>([&] { make_loader(images(), options); });
  };
  EXPECT_EQ(make({.batch_size = 0}), "loader: batch_size is 0; expected 1 or more");
  EXPECT_EQ(make({.threads = -1}), "loader: -1 threads; expected 0 to 256");
  EXPECT_EQ(make({.threads = 1000}), "loader: 1000 threads; expected 0 to 256");
  EXPECT_EQ(make({.prefetch = 0}), "loader: prefetch is 0; expected 1 to 65536");
  EXPECT_EQ(message_of<TypeError>([] { make_loader(images())->seek(0, -2); }), "seek: -2 batches");
  // Sizes near the limits of integers are only large.
  EXPECT_EQ(make({.batch_size = std::numeric_limits<std::int64_t>::max()}), "no error");
}

TEST(DataErrors, batches) {
  const auto make = [](Array data, Array labels) {
    return message_of<TypeError>([&] { make_loader({Batch{std::move(data), std::move(labels)}}); });
  };
  EXPECT_EQ(make({{2}, std::vector<float>(2)}, {{1}, std::vector<float>(1)}),
            "batch 0: 2 items with 1 labels");
  EXPECT_EQ(make({{2}, std::vector<float>(3)}, {{2}, std::vector<float>(2)}),
            "batch 0: data: the shape [2] has 2 elements, but there are 3");
  EXPECT_EQ(make({{2}, std::vector<float>(2)}, {{}, std::vector<float>(1)}),
            "batch 0: labels: a scalar has no items; expected [items, ...]");
}

TEST(DataErrors, transforms) {
  const auto refusal = [](const Transform& transform) {
    return message_of<TypeError>([&] { item_type(images(), {transform}); });
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(Scale{kNan}), "scale(nan): the factor must be a finite f32");
  EXPECT_EQ(refusal(Scale{1e39}), "scale(1e+39): the factor must be a finite f32");
  EXPECT_EQ(refusal(Normalize{}),
            "normalize(mean [], std []): 0 means with 0 standard deviations; expected as many of "
            "one as of the other");
  EXPECT_EQ(refusal(Normalize{{1, 2, 3}, {1, 1, 1}}),
            "normalize(mean [1, 2, 3], std [1, 1, 1]): 3 channels, but an item is u8[2,4,5]; give "
            "one number or 2");
  EXPECT_EQ(refusal(Normalize{{0}, {0}}),
            "normalize(mean [0], std [0]): a standard deviation must be a finite f32 above 0");
  EXPECT_EQ(refusal(Normalize{{0}, {1e-60}}),
            "normalize(mean [0], std [1e-60]): a standard deviation must be a finite f32 above 0");
  EXPECT_EQ(refusal(Normalize{{kNan}, {1}}),
            "normalize(mean [nan], std [1]): a mean must be a finite f32");
  EXPECT_EQ(refusal(Reshape{{7, 6}}),
            "reshape([7,6]): 42 elements, but an item of u8[2,4,5] has 40");
  EXPECT_EQ(refusal(Reshape{{-1, 6}}), "reshape([-1,6]): an item of u8[2,4,5] does not fit");
  EXPECT_EQ(refusal(Reshape{{-1, 0}}), "reshape([-1,0]): an item of u8[2,4,5] does not fit");
  EXPECT_EQ(refusal(Reshape{{-1, -1}}), "reshape([-1,-1]): more than one -1");
  EXPECT_EQ(refusal(Reshape{{1, 1, 1, 1, 1, 1, 1, 40}}),
            "reshape([1,1,1,1,1,1,1,40]): an item has at most 7 axes");
  EXPECT_EQ(refusal(Pad{-1}), "pad(-1): expected 0 to 65536 pixels");
  EXPECT_EQ(refusal(Pad{65536}),
            "pad(65536): an item of [2,131076,131077] would be larger than 2 "
            "GiB");
  EXPECT_EQ(refusal(RandomCrop{5, 5}),
            "random_crop(5x5): the window must be at least 1x1 and fit into 4x5 (items are "
            "u8[2,4,5])");
  EXPECT_EQ(refusal(CenterCrop{0, 5}),
            "center_crop(0x5): the window must be at least 1x1 and fit into 4x5 (items are "
            "u8[2,4,5])");
  EXPECT_EQ(refusal(RandomFlip{1.5}), "random_flip(1.5): p must lie in [0, 1]");
  EXPECT_EQ(refusal(RandomFlip{kNan}), "random_flip(nan): p must lie in [0, 1]");
  EXPECT_EQ(refusal(OneHot{0}), "one_hot(0): expected 1 to 16777216 classes");
}

TEST(DataErrors, transforms_see_what_others_left) {
  const auto refusal = [](const std::vector<Transform>& transforms) {
    return message_of<TypeError>([&] { make_loader(images(), {.transforms = transforms}); });
  };
  EXPECT_EQ(refusal({Reshape{{-1}}, Pad{1}}),
            "pad(1): needs items of at least two axes, not u8[40]");
  EXPECT_EQ(refusal({CenterCrop{2, 2}, RandomCrop{3, 3}}),
            "random_crop(3x3): the window must be at least 1x1 and fit into 2x2 (items are "
            "u8[2,2,2])");
  EXPECT_EQ(refusal({OneHot{6}, OneHot{6}}), "one_hot(6): a second one");
}

TEST(DataErrors, one_hot_labels) {
  EXPECT_EQ(message_of<ValueError>([] { item_type(images(), {OneHot{5}}); }),
            "one_hot(5): the label of item 2 of 'images' is 5");
  const Dataset floats =
      make_dataset({{1, 1}, std::vector<float>(1)}, {{1, 1}, std::vector<float>(1)}, "floats");
  EXPECT_EQ(message_of<TypeError>([&] { item_type(floats, {OneHot{5}}); }),
            "one_hot(5): needs one integer a label, but the labels of 'floats' are f32[1,1]");
}

TEST(DataErrors, folders) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(message_of<IoError>([&] { read_idx_folder(folder.path() / "none"); }),
            folder.file("none") +
                ": no such folder; expected one with train-images-idx3-ubyte, "
                "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (or each "
                "with .gz)");
  EXPECT_EQ(message_of<IoError>([&] { read_idx_folder(folder.path()); }),
            folder.path().string() +
                ": there is no train-images-idx3-ubyte, no train-labels-idx1-ubyte, no "
                "t10k-images-idx3-ubyte, no t10k-labels-idx1-ubyte (nor with .gz) in this folder");
  tests::put_file(folder.file("train-images-idx3-ubyte"), tests::idx_head(8, {1, 1, 1}) + "x");
  tests::put_file(folder.file("train-labels-idx1-ubyte"), tests::idx_head(8, {2}) + "xy");
  tests::put_file(folder.file("t10k-images-idx3-ubyte"), "");
  tests::put_file(folder.file("t10k-labels-idx1-ubyte"), "");
  EXPECT_EQ(message_of<ParseError>([&] { read_idx_folder(folder.path()); }),
            folder.file("train-labels-idx1-ubyte") + ": 2 labels for the 1 images of " +
                folder.file("train-images-idx3-ubyte"));
}

}  // namespace
}  // namespace pantala::data
