// Data sets: made, cut, split, and read from IDX folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::data::dataset_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::idx_head;

// Items [k, 10 k], labels k.
Dataset counted_items(std::int64_t count) {
  std::vector<float> values;
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  std::iota(labels.begin(), labels.end(), 0);
  for (std::int64_t k = 0; k < count; ++k) {
    values.push_back(static_cast<float>(k));
    values.push_back(static_cast<float>(10 * k));
  }
  return make_dataset({{count, 2}, values}, {{count}, labels}, "counted");
}

std::vector<std::int64_t> labels_of(const Dataset& dataset) {
  return std::get<std::vector<std::int64_t>>(dataset.labels->values);
}
void expect_data_belong_to_labels(const Dataset& dataset) {
  const auto& values = std::get<std::vector<float>>(dataset.data->values);
  const std::vector<std::int64_t> labels = labels_of(dataset);
  for (std::size_t k = 0; k < labels.size(); ++k) {
    EXPECT_EQ(values[2 * k], static_cast<float>(labels[k]));
    EXPECT_EQ(values[2 * k + 1], static_cast<float>(10 * labels[k]));
  }
}

TEST(Array, knows_its_type_and_items) {
  const Array array{{3, 2, 2}, std::vector<std::uint8_t>(12)};
  EXPECT_EQ(array.dtype(), u8);
  EXPECT_EQ(array.items(), 3);
  EXPECT_EQ(array.item_shape(), (Shape{2, 2}));
  EXPECT_EQ(std::get<std::span<const std::uint8_t>>(array.elements()).size(), 12u);
  EXPECT_EQ((Array{{}, std::vector<float>(1)}).items(), 0);
}

TEST(Dataset, copies_share_the_arrays) {
  const Dataset dataset = counted_items(5), copy = dataset;
  EXPECT_EQ(copy.data.get(), dataset.data.get());
  EXPECT_EQ(dataset.size(), 5);
  EXPECT_EQ(Dataset{}.size(), 0);
}

TEST(Dataset, slice_takes_a_range) {
  Dataset dataset = counted_items(6);
  dataset.classes = {"a", "b"};
  const Dataset part = slice(dataset, 2, 3);
  EXPECT_THAT(labels_of(part), ElementsAre(2, 3, 4));
  expect_data_belong_to_labels(part);
  EXPECT_EQ(part.classes, dataset.classes);
  EXPECT_EQ(slice(dataset, 6, 0).size(), 0);
  EXPECT_EQ(slice(dataset, 0, 6).size(), 6);
}

TEST(Dataset, split_gives_every_item_to_one_of_two) {
  const Dataset dataset = counted_items(50);
  const auto [rest, chosen] = split(dataset, 20, 7);
  EXPECT_EQ(rest.size(), 30);
  EXPECT_EQ(chosen.size(), 20);
  expect_data_belong_to_labels(rest);
  expect_data_belong_to_labels(chosen);
  std::vector<std::int64_t> all = labels_of(rest);
  const std::vector<std::int64_t> other = labels_of(chosen);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_TRUE(std::is_sorted(other.begin(), other.end()));
  all.insert(all.end(), other.begin(), other.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, labels_of(dataset));
}

TEST(Dataset, split_depends_on_the_seed_alone) {
  const Dataset dataset = counted_items(50);
  EXPECT_EQ(labels_of(split(dataset, 20, 7).second), labels_of(split(dataset, 20, 7).second));
  EXPECT_NE(labels_of(split(dataset, 20, 7).second), labels_of(split(dataset, 20, 8).second));
  EXPECT_EQ(split(dataset, 0, 1).second.size(), 0);
  EXPECT_EQ(split(dataset, 50, 1).first.size(), 0);
}

TEST(Dataset, items_without_elements_are_items_too) {
  const Dataset dataset =
      make_dataset({{3, 0}, std::vector<float>{}}, {{3}, std::vector<std::uint8_t>{1, 2, 3}});
  EXPECT_EQ(slice(dataset, 1, 2).data->shape, (Shape{2, 0}));
}

// --- folders of IDX files
class IdxFolder : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) const {
    tests::put_file(folder_.file(name), content);
  }
  void put_all() const {
    put("train-images-idx3-ubyte", idx_head(8, {3, 2, 2}) + "abcdefghijkl");
    put("train-labels-idx1-ubyte.gz", tests::gzip(idx_head(8, {3}) + "\1\2\3"));
    put("t10k-images.idx3-ubyte", idx_head(8, {1, 2, 2}) + "wxyz");
    put("t10k-labels-idx1-ubyte", idx_head(8, {1}) + "\4");
  }
  const tests::TemporaryFolder folder_;
};

TEST_F(IdxFolder, files_may_be_plain_or_compressed) {
  put_all();
  const TrainTest sets = read_idx_folder(folder_.path());
  EXPECT_EQ(sets.train.data->shape, (Shape{3, 1, 2, 2}));
  EXPECT_EQ(sets.train.data->dtype(), u8);
  EXPECT_THAT(std::get<std::vector<std::uint8_t>>(sets.train.labels->values), ElementsAre(1, 2, 3));
  EXPECT_THAT(std::get<std::vector<std::uint8_t>>(sets.test.data->values),
              ElementsAre('w', 'x', 'y', 'z'));
}

TEST_F(IdxFolder, says_which_files_are_missing) {
  put_all();
  std::filesystem::remove(folder_.path() / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(tests::message_of<IoError>([&] { read_idx_folder(folder_.path()); }),
            folder_.path().string() +
                ": there is no t10k-labels-idx1-ubyte (nor with .gz) in this folder");
  EXPECT_THROW(read_idx_folder(folder_.path() / "nothing"), IoError);
}

TEST_F(IdxFolder, refuses_files_that_do_not_belong_together) {
  put_all();
  put("t10k-labels-idx1-ubyte", idx_head(8, {2}) + "\4\5");
  EXPECT_THROW(read_idx_folder(folder_.path()), ParseError);
  put("t10k-labels-idx1-ubyte", idx_head(8, {1, 1}) + "\4");
  EXPECT_THROW(read_idx_folder(folder_.path()), ParseError);
  put("t10k-labels-idx1-ubyte", idx_head(13, {1}) + std::string(4, '\0'));
  EXPECT_THROW(read_idx_folder(folder_.path()), ParseError);
  put_all();
  put("train-images-idx3-ubyte", idx_head(8, {3, 4}) + "abcdefghijkl");
  EXPECT_THROW(read_idx_folder(folder_.path()), ParseError);
}

// Sets an environment variable for a while.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    const char* old = std::getenv(name);
    if (old) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(IdxFolder, fashion_mnist_comes_from_the_folder_of_the_user) {
  std::filesystem::create_directories(folder_.path() / "fashion-mnist");
  put_all();
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    if (entry.is_regular_file())
      std::filesystem::copy(entry.path(), folder_.path() / "fashion-mnist");
  const Environment environment("PANTALA_DATA", folder_.path().string());
  const TrainTest sets = fashion_mnist();
  EXPECT_EQ(sets.train.size(), 3);
  EXPECT_EQ(sets.test.classes.size(), 10u);
  EXPECT_EQ(sets.train.name, "fashion-mnist (train)");
}

TEST(FashionMnist, is_where_debian_puts_it) {
  const TrainTest sets = fashion_mnist();
  EXPECT_EQ(sets.train.data->shape, (Shape{60000, 1, 28, 28}));
  EXPECT_EQ(sets.test.data->shape, (Shape{10000, 1, 28, 28}));
  EXPECT_THAT(sets.train.classes, testing::Contains("Ankle boot"));
  const auto& labels = std::get<std::vector<std::uint8_t>>(sets.train.labels->values);
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 9), 6000);
}

}  // namespace
}  // namespace pantala::data::dataset_test
