// Folders of images from end to end: training, going on after an interruption, evaluation and
// prediction.
#include "support/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "support/data_files.h"

namespace pantala::tests::images_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class Images : public TrainingTest {
 protected:
  Images() {
    for (int k = 0; k < 24; ++k) put("train", k);
    for (int k = 24; k < 30; ++k) put("val", k);
  }
  // Of two classes, in two formats and many sizes.
  void put(const std::string& part, int k) {
    const char* kind = k % 2 == 0 ? "dark" : "light";
    const fs::path folder = fs::path(file("pictures")) / part / kind;
    fs::create_directories(folder);
    const Shape shape{3, 20 + k % 5, 18 + k % 7};
    const auto pixels = test_image(shape[1], shape[2], k % 2, k);
    const bool png = k % 3 != 0;
    put_file((folder / (std::to_string(k) + (png ? ".png" : ".JPG"))).string(),
             png ? png_file(shape, pixels) : jpeg_file(shape, pixels));
  }
  std::string pictures() const { return "images:" + file("pictures"); }
  std::vector<std::string> train_images(const std::string& out, std::vector<std::string> more = {},
                                        const std::string& source = "") const {
    std::vector<std::string> words = {"train",
                                      "--model",
                                      "lenet",
                                      "--data",
                                      source.empty() ? pictures() : source,
                                      "--out",
                                      file(out),
                                      "--batch-size",
                                      "8",
                                      "--epochs",
                                      "6",
                                      "--lr",
                                      "0.005",
                                      "--threads",
                                      "1",
                                      "--set",
                                      "data.resize=18",
                                      "--set",
                                      "data.crop=16",
                                      "--set",
                                      "data.flip=true",
                                      "--progress",
                                      "none"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(Images, are_learnt_evaluated_and_predicted) {
  const Outcome trained = run_pantala(train_images("run", {"--json"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const json result = json::parse(trained.out);
  EXPECT_EQ(result.at("evaluation").at("items"), 6);
  EXPECT_EQ(result.at("evaluation").at("classes"), (std::vector<std::string>{"dark", "light"}));
  EXPECT_EQ(result.at("evaluation").at("accuracy"), 1.0);
  const json profile = json::parse(bytes("run/data.json"));
  EXPECT_EQ(profile.at("item"), (std::vector<int>{3, 16, 16}));
  EXPECT_EQ(profile.at("mean").size(), 3U);

  const Outcome evaluated = run_pantala({"eval", file("run"), "--data", pictures(), "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out).at("loss"), result.at("evaluation").at("loss"));

  // A folder without classes, and one file.
  const Outcome predicted =
      run_pantala({"predict", file("run"), "--data", pictures() + "/val", "--csv"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, testing::StartsWith("item,class,name,probability,file\n0,0,dark,"));
  EXPECT_THAT(predicted.out, HasSubstr(",dark/24.JPG\n"));
  const Outcome one =
      run_pantala({"predict", file("run"), "--data", file("pictures/val/light/25.png"), "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(json::parse(one.out).at("name"), "light");
  EXPECT_EQ(json::parse(one.out).at("file"), file("pictures/val/light/25.png"));
  // Several files, by their paths, and the class that their folder says.
  const std::string dark = file("pictures/val/dark/24.JPG");
  const Outcome two = run_pantala({"predict", file("run"), "--data", dark, "--data",
                                   file("pictures/val/light/25.png"), "--truth", "--csv"});
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.out, testing::StartsWith("item,class,name,probability,file,truth\n0,0,dark,"));
  EXPECT_THAT(two.out, HasSubstr("," + dark + ",dark\n1,1,light,"));
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", dark, "--data", "a.csv"}).err,
              HasSubstr("several --data are images, a file each; a.csv is none"));
  EXPECT_THAT(run_pantala({"predict", file("run"), "--data", dark, "--inputs"}).err,
              HasSubstr("--inputs shows the fields of rows; the items of"));
}

TEST_F(Images, may_change_in_colour_and_turn_in_training) {
  const std::vector<std::string> random = {
      "--set", "data.rotate=20",      "--set", "data.jitter_brightness=0.2",
      "--set", "data.jitter_hue=0.1", "--set", "data.jitter_saturation=0.3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), random.begin(), random.end());
    return more;
  };
  ASSERT_EQ(run_pantala(train_images("alone", with({"--set", "data.threads=0"}))).exit_code, 0);
  ASSERT_EQ(run_pantala(train_images("three", with({"--set", "data.threads=3"}))).exit_code, 0);
  ASSERT_EQ(run_pantala(train_images("plain")).exit_code, 0);
  EXPECT_EQ(bytes("alone/model.safetensors"), bytes("three/model.safetensors"));
  EXPECT_NE(bytes("alone/model.safetensors"), bytes("plain/model.safetensors"));
}

TEST_F(Images, go_on_with_the_same_bits) {
  const std::vector<std::string> random = {"--set", "data.random_area=0.3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), random.begin(), random.end());
    return more;
  };
  ASSERT_EQ(run_pantala(train_images("whole", with({"--set", "data.threads=0"}))).exit_code, 0);
  // Seven steps are in the middle of an epoch.
  ASSERT_EQ(run_pantala(train_images("parts", with({"--max-steps", "7"}))).exit_code, 0);
  const Outcome rest = run_pantala(train_images("parts", with({"--set", "data.threads=3"})));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(bytes("whole/model.safetensors"), bytes("parts/model.safetensors"));
}

TEST_F(Images, mistakes_are_named) {
  const auto complaint = [&](const std::vector<std::string>& words) {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_EQ(complaint(train_images("x", {"--set", "data.crop=32"})),
            "pantala: data.crop is 32, but data.resize makes images of 18 pixels\n");
  EXPECT_THAT(complaint(train_images("x", {"--set", "data.resize=0", "--set", "data.crop=22"})),
              HasSubstr("center_crop(22x22): the window must be at least 1x1 and fit into "));
  EXPECT_THAT(complaint(train_images(
                  "x", {"--set", "data.channels=1", "--set", "data.normalize=imagenet"})),
              HasSubstr("data.normalize = \"imagenet\" is for images of bytes with 3 channels; the "
                        "items of pictures (train) are u8[1,16,16] (data.channels = 3 repeats "
                        "one)"));
  EXPECT_EQ(complaint(train("x", {"--set", "data.resize=8"})),
            "pantala: data.resize, data.crop, data.random_area and data.channels are for images; "
            "the items of points.csv are f32[4]\n");
  EXPECT_EQ(complaint(train_images("x", {}, "images:" + file("none"))),
            "pantala: " + file("none") +
                ": no such folder; expected one with a folder of images per class, or with train "
                "and val\n");
  EXPECT_THAT(complaint(train_images("x", {}, "text:" + file("points.csv"))),
              HasSubstr("model lenet does not learn from tokens as text:"));
  put_file(file("pictures/train/dark/0.JPG"), "broken");
  EXPECT_THAT(complaint(train_images("x")),
              HasSubstr("/train/dark/0.JPG: neither a PNG nor a JPEG image: it begins with 62"));
}

}  // namespace
}  // namespace pantala::tests::images_test
