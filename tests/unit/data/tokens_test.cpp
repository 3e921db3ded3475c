// Files of tokens as data sets: windows, labels, parts without a token in common, and what is
// refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::data::tokens_test {
namespace {

using testing::ElementsAre;

class Tokens : public testing::Test {
 protected:
  // The numbers 0, 1, ..., `bytes` each.
  std::string counting(int count, int bytes) {
    std::string text;
    for (int k = 0; k < count; ++k) text += tests::little(static_cast<std::uint64_t>(k), bytes);
    return put("counting.bin", text);
  }
  std::string put(const std::string& name, const std::string& content) {
    tests::put_file(folder_.file(name), content);
    return folder_.file(name);
  }
  static const std::vector<std::int64_t>& values(const Array& array) {
    return std::get<std::vector<std::int64_t>>(array.values);
  }
  static Batch whole(const Dataset& set) {
    return *make_loader(set, {.batch_size = set.size(), .shuffle = false, .threads = 0})
                ->next_batch();
  }
  template <class Error>
  std::string refusal(const std::function<void()>& work) const {
    std::string text = tests::message_of<Error>(work);
    if (const std::size_t at = text.find(folder_.path().string()); at != std::string::npos)
      text.replace(at, folder_.path().string().size(), "ROOT");
    return text;
  }

  tests::TemporaryFolder folder_;
};

TEST_F(Tokens, labels_are_the_next_tokens) {
  const std::vector<std::pair<TokenType, int>> types = {
      {TokenType::u8, 1}, {TokenType::u16, 2}, {TokenType::i32, 4}};
  for (const auto& [type, bytes] : types) {
    const Batch batch = whole(read_tokens(counting(10, bytes), {.sequence = 3, .type = type}));
    EXPECT_EQ(batch.data.shape, (Shape{3, 3}));
    EXPECT_THAT(values(batch.data), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_EQ(batch.labels.shape, (Shape{3, 3}));
    EXPECT_THAT(values(batch.labels), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

TEST_F(Tokens, every_window_has_its_labels) {
  for (int count = 5; count < 20; ++count)
    for (const std::int64_t stride : {1, 2, 4, 9}) {
      const Dataset set = read_tokens(counting(count, 2), {.sequence = 4, .stride = stride});
      const Batch batch = whole(set);
      EXPECT_EQ(set.size(), (count - 5) / stride + 1) << count << " " << stride;
      for (std::size_t k = 0; k < values(batch.data).size(); ++k) {
        EXPECT_EQ(values(batch.data)[k],
                  static_cast<std::int64_t>(k / 4) * stride + static_cast<std::int64_t>(k % 4));
        EXPECT_EQ(values(batch.labels)[k], values(batch.data)[k] + 1);
      }
    }
}

TEST_F(Tokens, large_and_text_tokens) {
  const std::string large = put("large.bin", tests::little(0xFFFE, 2) + tests::little(0xFFFF, 2));
  EXPECT_THAT(values(whole(read_tokens(large, {.sequence = 1})).labels), ElementsAre(0xFFFF));
  const std::string text = put("a.txt", "h\xc3\xa9!");
  const Batch batch = whole(read_tokens(text, {.sequence = 3, .type = TokenType::u8}));
  EXPECT_THAT(values(batch.data), ElementsAre('h', 0xc3, 0xa9));
  EXPECT_THAT(values(batch.labels), ElementsAre(0xc3, 0xa9, '!'));
}

TEST_F(Tokens, parts_have_no_token_in_common) {
  const TrainTest sets = read_tokens(counting(100, 2), {.sequence = 5, .stride = 1}, 0.2);
  std::set<std::int64_t> train, test;
  for (const auto& [set, tokens] : {std::pair{&sets.train, &train}, std::pair{&sets.test, &test}}) {
    const Batch batch = whole(*set);
    tokens->insert(values(batch.data).begin(), values(batch.data).end());
    tokens->insert(values(batch.labels).begin(), values(batch.labels).end());
  }
  EXPECT_EQ(train.size(), 80u);
  EXPECT_EQ(*train.rbegin(), 79);
  EXPECT_EQ(test.size(), 20u);
  EXPECT_EQ(*test.begin(), 80);
}

TEST_F(Tokens, batches_are_the_same_for_any_number_of_threads) {
  const Dataset set = read_tokens(counting(5000, 2), {.sequence = 16, .stride = 7});
  const auto alone = make_loader(set, {.batch_size = 32, .seed = 4, .threads = 0}),
             together = make_loader(set, {.batch_size = 32, .seed = 4, .threads = 3});
  while (const auto batch = alone->next_batch()) {
    const auto other = together->next_batch();
    ASSERT_TRUE(other);
    EXPECT_EQ(batch->data, other->data);
    EXPECT_EQ(batch->labels, other->labels);
  }
  EXPECT_FALSE(together->next_batch());
}

TEST_F(Tokens, the_fingerprint_is_of_the_tokens_and_the_windows) {
  const auto print = [&](const Dataset& set) { return make_loader(set)->fingerprint(); };
  const std::string path = counting(50, 2);
  const std::string before = print(read_tokens(path, {.sequence = 4}));
  EXPECT_EQ(print(read_tokens(path, {.sequence = 4})), before);
  EXPECT_NE(print(read_tokens(path, {.sequence = 4, .stride = 3})), before);
  EXPECT_NE(print(read_tokens(path, {.sequence = 5})), before);
  std::string other;
  for (int k = 0; k < 50; ++k) other += tests::little(k == 25 ? 7 : static_cast<unsigned>(k), 2);
  EXPECT_NE(print(read_tokens(put("other.bin", other), {.sequence = 4})), before);
}

TEST_F(Tokens, mistakes_are_refused) {
  const std::string path = counting(10, 2), odd = put("odd.bin", "abc"), none = put("none.bin", "");
  EXPECT_EQ(refusal<ParseError>([&] { read_tokens(odd); }),
            "ROOT/odd.bin: 3 bytes are no whole number of tokens of 2 bytes");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(path); }),
            "ROOT/counting.bin: has 10 tokens; a sequence of 128 needs 129");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(none, {.sequence = 1}); }),
            "ROOT/none.bin: has 0 tokens; a sequence of 1 needs 2");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(path, {.sequence = 4}, 0.3); }),
            "ROOT/counting.bin (test): has 3 tokens; a sequence of 4 needs 5");
  EXPECT_EQ(refusal<ValueError>([&] { read_tokens(path, {.sequence = 4, .vocabulary = 8}); }),
            "ROOT/counting.bin: token 8 is 8, outside of the vocabulary of 8");
  const std::string negative = put("negative.bin", tests::little(0xFFFFFFFF, 4) + "abcd");
  EXPECT_EQ(refusal<ValueError>([&] {
              read_tokens(negative, {.sequence = 1, .type = TokenType::i32, .vocabulary = 8});
            }),
            "ROOT/negative.bin: token 0 is -1, outside of the vocabulary of 8");
  EXPECT_EQ(refusal<IoError>([&] { read_tokens(folder_.file("x.bin")); }),
            "ROOT/x.bin: cannot open: No such file or directory");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(path, {.sequence = 0}); }),
            "tokens: a sequence of 0; expected 1 to 16777216");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(path, {.sequence = 4, .stride = -1}); }),
            "tokens: a stride of -1; expected 1 to 16777216, or 0 for the sequence");
  EXPECT_EQ(refusal<TypeError>([&] { read_tokens(path, {.sequence = 4}, 1.0); }),
            "tokens: a share of 1 for the test set; expected one above 0 and below 1");
}

TEST_F(Tokens, a_file_that_is_cut_off_later_is_an_error) {
  const std::string path = counting(5000, 2);
  const Dataset set = read_tokens(path, {.sequence = 4});
  tests::put_file(path, "ab");
  EXPECT_THROW(set.data_source->item(1000), IoError);
}

TEST_F(Tokens, one_hot_is_refused) {
  EXPECT_EQ(refusal<TypeError>([&] {
              make_loader(read_tokens(counting(10, 2), {.sequence = 4}),
                          {.transforms = {OneHot{10}}});
            }),
            "one_hot(10): needs one integer a label, but the labels of '" +
                folder_.file("counting.bin").replace(0, folder_.path().string().size(), "ROOT") +
                "' are i64[4], made on demand");
}

}  // namespace
}  // namespace pantala::data::tokens_test
