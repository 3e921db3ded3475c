// The same run gives the same bits, however many threads compute it and however often it is made;
// the same items in other micro-batches give the same numbers up to rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/weights.h"
#include "support/data_files.h"
#include "support/training_data.h"
#include "train/run.h"

namespace pantala::tests {
namespace {

namespace fs = std::filesystem;

class SameBits : public RichRun {
 protected:
  // Images of 12 x 12 bytes in four classes, as the MNIST family has them.
  void write_images() const {
    fs::create_directories(file("images"));
    std::uint64_t random = 5;
    for (const auto& [name, items] :
         std::vector<std::pair<std::string, std::uint32_t>>{{"train", 70}, {"t10k", 20}}) {
      std::string pixels, labels;
      for (std::uint32_t k = 0; k < items; ++k) {
        const auto label = tests::next_random(random) % 4;
        labels += static_cast<char>(label);
        for (int p = 0; p < 144; ++p)
          pixels += static_cast<char>((tests::next_random(random) % 128) +
                                      (p % 4 == static_cast<int>(label) ? 100 : 0));
      }
      put_file(file("images/" + name + "-images-idx3-ubyte"),
               idx_head(8, {items, 12, 12}) + pixels);
      put_file(file("images/" + name + "-labels-idx1-ubyte"), idx_head(8, {items}) + labels);
    }
  }
  std::string model_after(const std::vector<std::string>& words, const std::string& out) const {
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return bytes(out + "/model.safetensors");
  }
};

TEST_F(SameBits, with_any_number_of_threads) {
  const auto with = [&](const std::string& threads) {
    return model_after({"train", "--model", "mlp", "--data", points(), "--epochs", "1",
                        "--batch-size", "64", "--set", "model.hidden=[200,100]", "--clip", "0.5",
                        "--threads", threads, "--out", file("mlp-" + threads)},
                       "mlp-" + threads);
  };
  const std::string one = with("1");
  for (const char* threads : {"2", "3", "7"}) EXPECT_TRUE(with(threads) == one) << threads;
}

TEST_F(SameBits, of_images_with_any_number_of_threads) {
  write_images();
  const auto with = [&](const std::string& threads) {
    return model_after(
        {"train", "--model", "lenet", "--data", "idx:" + file("images"), "--epochs", "1",
         "--batch-size", "16", "--set", "data.flip=true", "--set", "data.crop_pad=1", "--set",
         "data.threads=" + threads, "--threads", threads, "--out", file("lenet-" + threads)},
        "lenet-" + threads);
  };
  const std::string one = with("1");
  for (const char* threads : {"2", "3", "7"}) EXPECT_TRUE(with(threads) == one) << threads;
}

TEST_F(SameBits, every_time) {
  const RunRecord expected = whole();
  finish("again");
  expect_same(record("again"), expected, "again");
  const Outcome other = run_pantala(rich("other", {"--seed", "4"}));
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_NE(bytes("other/model.safetensors"), bytes("whole/model.safetensors"));
}

// 1 x 16 = 4 x 4 = 16 x 1, and the last update of an epoch is made of 7 items.
TEST_F(SameBits, up_to_rounding_with_other_micro_batches) {
  const auto parameters = [&](const std::string& size, const std::string& windows) {
    const std::string out = size + "x" + windows;
    const Outcome outcome = run_pantala({"train",
                                         "--model",
                                         "mlp",
                                         "--data",
                                         points(),
                                         "--epochs",
                                         "3",
                                         "--optimizer",
                                         "sgd",
                                         "--set",
                                         "optimizer.lr=0.1",
                                         "--set",
                                         "optimizer.momentum=0.9",
                                         "--set",
                                         "model.hidden=[12]",
                                         "--set",
                                         "model.activation=tanh",
                                         "--batch-size",
                                         size,
                                         "--accumulate",
                                         windows,
                                         "--threads",
                                         "1",
                                         "--json",
                                         "--out",
                                         file(out)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at("steps"), 27);
    const Weights model = Weights::open(file(out + "/model.safetensors"));
    std::vector<double> values;
    for (const std::string& name : model.names()) {
      const Literal tensor = model.read(name);
      for (std::int64_t k = 0; k < tensor.numel(); ++k) values.push_back(tensor.at(k));
    }
    return values;
  };
  const std::vector<double> whole = parameters("16", "1");
  for (const auto& [size, windows] :
       std::vector<std::pair<std::string, std::string>>{{"4", "4"}, {"1", "16"}}) {
    const std::vector<double> parts = parameters(size, windows);
    ASSERT_EQ(parts.size(), whole.size());
    for (std::size_t k = 0; k < whole.size(); ++k)
      EXPECT_NEAR(parts[k], whole[k], 1e-5 * std::max(1.0, std::fabs(whole[k])))
          << size << "x" << windows << ", element " << k;
  }
}

}  // namespace
}  // namespace pantala::tests
