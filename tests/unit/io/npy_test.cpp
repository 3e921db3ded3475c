// NumPy's files: every type, both byte orders, both element orders, archives, and damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "io/file.h"
#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::big;
using tests::little;
using tests::npy_head;
using tests::zip;

class Npy : public testing::Test {
 protected:
  Array read(const std::string& content) const {
    tests::put_file(path_, content);
    return read_npy(path_);
  }
  template <class E = ParseError>
  std::string refusal(const std::string& content) const {
    std::string message = tests::message_of<E>([&] { read(content); });
    EXPECT_THAT(message, testing::StartsWith(path_ + ": "));
    return message;
  }
  template <class Element>
  std::vector<Element> values(const std::string& content) const {
    return std::get<std::vector<Element>>(read(content).values);
  }

  const tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("a.npy");
};

TEST_F(Npy, every_type_in_both_byte_orders) {
  EXPECT_THAT(values<float>(npy_head("<f4", "(1,)") + little(0x3fc00000, 4)), ElementsAre(1.5f));
  EXPECT_THAT(values<float>(npy_head(">f4", "(1,)") + big(0x3fc00000, 4)), ElementsAre(1.5f));
  EXPECT_THAT(values<double>(npy_head("<f8", "(1,)") + little(0xc004000000000000, 8)),
              ElementsAre(-2.5));
  EXPECT_THAT(values<double>(npy_head(">f8", "(1,)") + big(0xc004000000000000, 8)),
              ElementsAre(-2.5));
  EXPECT_THAT(values<std::int32_t>(npy_head("|i1", "(2,)") + "\x01\xff"), ElementsAre(1, -1));
  EXPECT_THAT(values<std::int32_t>(npy_head("<i2", "(1,)") + little(0xfffe, 2)), ElementsAre(-2));
  EXPECT_THAT(values<std::int32_t>(npy_head(">i2", "(1,)") + big(258, 2)), ElementsAre(258));
  EXPECT_THAT(values<std::int32_t>(npy_head("<i4", "(1,)") + little(0xffffffff, 4)),
              ElementsAre(-1));
  EXPECT_THAT(values<std::int32_t>(npy_head(">i4", "(1,)") + big(7, 4)), ElementsAre(7));
  EXPECT_THAT(values<std::int64_t>(npy_head("<i8", "(1,)") + little(1ull << 40, 8)),
              ElementsAre(1ll << 40));
  EXPECT_THAT(values<std::int64_t>(npy_head(">i8", "(1,)") + big(5, 8)), ElementsAre(5));
  EXPECT_THAT(values<std::uint8_t>(npy_head("|u1", "(2,)") + "\x01\xff"), ElementsAre(1, 255));
  EXPECT_THAT(values<std::uint8_t>(npy_head("|b1", "(3,)") + std::string("\0\1\2", 3)),
              ElementsAre(0, 1, 1));
}

TEST_F(Npy, shapes) {
  EXPECT_EQ(read(npy_head("|u1", "()") + "x").shape, Shape{});
  EXPECT_EQ(read(npy_head("|u1", "(0, 5)")).shape, (Shape{0, 5}));
  EXPECT_EQ(read(npy_head("|u1", "(2L, 1L)") + "xy").shape, (Shape{2, 1}));
  EXPECT_EQ(read(npy_head("|u1", "(1,1,1,1,1,1,1,2,)") + "xy").shape.rank(), 8);
}

TEST_F(Npy, fortran_order_becomes_row_major) {
  // a[i, j, k] = 100 i + 10 j + k, the first axis fastest.
  std::string bytes;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) bytes += static_cast<char>(100 * i + 10 * j + k);
  const Array array = read(npy_head("|u1", "(2, 3, 2)", true) + bytes);
  EXPECT_THAT(std::get<std::vector<std::uint8_t>>(array.values),
              ElementsAre(0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121));
  EXPECT_EQ(values<std::uint8_t>(npy_head("|u1", "(0, 3)", true)).size(), 0u);
  EXPECT_THAT(values<std::uint8_t>(npy_head("|u1", "(2,)", true) + "\1\2"), ElementsAre(1, 2));
}

TEST_F(Npy, half_floats_are_read_as_f32_in_both_byte_orders) {
  EXPECT_THAT(
      values<float>(npy_head("<f2", "(4,)") + std::string("\x00\x3c\x00\xc0\x01\x00\xff\x7b", 8)),
      ElementsAre(1.0F, -2.0F, 0x1p-24F, 65504.0F));
  EXPECT_THAT(values<float>(npy_head(">f2", "(2,)") + std::string("\x3c\x00\x7c\x00", 4)),
              ElementsAre(1.0F, INFINITY));
}

TEST_F(Npy, unsigned_integers_are_read_as_the_next_wider_type) {
  EXPECT_THAT(values<std::int32_t>(npy_head("<u2", "(2,)") + std::string("\x01\x00\xff\xff", 4)),
              ElementsAre(1, 65535));
  EXPECT_THAT(values<std::int64_t>(npy_head(">u4", "(1,)") + "\xff\xff\xff\xfe"),
              ElementsAre(4294967294));
  EXPECT_THAT(values<std::int64_t>(npy_head("<u8", "(2,)") + little(7, 8) + little(INT64_MAX, 8)),
              ElementsAre(7, INT64_MAX));
  EXPECT_EQ(
      refusal<UnsupportedError>(npy_head("<u8", "(1,)") + little(std::uint64_t{1} << 63, 8)),
      path_ + ": an element is 9223372036854775808; u8 is read as i64, which ends below 2^63");
}

TEST_F(Npy, later_versions_and_other_spellings) {
  const std::string dictionary = "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"|u1\"}\n";
  for (const char version : {'\2', '\3'})
    EXPECT_THAT(values<std::uint8_t>("\x93NUMPY" + std::string{version, '\0'} +
                                     little(dictionary.size(), 4) + dictionary + "\1\2"),
                ElementsAre(1, 2));
  EXPECT_EQ(refusal<UnsupportedError>("\x93NUMPY\x04" + std::string(100, '\0')),
            path_ + ": NPY version 4; 1 to 3 are known");
}

TEST_F(Npy, larger_than_a_chunk) {
  std::string bytes;
  std::vector<std::int32_t> expected;
  for (std::int32_t k = 0; k < 200000; ++k) {
    expected.push_back(k * 7);
    bytes += little(static_cast<std::uint64_t>(k) * 7, 4);
  }
  EXPECT_EQ(values<std::int32_t>(npy_head("<i4", "(200000,)") + bytes), expected);
}

TEST_F(Npy, refuses_what_it_does_not_read) {
  for (const char* descr : {"<c8", "<i16", "<f12", "|S5", "<U3", "<M8[ns]", "<f16"})
    EXPECT_THAT(refusal<UnsupportedError>(npy_head(descr, "(1,)") + std::string(64, '\0')),
                HasSubstr("can be read: convert with array.astype(...)"))
        << descr;
  EXPECT_THAT(refusal<UnsupportedError>(npy_head("|O", "(1,)") + "\x80\x04."),
              HasSubstr("Python objects, which are never loaded"));
  EXPECT_THAT(refusal<UnsupportedError>(
                  npy_head("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }")),
              HasSubstr("elements that have fields"));
}

TEST_F(Npy, refuses_damaged_headers) {
  const auto header_refusal = [&](const std::string& dictionary) {
    return refusal(npy_head(dictionary) + "x");
  };
  EXPECT_THAT(refusal(""), HasSubstr("not an NPY file"));
  EXPECT_THAT(refusal("\x93NUMPX\1" + std::string(100, '\0')), HasSubstr("not an NPY file"));
  EXPECT_THAT(refusal(npy_head("|u1", "(1,)").substr(0, 9)),
              HasSubstr("ends within its NPY header"));
  EXPECT_THAT(refusal(npy_head("|u1", "(1,)").substr(0, 50)),
              HasSubstr("ends within its NPY header"));
  EXPECT_THAT(refusal("\x93NUMPY\x02" + std::string("\0\xff\xff\xff\xff", 5)),
              HasSubstr("an NPY header of 4294967295 bytes"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'shape': (1,), }"), HasSubstr("must have 'descr'"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'descr': '|u1', }"), HasSubstr("there twice"));
  EXPECT_THAT(header_refusal("{'extra': '|u1', }"), HasSubstr("the key \"extra\" is unknown"));
  EXPECT_THAT(header_refusal("{'descr': 'u1', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("does not begin with a byte order"));
  EXPECT_THAT(header_refusal("{'descr': '', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("dtype \"\" is none"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (1,), }"),
              HasSubstr("expected True or False"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,), }"),
              HasSubstr("NPY header"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (1 2), }"),
              HasSubstr("expected ',' or ')'"));
  EXPECT_THAT(header_refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), } more"),
              HasSubstr("text after the dictionary"));
  EXPECT_THAT(header_refusal("{'descr': '|u1"), HasSubstr("a string that does not end"));
  EXPECT_THAT(header_refusal("{'descr': '|u1' 'shape'"), HasSubstr("expected ',' or '}'"));
}

TEST_F(Npy, refuses_other_amounts_than_promised) {
  EXPECT_THAT(refusal(npy_head("<f4", "(2,)") + "1234567"),
              HasSubstr("promises 8 bytes of elements, the file has 7"));
  EXPECT_THAT(refusal(npy_head("<f4", "(2,)") + "123456789"), HasSubstr("more than the 8 bytes"));
  EXPECT_THAT(refusal(npy_head("<f4", "(1000000000,)")), HasSubstr("the file has 0"));
  EXPECT_THAT(refusal(npy_head("<f8", "(1152921504606846976,)")), HasSubstr("more than the limit"));
  EXPECT_THAT(refusal(npy_head("<f8", "(1152921504606846976, 1152921504606846976)")),
              HasSubstr("NPY header"));
  EXPECT_THAT(refusal(npy_head("<f8", "(99999999999999999999,)")), HasSubstr("expected a size"));
}

TEST_F(Npy, written_arrays_come_back) {
  const auto check = [&](const Array& array) {
    write_npy(path_, array);
    EXPECT_EQ(read_npy(path_), array);
  };
  check({{2, 2}, std::vector<float>{1, -2, 0.5, 3e30F}});
  check({{3}, std::vector<double>{1, -2, 1e300}});
  check({{1, 2}, std::vector<std::int32_t>{-5, 7}});
  check({{2}, std::vector<std::int64_t>{-(std::int64_t{1} << 60), 7}});
  check({{0, 4}, std::vector<std::uint8_t>{}});
  check({{}, std::vector<std::uint8_t>{9}});
  EXPECT_THROW(write_npy(path_, {{3}, std::vector<float>(2)}), TypeError);
  EXPECT_THROW(write_npy(path_, {{}, std::vector<float>(2)}), TypeError);
}

TEST_F(Npy, writes_the_bytes_that_num_py_writes) {
  write_npy(path_, {{2, 3}, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(io::read_file(path_), npy_head("|u1", "(2, 3)") + "\1\2\3\4\5\6");
  if constexpr (std::endian::native == std::endian::little) {
    write_npy(path_, {{1}, std::vector<float>{1.5}});
    EXPECT_EQ(io::read_file(path_), npy_head("<f4", "(1,)") + little(0x3fc00000, 4));
  }
}

// --- archives
class Npz : public Npy {
 protected:
  template <class E = ParseError>
  std::string archive_refusal(const std::string& content, const std::string& name = "a") const {
    tests::put_file(path_, content);
    try {
      read_npz(path_, name);
    } catch (const E& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(path_ + ": "));
      return error.what();
    }
    return "no error";
  }
  const std::string u1_ = npy_head("|u1", "(3,)") + "\1\2\3";
  const std::string f4_ = npy_head("<f4", "(100, 10)") + std::string(4000, '\0');
};

TEST_F(Npz, stored_and_deflated_entries) {
  for (const bool zip64 : {false, true}) {
    tests::put_file(path_, zip({{"a.npy", u1_, false, zip64},
                                {"b/c.npy", f4_, true, zip64},
                                {"readme.txt", "hello"}}));
    EXPECT_THAT(npz_names(path_), ElementsAre("a", "b/c"));
    EXPECT_THAT(std::get<std::vector<std::uint8_t>>(read_npz(path_, "a").values),
                ElementsAre(1, 2, 3));
    EXPECT_EQ(read_npz(path_, "b/c"), (Array{{100, 10}, std::vector<float>(1000)}));
  }
}

// zlib may hold output back when its input is at an end: lengths around that of a chunk.
TEST_F(Npz, deflated_entries_of_all_lengths) {
  for (int count = 32768; count < 32802; ++count) {
    std::string content = npy_head("<i8", fmt::format("({},)", count));
    for (int k = 0; k < 50; ++k) content += little(static_cast<std::uint64_t>(k * k), 8);
    content.append(static_cast<std::size_t>(count - 50) * 8, '\0');
    tests::put_file(path_, zip({{"a.npy", content, true}}));
    const Array array = read_npz(path_, "a");
    ASSERT_EQ(array.items(), count);
    EXPECT_EQ(std::get<std::vector<std::int64_t>>(array.values)[49], 49 * 49);
  }
}

TEST_F(Npz, archives_with_comments_and_without_entries) {
  std::string archive = zip({{"a.npy", u1_}});
  archive.replace(archive.size() - 2, 2, little(5, 2));
  tests::put_file(path_, archive + "hello");
  EXPECT_EQ(read_npz(path_, "a").items(), 3);
  tests::put_file(path_, zip({}));
  EXPECT_TRUE(npz_names(path_).empty());
}

TEST_F(Npz, directories_of_zip64) {
  // The same archive with a zip64 end record, and nothing in the plain one.
  const std::string plain = zip({{"a.npy", u1_, true}});
  const std::string body = plain.substr(0, plain.size() - 22);
  const std::size_t place = plain.find(little(0x02014b50, 4));
  const std::string end64 = little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) +
                            little(0, 8) + little(1, 8) + little(1, 8) +
                            little(body.size() - place, 8) + little(place, 8);
  const std::string locator =
      little(0x07064b50, 4) + little(0, 4) + little(body.size(), 8) + little(1, 4);
  const std::string end =
      little(0x06054b50, 4) + little(0, 4) + std::string(12, '\xff') + little(0, 2);
  tests::put_file(path_, body + end64 + locator + end);
  EXPECT_EQ(read_npz(path_, "a").items(), 3);
  EXPECT_THAT(archive_refusal(body + end), HasSubstr("zip end of directory (zip64 locator)"));
  EXPECT_THAT(archive_refusal(body + locator + end), HasSubstr("zip64"));
  EXPECT_THAT(archive_refusal(end), HasSubstr("zip64"));
}

TEST_F(Npz, unknown_names) {
  EXPECT_EQ(archive_refusal<TypeError>(zip({{"images.npy", u1_}, {"labels.npy", u1_}}), "label"),
            path_ + ": no array 'label'; did you mean 'labels'?; it has images, labels");
  EXPECT_EQ(archive_refusal<TypeError>(zip({}), "x"), path_ + ": no array 'x'; it has none");
}

TEST_F(Npz, refuses_what_it_does_not_read) {
  std::string archive = zip({{"a.npy", u1_}});
  const std::size_t entry = archive.find(little(0x02014b50, 4));
  std::string encrypted = archive;
  encrypted[entry + 8] = 1;
  EXPECT_THAT(archive_refusal<UnsupportedError>(encrypted), HasSubstr("is encrypted"));
  std::string method = archive;
  method[entry + 10] = 14;
  EXPECT_THAT(archive_refusal<UnsupportedError>(method), HasSubstr("packed by method 14"));
  std::string parts = archive;
  parts[archive.size() - 18] = 1;
  EXPECT_THAT(archive_refusal<UnsupportedError>(parts), HasSubstr("in several parts"));
}

TEST_F(Npz, refuses_damage) {
  EXPECT_THAT(archive_refusal(""), HasSubstr("not a zip archive"));
  EXPECT_THAT(archive_refusal("hello"), HasSubstr("not a zip archive"));
  EXPECT_THAT(archive_refusal(zip({{"a.npy", u1_}, {"a.npy", u1_}})),
              HasSubstr("two entries have the name a.npy"));
  for (const bool deflate : {false, true}) {
    std::string archive = zip({{"a.npy", u1_, deflate}});
    const std::size_t entry = archive.find(little(0x02014b50, 4));
    const auto with = [&](std::size_t at, const std::string& bytes) {
      std::string changed = archive;
      return changed.replace(at, bytes.size(), bytes);
    };
    EXPECT_THAT(archive_refusal(with(entry + 16, "\x01\x02\x03\x04")), HasSubstr("checksum"));
    EXPECT_THAT(archive_refusal(with(entry + 24, little(5, 4))), HasSubstr("the directory says 5"));
    EXPECT_THAT(archive_refusal(with(entry + 20, little(1u << 30, 4))),
                HasSubstr("beyond the end of the file"));
    EXPECT_THAT(archive_refusal(with(entry + 42, little(7, 4))), HasSubstr("none at byte 7"));
    EXPECT_THAT(archive_refusal(with(entry, "XX")), HasSubstr("zip directory"));
    EXPECT_THAT(archive_refusal(with(archive.size() - 12, little(2, 2))), HasSubstr("announced"));
    EXPECT_THAT(archive_refusal(with(archive.size() - 10, little(1u << 31, 4))),
                HasSubstr("a zip directory of 2147483648 bytes"));
  }
}

}  // namespace
}  // namespace pantala::data
