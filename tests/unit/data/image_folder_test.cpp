// Folders of images as data sets: what is found in them, that images are read when a batch wants
// them, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/images.h"
#include "support/temporary.h"

namespace pantala::data::image_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFolder : public testing::Test {
 protected:
  // A png or, by the name, a jpeg; all of one label and number differ in size.
  void put(const std::string& name, std::int64_t label = 0, std::int64_t number = 0) {
    const fs::path path = root_.path() / name;
    fs::create_directories(path.parent_path());
    const Shape shape{3, 10 + number, 12 + label};
    const auto pixels = tests::test_image(shape[1], shape[2], label, number);
    tests::put_file(path.string(), lower(name).ends_with("png") ? tests::png_file(shape, pixels)
                                                                : tests::jpeg_file(shape, pixels));
  }
  static std::string lower(std::string text) {
    for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
    return text;
  }
  static std::vector<std::string> names(const Dataset& set) {
    std::vector<std::string> all;
    for (std::int64_t k = 0; k < set.size(); ++k) all.push_back(set.data_source->item_name(k));
    return all;
  }
  static const std::vector<std::int64_t>& labels(const Dataset& set) {
    return std::get<std::vector<std::int64_t>>(set.labels->values);
  }
  std::string path(const std::string& name = "") const { return root_.file(name); }
  // What is thrown, without the folder's own name.
  template <class Error>
  std::string refusal(const std::function<void()>& work) const {
    std::string text = tests::message_of<Error>(work);
    for (std::size_t at; (at = text.find(root_.path().string())) != std::string::npos;)
      text.replace(at, root_.path().string().size(), "ROOT");
    return text;
  }

  tests::TemporaryFolder root_;
};

TEST_F(ImageFolder, classes_are_the_sorted_folders) {
  put("dog/b.png", 1);
  put("dog/a.JPG", 1);
  put("cat/deep/er/x.Jpeg", 0);
  put("cat/y.png", 0);
  put("cat/.hidden.png", 0);
  put(".cache/z.png", 0);
  tests::put_file(path("cat/notes.txt"), "no image");
  tests::put_file(path("README.md"), "no image");
  const Dataset set = read_image_folder(root_.path());
  EXPECT_EQ(set.name, root_.path().filename().string());
  EXPECT_THAT(set.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(names(set), ElementsAre("cat/deep/er/x.Jpeg", "cat/y.png", "dog/a.JPG", "dog/b.png"));
  EXPECT_THAT(labels(set), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(set.item_form(), (ItemForm{u8, {3, 0, 0}, true}));
  EXPECT_EQ(set.data_source->item(3), read_image(path("dog/b.png")));
  EXPECT_EQ(set.data_source->item(3).shape, (Shape{3, 10, 13}));
  EXPECT_EQ(read_image_folder(root_.path(), {.channels = 1}).data_source->item(0).shape,
            (Shape{1, 10, 12}));
  EXPECT_EQ(read_image_folder(path() + "/").name, set.name);
}

TEST_F(ImageFolder, train_and_validation) {
  put("train/cat/1.png");
  put("train/dog/2.png");
  put("train/eel/3.png");
  put("val/eel/4.png");
  put("val/cat/5.png");
  const ImageSets sets = read_image_sets(root_.path());
  EXPECT_THAT(sets.train.classes, ElementsAre("cat", "dog", "eel"));
  ASSERT_TRUE(sets.test);
  EXPECT_THAT(sets.test->classes, ElementsAre("cat", "dog", "eel"));
  EXPECT_THAT(labels(*sets.test), ElementsAre(0, 2));
  EXPECT_THAT(sets.test->name, HasSubstr(" (val)"));
  put("val/dgo/6.png");
  EXPECT_EQ(refusal<TypeError>([&] { read_image_sets(root_.path()); }),
            "ROOT/val: the folder \"dgo\" is none of the 3 classes; did you mean 'dog'?");
}

TEST_F(ImageFolder, without_train_all_is_one_set) {
  put("cat/1.png");
  put("train/2.png");
  const ImageSets sets = read_image_sets(root_.path());
  EXPECT_THAT(sets.train.classes, ElementsAre("cat", "train"));
  EXPECT_FALSE(sets.test);
}

TEST_F(ImageFolder, images_without_classes) {
  put("b.png");
  put("a/1.jpg");
  EXPECT_THAT(names(read_images(root_.path())), ElementsAre("a/1.jpg", "b.png"));
  const Dataset one = read_images(path("a/1.jpg"));
  EXPECT_THAT(names(one), ElementsAre(path("a/1.jpg")));
  const Dataset two = read_images(std::vector<fs::path>{path("b.png"), path("a/1.jpg")});
  EXPECT_THAT(names(two), ElementsAre(path("b.png"), path("a/1.jpg")));
  EXPECT_EQ(one.data_source->item(0).shape, (Shape{3, 10, 12}));
  EXPECT_THAT(labels(one), ElementsAre(0));
}

TEST_F(ImageFolder, what_is_no_folder_of_images_is_refused) {
  EXPECT_EQ(refusal<IoError>([&] { read_image_folder(path("none")); }),
            "ROOT/none: no such folder; expected one with a folder of images per class");
  EXPECT_EQ(refusal<TypeError>([&] { read_image_folder(root_.path()); }),
            "ROOT: there is no folder in it; expected one per class, with its images");
  EXPECT_EQ(refusal<TypeError>([&] { read_images(root_.path()); }),
            "ROOT: there is no image in this folder (files .png, .jpg, .jpeg)");
  EXPECT_EQ(refusal<IoError>([&] { read_images(path("none.png")); }),
            "ROOT/none.png: cannot open: No such file or directory");
  put("1.png");
  EXPECT_EQ(refusal<TypeError>([&] { read_image_folder(root_.path()); }),
            "ROOT: there is no folder in it, only images; expected one per class, with its images");
  put("cat/1.png");
  fs::create_directories(root_.path() / "dog");
  EXPECT_EQ(refusal<TypeError>([&] { read_image_folder(root_.path()); }),
            "ROOT/dog: there is no image in this folder (a class is a folder with files .png, "
            ".jpg, .jpeg)");
  tests::put_file(path("dog/1.webp"), "RIFF");
  EXPECT_EQ(refusal<UnsupportedError>([&] { read_image_folder(root_.path()); }),
            "ROOT/dog/1.webp: of the images only PNG and JPEG are read, by the extensions .png, "
            ".jpg, .jpeg");
  EXPECT_EQ(refusal<TypeError>([&] { read_image_folder(root_.path(), {.channels = 4}); }),
            "images: channels is 4; expected 1 (gray) or 3");
  fs::remove_all(root_.path() / "dog");
  fs::create_directory_symlink(root_.path() / "cat", root_.path() / "cat" / "again");
  EXPECT_THROW(read_image_folder(root_.path()), IoError);
}

TEST_F(ImageFolder, batches_are_the_same_for_any_number_of_threads_and_after_seek) {
  for (int k = 0; k < 23; ++k)
    put(fmt::format("{}/{}.{}", k % 3, k, k % 2 == 0 ? "png" : "jpg"), k % 3, k);
  const auto open = [&](int threads) {
    return make_loader(read_image_folder(root_.path()),
                       {.batch_size = 5,
                        .seed = 3,
                        .threads = threads,
                        .transforms = {RandomResizedCrop{8, 8}, RandomFlip{}, Scale{},
                                       Normalize{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}}});
  };
  const auto alone = open(0), together = open(3), later = open(2);
  for (const std::uint64_t epoch : {0, 1}) {
    alone->shuffle(epoch);
    together->shuffle(epoch);
    for (int batch = 0; batch < 5; ++batch) {
      const auto one = alone->next_batch(), other = together->next_batch();
      ASSERT_TRUE(one && other);
      EXPECT_EQ(one->data, other->data);
      EXPECT_EQ(one->labels, other->labels);
      later->seek(epoch, batch);
      EXPECT_EQ(later->next_batch()->data, one->data);
    }
    EXPECT_FALSE(alone->next_batch());
    EXPECT_FALSE(together->next_batch());
  }
  EXPECT_EQ(alone->fingerprint(), together->fingerprint());
}

TEST_F(ImageFolder, the_fingerprint_is_of_names_and_sizes) {
  put("a/1.png", 0, 1);
  put("b/2.png", 1, 2);
  const auto print = [&] {
    return make_loader(read_image_folder(root_.path()), {.transforms = {Resize{4, 4}}})
        ->fingerprint();
  };
  const std::string before = print();
  EXPECT_EQ(print(), before);
  put("b/2.png", 1, 9);
  const std::string changed = print();
  EXPECT_NE(changed, before);
  fs::rename(path("b/2.png"), path("b/3.png"));
  EXPECT_NE(print(), changed);
}

TEST_F(ImageFolder, a_damaged_image_is_named_by_the_batch_that_wants_it) {
  put("a/1.png");
  put("b/2.png");
  put("b/3.png");
  const Dataset set = read_image_folder(root_.path());
  tests::put_file(path("b/3.png"), "no image");
  const auto loader = make_loader(
      set, {.batch_size = 1, .shuffle = false, .threads = 2, .transforms = {Resize{4, 4}}});
  EXPECT_TRUE(loader->next_batch());
  EXPECT_TRUE(loader->next_batch());
  EXPECT_EQ(refusal<ParseError>([&] { loader->next_batch(); }),
            "ROOT/b/3.png: neither a PNG nor a JPEG image: it begins with 6e 6f 20 69");
}

}  // namespace
}  // namespace pantala::data::image_folder_test
