// Data files under damage: cut off at every length, changed at random, and with sizes that lie. A
// file may be refused with a typed error; anything else (a crash, another exception, an
// InternalError, memory that the file's size does not explain, undefined behaviour under the
// sanitizers) is a bug.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/allocations.h"
#include "support/data_files.h"
#include "support/temporary.h"

namespace pantala::data::data_fuzz_test {
namespace {

using tests::gzip;
using tests::idx_head;
using tests::little;
using tests::npy_head;
using tests::zip;

constexpr int kTrials = 20000;
// What the readers may take for a file of a few hundred bytes: their buffers.
constexpr std::size_t kMaxAllocation = std::size_t{4} << 20;

void expect_whole(const Array& array) {
  std::visit(
      [&](const auto& values) {
        ASSERT_EQ(values.size(), static_cast<std::size_t>(array.shape.numel()));
      },
      array.values);
}

class DataFuzz : public testing::Test {
 protected:
  using Read = std::function<void(const std::string& path)>;

  // True if the file was taken.
  bool survives(const std::string& content, const Read& read) {
    tests::put_file(path_, content);
    tests::reset_largest_allocation();
    bool taken = false;
    try {
      read(path_);
      taken = true;
    } catch (const ParseError&) {
    } catch (const IoError&) {
    } catch (const UnsupportedError&) {
    } catch (const TypeError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nfile: " << testing::PrintToString(content);
    }
    EXPECT_LT(tests::allocations().largest, kMaxAllocation) << testing::PrintToString(content);
    return taken;
  }

  void cut_everywhere(const std::string& content, const Read& read) {
    ASSERT_TRUE(survives(content, read));
    for (std::size_t length = 0; length < content.size(); ++length)
      survives(content.substr(0, length), read);
  }
  // No part of these formats may be missing without being missed.
  void cut_everywhere_is_refused(const std::string& content, const Read& read) {
    ASSERT_TRUE(survives(content, read));
    for (std::size_t length = 0; length < content.size(); ++length)
      EXPECT_FALSE(survives(content.substr(0, length), read)) << length;
  }

  void mutate(const std::vector<std::string>& corpus, const std::vector<std::string>& fragments,
              int trials, const Read& read) {
    int taken = 0;
    for (int trial = 0; trial < trials; ++trial) {
      std::string content = corpus[random_() % corpus.size()];
      for (std::uint64_t times = 1 + random_() % 4; times > 0; --times)
        change(content, corpus, fragments);
      taken += survives(content, read);
    }
    // The changes are not all so wild that nothing behind the first check is reached.
    EXPECT_GT(taken, 0);
    EXPECT_LT(taken, trials);
  }

 private:
  void change(std::string& text, const std::vector<std::string>& corpus,
              const std::vector<std::string>& fragments) {
    const std::size_t at = random_() % (text.size() + 1);
    const std::size_t length = random_() % (text.size() - at + 1);
    switch (random_() % 7) {
      case 0:  // one bit
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << random_() % 8);
        break;
      case 1:  // one byte
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 2:
        text.erase(at, length % 16);
        break;
      case 3:
        text.insert(at, fragments[random_() % fragments.size()]);
        break;
      case 4: {
        const std::string& fragment = fragments[random_() % fragments.size()];
        text.replace(at, std::min(fragment.size(), text.size() - at), fragment);
        break;
      }
      case 5:
        text.insert(at, text.substr(at, length % 32));
        break;
      default: {  // the end of another file
        const std::string& other = corpus[random_() % corpus.size()];
        text.replace(at, std::string::npos, other, std::min(at, other.size()), std::string::npos);
      }
    }
  }

  const tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("file");
  std::mt19937_64 random_{1};
};

const auto kReadCsv = [](const std::string& path) {
  const Dataset dataset = read_csv(path);
  expect_whole(*dataset.data);
  expect_whole(*dataset.labels);
};
// The same, with all that can be asked of a table.
const auto kReadCsvInFull = [](const std::string& path) {
  for (const Missing missing : {Missing::drop, Missing::keep}) {
    const Dataset dataset = read_csv(
        path, {.separator = std::nullopt, .missing = missing, .one_hot = {"*"}, .keep_rows = true});
    expect_whole(*dataset.data);
    EXPECT_EQ(dataset.rows->numbers.size(), static_cast<std::size_t>(dataset.size()));
  }
};
const auto kReadSafetensors = [](const std::string& path) {
  for (const std::string& name : safetensors_names(path))
    expect_whole(read_safetensors(path, name));
};
const auto kReadIdx = [](const std::string& path) { expect_whole(read_idx(path)); };
const auto kReadNpy = [](const std::string& path) { expect_whole(read_npy(path)); };
const auto kReadNpz = [](const std::string& path) {
  for (const std::string& name : npz_names(path)) expect_whole(read_npz(path, name));
};

std::vector<std::string> csv_files() {
  return {"x,y,kind\n1,2.5,0\n-3e2,.5,1\n4,5,2\n", "colour;size\nred;1\nblue;2\n",
          "\xEF\xBB\xBFname,\"a \"\"b\"\"\",label\r\n\"x, y\",1,cat\r\n\"u\nv\",2,dog\r\n\r\n",
          "1,2,3\n4,5,6\n7,8,9\n", "5.1,3.5,setosa\n4.9,3.0,virginica\n"};
}
std::vector<std::string> idx_files() {
  const std::string bytes = idx_head(8, {3, 2, 2}) + "abcdefghijkl";
  const std::string floats = idx_head(0x0D, {2, 1}) + std::string("\x3f\x80\0\0\xbf\0\0\0", 8);
  const std::string shorts = idx_head(0x0B, {2}) + std::string("\1\2\3\4", 4);
  return {bytes,       floats,       shorts,
          gzip(bytes), gzip(floats), gzip(idx_head(8, {600}) + std::string(600, 'z'))};
}
std::vector<std::string> npy_files() {
  return {npy_head("<f4", "(2, 2)") + std::string(16, '\1'), npy_head(">i8", "(1,)") + "12345678",
          npy_head("|b1", "(3, 1)", true) + "abc",
          npy_head("<i2", "(2, 3)", true) + "abcdefghijkl"};
}
std::vector<std::string> npz_files() {
  const std::string npy = npy_head("|u1", "(2, 2)") + "abcd";
  return {zip({{"a.npy", npy}, {"b.npy", npy, true}}), zip({{"x.npy", npy, true, true}}),
          zip({{"readme", "hello"}, {"y.npy", npy, false, true}})};
}

TEST_F(DataFuzz, csv_cut_off) {
  for (const std::string& content : csv_files())
    if (content.find(';') == std::string::npos) cut_everywhere(content, kReadCsv);
}
TEST_F(DataFuzz, idx_cut_off) {
  for (const std::string& content : idx_files()) cut_everywhere_is_refused(content, kReadIdx);
}
TEST_F(DataFuzz, npy_cut_off) {
  for (const std::string& content : npy_files()) cut_everywhere_is_refused(content, kReadNpy);
}
TEST_F(DataFuzz, npz_cut_off) {
  for (const std::string& content : npz_files()) cut_everywhere_is_refused(content, kReadNpz);
}

std::vector<std::string> csv_fragments() {
  return {"\"",
          "\"\"",
          "\"\n",
          ",",
          ",,",
          "\n",
          "\r",
          "\r\n",
          "\n\n",
          "nan",
          "-inf",
          "1e999",
          "-",
          "+",
          "+-1",
          "0x10",
          "1e-999",
          "99999999999999999999",
          std::string("\0", 1),
          "\xFF\xFE",
          "\xEF\xBB\xBF",
          " ",
          "\t",
          "a",
          "1",
          "\xC3"};
}

TEST_F(DataFuzz, csv_changed) { mutate(csv_files(), csv_fragments(), kTrials, kReadCsv); }
TEST_F(DataFuzz, csv_changed_and_read_in_full) {
  std::vector<std::string> fragments = csv_fragments();
  fragments.insert(fragments.end(), {";", "|", "NA", "?", "1,5", "\n;\n"});
  mutate(csv_files(), fragments, kTrials, kReadCsvInFull);
}
TEST_F(DataFuzz, safetensors_cut_off_or_changed) {
  const std::string header = R"({"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                             R"("y":{"dtype":"BOOL","shape":[1,2],"data_offsets":[4,6]}})";
  const std::string file = little(header.size(), 8) + header + "abcdef";
  cut_everywhere_is_refused(file, kReadSafetensors);
  mutate({file}, {"F64", "I8", "-1", "[", "}", "99999999999", "data_offsets", "PK\3\4"}, kTrials,
         kReadSafetensors);
}
TEST_F(DataFuzz, idx_changed) {
  mutate(
      idx_files(),
      {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\0", 4),
       std::string("\x7f\xff\xff\xff", 4), std::string("\x80\0\0\0", 4), std::string("\0\0\0\1", 4),
       "\x1f\x8b", std::string("\0\0\x08\x03", 4), std::string("\0\0\x0e\xff", 4), "\x08", "\x0c"},
      kTrials, kReadIdx);
}
TEST_F(DataFuzz, npy_changed) {
  mutate(npy_files(),
         {"'",
          "(",
          ")",
          ",",
          "{",
          "}",
          "[",
          "True",
          "False",
          "-1",
          "9223372036854775807",
          "1152921504606846976",
          "99999999999999999999",
          "0",
          "L",
          "<f8",
          "|O",
          "'shape'",
          "\n",
          "\x93NUMPY",
          "\xff\xff"},
         kTrials, kReadNpy);
}
TEST_F(DataFuzz, npz_changed) {
  mutate(npz_files(),
         {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\0", 4), "PK\1\2", "PK\3\4",
          "PK\5\6", "PK\6\6", "PK\6\7", std::string("\x08\0", 2), std::string("\1\0", 2),
          "\xff\xff", ".npy", std::string("\x7f\xff\xff\xff\xff\xff\xff\xff", 8)},
         kTrials, kReadNpz);
}

TEST_F(DataFuzz, sizes_that_lie) {
  for (const std::uint32_t size : {0x7fffffffU, 0x80000000U, 0xffffffffU})
    for (const unsigned type : {0x08U, 0x0BU, 0x0EU}) {
      EXPECT_FALSE(survives(idx_head(type, {size}) + "abc", kReadIdx));
      EXPECT_FALSE(survives(idx_head(type, {size, size, size}) + "abc", kReadIdx));
      EXPECT_FALSE(survives(gzip(idx_head(type, {size, 2}) + "abc"), kReadIdx));
      EXPECT_TRUE(survives(idx_head(type, {size, 0}), kReadIdx));
    }
  for (const char* shape : {"(1000000000,)", "(1073741824, 4)", "(1152921504606846976,)",
                            "(4294967296, 4294967296)", "(9223372036854775807, 2)"})
    for (const char* descr : {"|u1", "<f8"}) {
      EXPECT_FALSE(survives(npy_head(descr, shape) + "abc", kReadNpy));
      EXPECT_FALSE(survives(npy_head(descr, shape, true) + "abc", kReadNpy));
      EXPECT_FALSE(survives(zip({{"a.npy", npy_head(descr, shape) + "abc", true}}), kReadNpz));
    }
  // Each size of an entry and of the directory, in turn.
  const std::string archive = npz_files()[0];
  const std::size_t entry = archive.find(little(0x02014b50, 4));
  for (const std::size_t at : {entry + 20, entry + 24, entry + 28, entry + 30, entry + 32,
                               entry + 42, archive.size() - 10, archive.size() - 6})
    for (const std::uint64_t value : {0xffffffffULL, 0xfffffffeULL, 0x7fffffffULL}) {
      std::string lying = archive;
      EXPECT_FALSE(survives(lying.replace(at, 4, little(value, 4)), kReadNpz)) << at;
    }
}

TEST_F(DataFuzz, bombs_are_not_unpacked) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  EXPECT_FALSE(survives(gzip(idx_head(8, {4}) + zeros), kReadIdx));
  EXPECT_FALSE(survives(zip({{"a.npy", npy_head("|u1", "(4,)") + zeros, true}}), kReadNpz));
}

}  // namespace
}  // namespace pantala::data::data_fuzz_test
