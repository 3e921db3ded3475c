// What is said about weights files that are not right: the whole message, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pantala/error.h"
#include "pantala/weights.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala {
namespace {

using tests::message_of;
using tests::put_file;

struct Case {
  std::string header;
  std::size_t data_bytes;
  std::string message;  // after the path
};

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
         offsets + "]}}";
}

template <class E>
std::string message_of_opening(const std::string& path) {
  return message_of<E>([&] { Weights::open(path); });
}

TEST(WeightsErrors, headers) {
  const std::string w = ": tensor \"w\": ";
  const Case cases[] = {
      {"[1]", 0, ": header: expected an object, found array"},
      {"{", 0, ": header: byte 2: not valid JSON"},
      {R"({"w":1})", 0, w + "cannot use at() with number"},
      {R"({"w":{},"w":{}})", 0, ": header: the key \"w\" appears twice"},
      {R"({"__metadata__":{"a":1}})", 0, ": __metadata__: type must be string, but is number"},
      {R"({"w":{"shape":[],"data_offsets":[0,4]}})", 4, w + "key 'dtype' not found"},
      {entry("F31", "1", "0,4"), 4, w + "unknown dtype \"F31\""},
      {entry("F32", "-1", "0,4"), 4, w + "expected sizes as whole numbers below 2^62, found -1"},
      {entry("F32", "1", "0,4,5"), 4,
       w + "data_offsets: expected two whole numbers, found [0,4,5]"},
      {entry("F32", "1", "4,0"), 4, w + "data_offsets [4,0] are not within the 4 bytes of data"},
      {entry("F32", "1", "0,8"), 4, w + "data_offsets [0,8] are not within the 4 bytes of data"},
      {entry("F32", "2", "0,4"), 4, w + "F32 [2] does not fit its 4 bytes of data"},
      {entry("F32", "1073741824,1073741824", "0,0"), 0,
       w + "F32 [1073741824,1073741824] does not fit its 0 bytes of data"},
      {entry("F32", "1", "4,8"), 8,
       w + "its data begin at 4, expected 0: no tensor owns the bytes between"},
      {entry("F32", "1", "0,4"), 5, ": 5 bytes of data, but the header describes 4"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("w":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})",
       5, w + "its data begin at 2, expected 4: tensors overlap"},
  };
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("bad.safetensors");
  for (const Case& one : cases) {
    put_file(path,
             tests::little(one.header.size(), 8) + one.header + std::string(one.data_bytes, '\0'));
    EXPECT_EQ(message_of_opening<ParseError>(path), path + one.message) << one.header;
  }
}

TEST(WeightsErrors, files) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("bad.safetensors");
  EXPECT_EQ(message_of_opening<IoError>(path), path + ": cannot open: No such file or directory");
  put_file(path, "1234567");
  EXPECT_EQ(message_of_opening<ParseError>(path),
            path + ": expected a header length of 8 bytes, the file has 7");
  put_file(path, tests::little(3, 8) + "{}");
  EXPECT_EQ(message_of_opening<ParseError>(path),
            path +
                ": no safetensors file, or a damaged one: it begins with a header length of 3; 2 "
                "bytes follow, and the limit is 100000000");
  const std::string header = entry("F8_E4M3", "2", "0,2");
  put_file(path, tests::little(header.size(), 8) + header + "ab");
  EXPECT_EQ(message_of_opening<UnsupportedError>(path),
            path + ": dtypes that are not supported: w (F8_E4M3)");
}

TEST(WeightsErrors, files_of_pytorch_are_told_by_their_first_bytes) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("resnet.pth");
  const std::string message =
      path +
      ": a PyTorch archive, not a safetensors file: save it with safetensors.torch.save_file";
  const std::string begins[] = {
      std::string("PK\x03\x04\0\0\x08\x08\0\0", 10) + "archive/data.pkl",  // since 1.6
      "PK\x03\x04" + std::string(26, '\0') + "a/data.pklFB" + std::string(80, '\0'),
      "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8\x50\x19.",  // before
      "\x80\x04\x95\x0b" + std::string(8, '\0'),              // any pickle
  };
  for (const std::string& begin : begins) {
    put_file(path, begin);
    EXPECT_EQ(message_of_opening<UnsupportedError>(path), message);
  }
  // Other files are zip archives as well, such as those of NumPy.
  put_file(path, "PK\x03\x04" + std::string(26, '\0') + "weight.npy" + std::string(80, '\0'));
  EXPECT_EQ(message_of_opening<UnsupportedError>(path),
            path + ": a zip archive, not a safetensors file");
  // A header of 640 bytes begins with the same two.
  const std::string header = entry("U8", "1", "0,1");
  put_file(path, tests::little(640, 8) + header + std::string(640 - header.size(), ' ') + "a");
  EXPECT_EQ(message_of_opening<UnsupportedError>(path), "no error");
}

TEST(WeightsErrors, a_folder_with_a_file_of_pytorch_alone_says_what_to_do) {
  const tests::TemporaryFolder folder;
  put_file(folder.file("pytorch_model.bin"), "PK");
  EXPECT_THAT(message_of_opening<IoError>(folder.path().string()),
              testing::EndsWith("(pytorch_model.bin: save it with safetensors.torch.save_file)"));
}

TEST(WeightsErrors, indices) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors.index.json");
  const std::string header = entry("U8", "1", "0,1");
  put_file(folder.file("m-1.safetensors"), tests::little(header.size(), 8) + header + "a");
  const std::pair<std::string, std::string> cases[] = {
      {"{}", ": key 'weight_map' not found"},
      {R"({"weight_map":{"w":3}})", ": type must be string, but is number"},
      {R"({"weight_map":{"v":"m-1.safetensors"}})", ": tensor \"v\" is not in \"m-1.safetensors\""},
      {R"({"weight_map":{"w":"../m-1.safetensors"}})",
       ": tensor \"w\": expected the name of a file in the same folder, found "
       "\"../m-1.safetensors\""},
      {R"({"weight_map":{"w":"/etc/passwd"}})",
       ": tensor \"w\": expected the name of a file in the same folder, found \"/etc/passwd\""},
  };
  for (const auto& [text, message] : cases) {
    put_file(path, text);
    EXPECT_EQ(message_of_opening<ParseError>(path), path + message) << text;
  }
  put_file(path, R"({"weight_map":{"w":"m-2.safetensors"}})");
  EXPECT_EQ(message_of_opening<IoError>(path),
            folder.file("m-2.safetensors") + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace pantala
