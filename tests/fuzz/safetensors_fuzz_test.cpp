// safetensors files and indices under damage: bytes and header changed at random, headers put
// together from pieces that lie. A file may be refused with a typed error; anything else (a crash,
// another exception, an InternalError, memory that the file's size does not explain, undefined
// behaviour under the sanitizers) is a bug.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "pantala/error.h"
#include "pantala/weights.h"
#include "support/allocations.h"
#include "support/data_files.h"
#include "support/temporary.h"

namespace pantala::safetensors_fuzz_test {
namespace {

using tests::put_file;

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

class SafeTensorsFuzz : public testing::Test {
 protected:
  using Pieces = std::vector<std::string>;

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  const std::string& any(const Pieces& pieces) { return pieces[below(pieces.size())]; }

  // True if the model was taken; then all of it is read.
  bool survives(const std::string& path, std::size_t bytes_on_disk, const std::string& shown) {
    const std::size_t limit = (std::size_t{64} << 20) + 200 * bytes_on_disk;
    const std::int64_t before = tests::allocations().live;
    tests::reset_peak_allocation();
    bool taken = false;
    try {
      const Weights weights = Weights::open(path);
      for (const std::string& name : weights.names()) {
        EXPECT_EQ(weights.bytes(name).size(),
                  static_cast<std::size_t>(weights.type(name).shape.numel() *
                                           dtype_bytes(weights.type(name).dtype)));
        EXPECT_EQ(weights.read(name).type(), weights.type(name));
      }
      taken = true;
    } catch (const ParseError&) {
    } catch (const IoError&) {
    } catch (const UnsupportedError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nfile: " << testing::PrintToString(shown);
    }
    const auto peak = static_cast<std::size_t>(tests::allocations().peak - before);
    worst_ = std::max(worst_, peak);
    // The contents are of a few hundred bytes: the allowance of 64 MB must not hide a slip.
    EXPECT_LT(peak, 200 * bytes_on_disk + (std::size_t{1} << 16)) << testing::PrintToString(shown);
    EXPECT_LT(peak, limit);
    return taken;
  }
  bool survives(const std::string& content) {
    put_file(path_, content);
    return survives(path_, content.size(), content);
  }

  void change(std::string& text, const Pieces& pieces) {
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << below(8));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 2:
        text.erase(at, below(16));
        break;
      case 3:
        text.insert(at, any(pieces));
        break;
      case 4:
        text.replace(at, std::min(below(8), text.size() - at), any(pieces));
        break;
      default:
        text.insert(at, text.substr(at, below(48)));
    }
  }

  // A header that is JSON, with numbers and names that may lie.
  std::string header() {
    static const Pieces kTypes = {"F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL",   "I16",
                                  "I8",  "U16", "U32", "U64",  "C64", "F4",  "X",  "F8_E5M2"};
    static const Pieces kNumbers = {"0",
                                    "1",
                                    "2",
                                    "3",
                                    "4",
                                    "8",
                                    "16",
                                    "24",
                                    "-1",
                                    "1.5",
                                    "null",
                                    "\"4\"",
                                    "[1]",
                                    "4294967296",
                                    "9223372036854775807",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "1152921504606846976",
                                    "1e3"};
    static const Pieces kNames = {"a", "b", "a.weight", "", "__metadata__", "\\u0000", "\\ud83d"};
    std::string text = "{";
    std::uint64_t at = 0;
    for (std::uint64_t k = 0, count = below(5); k < count; ++k) {
      std::string shape;
      const std::uint64_t rank = below(40) == 0 ? 9 : below(4);
      std::uint64_t elements = 1;
      for (std::uint64_t axis = 0; axis < rank; ++axis) {
        const std::uint64_t size = below(4);
        elements *= size;
        shape += fmt::format("{}{}", axis == 0 ? "" : ",",
                             below(20) == 0 ? any(kNumbers) : std::to_string(size));
      }
      const std::uint64_t end = at + elements * (below(12) == 0 ? below(9) : 4);
      text += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          k == 0 ? "" : ",", below(12) == 0 ? any(kNames) : std::to_string(k),
                          below(4) == 0 ? any(kTypes) : "F32", shape,
                          below(30) == 0 ? any(kNumbers) : std::to_string(at),
                          below(30) == 0 ? any(kNumbers) : std::to_string(end));
      at = end;
    }
    if (below(4) == 0)
      text += fmt::format(R"({}"__metadata__":{{"{}":{}}})", at == 0 && text == "{" ? "" : ",",
                          any(kNames), below(8) == 0 ? any(kNumbers) : "\"text\"");
    data_bytes_ = at;
    return text + "}";
  }

  const tests::TemporaryFolder folder_{tests::Place::memory};
  const std::string path_ = folder_.file("file.safetensors");
  std::mt19937_64 random_{1};
  std::uint64_t data_bytes_ = 0;
  std::size_t worst_ = 0;
};

const std::vector<std::string>& good_files() {
  static const std::vector<std::string> kFiles = {
      file_of(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
              R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})",
              std::string(32, 'x')),
      file_of(R"({"__metadata__":{"format":"pt","k":"v"},)"
              R"("e":{"dtype":"F16","shape":[3,0],"data_offsets":[0,0]},)"
              R"("h":{"dtype":"BF16","shape":[1,1,2],"data_offsets":[0,4]},)"
              R"("m":{"dtype":"BOOL","shape":[2],"data_offsets":[4,6]},)"
              R"("n":{"dtype":"U8","shape":[2],"data_offsets":[6,8]}}   )",
              std::string(8, '\1')),
      file_of(R"({"s":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
              R"("u":{"dtype":"U64","shape":[1],"data_offsets":[4,12]}})",
              std::string(12, '\3')),
      file_of("{}", "")};
  return kFiles;
}
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> kPieces = {"\"",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   ":",
                                                   "0",
                                                   "-",
                                                   "e9",
                                                   "9999999999999999999",
                                                   "null",
                                                   "\"dtype\":\"F64\"",
                                                   "\"shape\":[4294967296,4294967296]",
                                                   "\"data_offsets\":[0,4]",
                                                   std::string(8, '\0'),
                                                   std::string(8, '\xFF'),
                                                   "\\u0000",
                                                   "\xC3",
                                                   "[[[[[[[[",
                                                   "__metadata__"};
  return kPieces;
}

TEST_F(SafeTensorsFuzz, bytes_are_changed) {
  constexpr int kTrials = 25'000;
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string content = any(good_files());
    for (std::uint64_t times = 1 + below(3); times > 0; --times) change(content, pieces());
    if (below(8) == 0) content.resize(below(content.size() + 1));
    taken += survives(content);
  }
  EXPECT_GT(taken, kTrials / 100);
  EXPECT_LT(taken, kTrials);
}

// The changed header gets its right length, so that what is behind the first check is reached.
TEST_F(SafeTensorsFuzz, headers_are_changed) {
  constexpr int kTrials = 10'000;
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::string& good = any(good_files());
    std::uint64_t length = 0;
    std::memcpy(&length, good.data(), sizeof length);
    std::string text = good.substr(8, length);
    for (std::uint64_t times = 1 + below(2); times > 0; --times) change(text, pieces());
    taken += survives(file_of(text, good.substr(8 + length)));
  }
  EXPECT_GT(taken, kTrials / 100);
  EXPECT_LT(taken, kTrials);
}

TEST_F(SafeTensorsFuzz, headers_lie) {
  constexpr int kTrials = 10'000;
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::string text = header();
    const std::uint64_t bytes =
        below(16) == 0 ? below(64) : std::min<std::uint64_t>(data_bytes_, 4096);
    taken += survives(file_of(text, std::string(bytes, '\2')));
  }
  EXPECT_GT(taken, kTrials / 20);
  EXPECT_LT(taken, kTrials);
}

TEST_F(SafeTensorsFuzz, indices_are_changed_and_lie) {
  constexpr int kTrials = 5'000;
  const std::string a = file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1"),
                    b = file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "2");
  put_file(folder_.file("m-1.safetensors"), a);
  put_file(folder_.file("m-2.safetensors"), b);
  const std::string good =
      R"({"metadata":{"total_size":2},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})";
  const Pieces lies = {"../m-1.safetensors",
                       "/etc/passwd",
                       "..",
                       ".",
                       "",
                       "m-1.safetensors",
                       "m-2.safetensors",
                       "m-3.safetensors",
                       "m.safetensors.index.json",
                       "\\u0000",
                       "m-1.safetensors\\u0000",
                       "m-1.safetensors/",
                       "a/b"};
  const std::string path = folder_.file("m.safetensors.index.json");
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string text = good;
    if (below(3) == 0)
      text = fmt::format(R"({{"weight_map":{{"a":"{}","{}":"{}"}}}})", any(lies),
                         below(4) == 0 ? any(lies) : "b", any(lies));
    else
      for (std::uint64_t times = 1 + below(2); times > 0; --times) change(text, pieces());
    put_file(path, text);
    taken += survives(path, text.size() + a.size() + b.size(), text);
  }
  EXPECT_GT(taken, kTrials / 200);
  EXPECT_LT(taken, kTrials);
}

// Headers of the costliest kinds, large enough for the factor to count.
TEST_F(SafeTensorsFuzz, memory_is_a_small_multiple_of_the_file) {
  const auto many = [](std::size_t bytes, const auto& piece, const std::string& begin,
                       const std::string& end) {
    std::string text = begin;
    for (std::size_t k = 0; text.size() < bytes; ++k) {
      if (k > 0) text += ',';
      text += piece(k);
    }
    return text + end;
  };
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto entry = [](std::size_t k) {
    return fmt::format(R"("{:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", k);
  };
  const std::string headers[] = {
      many(kBytes, entry, "{", "}"),
      many(
          kBytes, [](std::size_t k) { return fmt::format(R"("{:x}":"")", k); },
          R"({"__metadata__":{)", "}}"),
      many(
          kBytes, [](std::size_t k) { return fmt::format(R"("{:x}":0)", k); }, "{", "}"),
      many(
          kBytes, [](std::size_t) { return std::string("0"); },
          R"({"a":{"dtype":"U8","data_offsets":[0,0],"shape":[)", "]}}"),
      many(
          kBytes, [](std::size_t) { return std::string("[]"); }, R"({"a":[)", "]}"),
      many(
          kBytes, [](std::size_t) { return std::string("{}"); }, R"({"a":[)", "]}"),
      many(
          kBytes, [](std::size_t) { return std::string("\"\""); }, R"({"a":[)", "]}"),
      fmt::format(R"({{"{}":0}})", std::string(kBytes, 'n')),
      std::string(kBytes, '['),
  };
  for (const std::string& text : headers) {
    survives(file_of(text, ""));
    RecordProperty("worst", std::to_string(worst_));
    EXPECT_LT(worst_, 100 * kBytes) << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace pantala::safetensors_fuzz_test
