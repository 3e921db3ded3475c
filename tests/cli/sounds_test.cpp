// Spectrograms with a class for each position: a Whisper encoder is trained, evaluated and asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/training.h"
#include "pantala/data.h"
#include "support/data_files.h"

namespace pantala::tests::sounds_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kItems = 24, kMels = 4, kFrames = 11, kLength = 6;

class Sounds : public TrainingTest {
 protected:
  Sounds() { write_sounds("sounds.npz", labels()); }

  // The band that is loud at each position, which the frames 2p and 2p + 1 show.
  static std::int64_t band(std::int64_t item, std::int64_t position) {
    return (item * 7 + position * position + item * position) % kMels;
  }
  static std::vector<std::int64_t> labels() {
    std::vector<std::int64_t> list;
    for (std::int64_t k = 0; k < kItems * kLength; ++k)
      list.push_back(band(k / kLength, k % kLength));
    return list;
  }
  void write_sounds(const std::string& name, std::vector<std::int64_t> labels) const {
    std::vector<float> mel(static_cast<std::size_t>(kItems * kMels * kFrames), 0.1F);
    for (std::int64_t item = 0; item < kItems; ++item)
      for (std::int64_t frame = 0; frame < kFrames; ++frame)
        mel[static_cast<std::size_t>((item * kMels + band(item, frame / 2)) * kFrames + frame)] = 2;
    const auto count = static_cast<std::int64_t>(labels.size());
    data::write_npy(file("x.npy"), {.shape = {kItems, kMels, kFrames}, .values = std::move(mel)});
    data::write_npy(file("y.npy"),
                    {.shape = count == kItems ? Shape{kItems} : Shape{kItems, count / kItems},
                     .values = std::move(labels)});
    put_file(file(name), zip({{.name = "x.npy", .content = bytes("x.npy")},
                              {.name = "y.npy", .content = bytes("y.npy")}}));
  }
  std::string npz(const std::string& name) const { return "npz:" + file(name); }
  std::vector<std::string> listen(const std::string& out, const std::string& data,
                                  std::vector<std::string> more = {},
                                  const std::string& model = "whisper-tiny") const {
    std::vector<std::string> words = {"train",
                                      "--model",
                                      model,
                                      "--data",
                                      data,
                                      "--out",
                                      file(out),
                                      "--batch-size",
                                      "8",
                                      "--lr",
                                      "0.0005",
                                      "--set",
                                      "data.validation=none",
                                      "--set",
                                      "checkpoint.every_epochs=0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string complaint(const std::string& data, std::vector<std::string> more = {},
                        const std::string& model = "whisper-tiny") const {
    const Outcome outcome = run_pantala(listen("refused", data, std::move(more), model));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_FALSE(exists("refused"));
    return outcome.err;
  }
  json evaluation(const std::string& data) const {
    const Outcome outcome = run_pantala({"eval", file("run"), "--data", npz(data), "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_F(Sounds, a_whisper_encoder_learns_a_class_for_every_position) {
  const Outcome outcome = run_pantala(listen("run", npz("sounds.npz"), {"--epochs", "12"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;

  EXPECT_GT(evaluation("sounds.npz").at("accuracy"), 0.95);

  const Outcome predict =
      run_pantala({"predict", file("run"), "--data", npz("sounds.npz"), "--csv"});
  ASSERT_EQ(predict.exit_code, 0) << predict.err;
  std::istringstream lines(predict.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "item,position,class,name,probability");
  std::int64_t count = 0, right = 0;
  while (std::getline(lines, line)) {
    const std::int64_t item = count / kLength, position = count % kLength;
    right += line.starts_with(fmt::format("{},{},{},", item, position, band(item, position)));
    ++count;
  }
  EXPECT_EQ(count, kItems * kLength);
  EXPECT_GT(right, count * 95 / 100);
  const Outcome one =
      run_pantala({"predict", file("run"), "--data", file("x.npy"), "--limit", "1", "--json"});
  EXPECT_THAT(one.out, StartsWith(R"({"item":0,"position":0,"class":)"));
}

// An evaluation whose ignored positions are wrong must not see them.
TEST_F(Sounds, positions_without_a_label_do_not_count) {
  std::vector<std::int64_t> some = labels();
  for (std::size_t k = 0; k < some.size(); ++k)
    if (k % 3 != 0) some[k] = -100;
  write_sounds("some.npz", some);
  const Outcome outcome = run_pantala(listen("run", npz("sounds.npz"), {"--epochs", "1"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = evaluation("sounds.npz"), part = evaluation("some.npz");
  EXPECT_NE(part.at("loss"), all.at("loss"));
  std::int64_t counted = 0;
  for (const json& row : part.at("confusion"))
    for (const json& cell : row) counted += cell.get<std::int64_t>();
  EXPECT_EQ(counted, kItems * 2);
}

TEST_F(Sounds, labels_and_items_that_do_not_fit_are_refused) {
  write_sounds("one.npz", std::vector<std::int64_t>(kItems, 1));
  EXPECT_THAT(complaint(npz("one.npz")),
              HasSubstr("the labels are i64[24]; this model learns a class for each of the 6 "
                        "positions of an item: whole numbers [items, 6]"));
  write_sounds("short.npz", std::vector<std::int64_t>(kItems * 5, 1));
  EXPECT_THAT(complaint(npz("short.npz")), HasSubstr("the labels are i64[24,5]"));
  std::vector<std::int64_t> wrong = labels();
  wrong[9] = -3;
  write_sounds("wrong.npz", wrong);
  EXPECT_THAT(complaint(npz("wrong.npz")),
              HasSubstr("the label of item 1, position 3 is -3; classes are numbered from 0"));
  wrong = labels();
  std::fill_n(wrong.begin() + 2 * kLength, kLength, -100);
  write_sounds("none.npz", wrong);
  EXPECT_THAT(complaint(npz("none.npz")),
              HasSubstr("item 2 has no label, all its positions are -100: leave it out"));
  EXPECT_THAT(complaint(npz("sounds.npz"), {"--set", "data.flip=true"}),
              HasSubstr("data.flip and data.crop_pad are for images"));
  EXPECT_THAT(complaint(npz("sounds.npz"), {}, "mlp"),
              HasSubstr("the labels are i64[24,6]; classes are whole numbers, one per item"));
  EXPECT_THAT(complaint(points()),
              HasSubstr("model whisper-tiny takes spectrograms [mels, frames] of up to 3000 "
                        "frames; the items of the data set are [4]"));
}

}  // namespace
}  // namespace pantala::tests::sounds_test
