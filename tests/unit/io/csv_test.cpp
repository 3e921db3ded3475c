// CSV: the grammar, the types of columns, and mistakes with their places.
#include "io/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pantala/data.h"
#include "pantala/error.h"
#include "support/data_files.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using tests::message_of;

// --- the grammar
using Records = std::vector<std::vector<std::string>>;
Records records(const std::string& text, char separator = ',') {
  io::CsvReader reader("file", text, separator);
  Records all;
  while (reader.next()) {
    std::vector<std::string>& record = all.emplace_back();
    for (const io::CsvField& field : reader.fields()) record.emplace_back(field.text);
  }
  return all;
}
std::string grammar_error(const std::string& text, const io::CsvLimits& limits = {}) {
  return message_of<ParseError>([&] {
    io::CsvReader reader("file", text, ',', limits);
    while (reader.next()) {}
  });
}

TEST(CsvReader, line_ends_of_every_system) {
  const Records expected = {{"a", "b"}, {"1", "2"}};
  EXPECT_EQ(records("a,b\n1,2\n"), expected);
  EXPECT_EQ(records("a,b\r\n1,2\r\n"), expected);
  EXPECT_EQ(records("a,b\r1,2"), expected);
  EXPECT_EQ(records("a,b\n1,2\n\n\r\n\n"), expected);
  EXPECT_EQ(records("\xEF\xBB\xBF"
                    "a,b\n1,2"),
            expected);
  EXPECT_THAT(records(""), IsEmpty());
  EXPECT_THAT(records("\n\n"), IsEmpty());
}

TEST(CsvReader, quotes_hold_anything) {
  EXPECT_EQ(records("\"a,b\",\"c\"\"d\",\"e\nf\r\ng\",\"\"\n1,2,3,4"),
            (Records{{"a,b", "c\"d", "e\nf\r\ng", ""}, {"1", "2", "3", "4"}}));
  EXPECT_EQ(records("\"\"\"\"\"\""), (Records{{"\"\""}}));
  EXPECT_EQ(records("\"a\" , \" b \""), (Records{{"a", " b "}}));
}

TEST(CsvReader, spaces_and_empty_fields) {
  EXPECT_EQ(records(" a ,\tb,,\n"), (Records{{"a", "b", "", ""}}));
  EXPECT_EQ(records("a\tb\t\tc", '\t'), (Records{{"a", "b", "", "c"}}));
  EXPECT_EQ(records("1;2", ';'), (Records{{"1", "2"}}));
}

TEST(CsvReader, counts_lines_inside_quotes) {
  const std::string text = "a\n\"x\ny\r\nz\"\n\"u\rv\"\nb";
  io::CsvReader reader("file", text, ',');
  std::vector<std::int64_t> lines;
  while (reader.next()) lines.push_back(reader.line());
  EXPECT_THAT(lines, ElementsAre(1, 2, 5, 7));
}

TEST(CsvReader, refuses_broken_quotes) {
  EXPECT_EQ(grammar_error("a,b\n1,\"x\ny\nz"),
            "file: line 2: column 1: a quote that is not closed");
  EXPECT_EQ(grammar_error("a,b\n1,\"x\"y\n"),
            "file: line 2: column 1: text behind the closing quote of a field");
  EXPECT_EQ(grammar_error("a,5\"\n"),
            "file: line 1: column 1: a quote inside a field that does not begin with one");
}

TEST(CsvReader, refuses_empty_lines_between_others) {
  EXPECT_EQ(grammar_error("a,b\n\n\n1,2\n"), "file: line 2: an empty line between others");
  EXPECT_EQ(grammar_error("\na,b\n"), "file: line 1: an empty line between others");
}

TEST(CsvReader, bounds_lines_and_fields) {
  const io::CsvLimits limits{.record_bytes = 20, .fields = 4};
  EXPECT_EQ(grammar_error("1,2,3,4\n", limits), "no error");
  EXPECT_EQ(grammar_error("1,2,3,4,5\n", limits), "file: line 1: more than 4 fields");
  EXPECT_EQ(grammar_error("1\n" + std::string(21, 'x'), limits),
            "file: line 2: longer than 20 bytes; is a quote not closed?");
  EXPECT_EQ(grammar_error("\"" + std::string(1000, '\n'), limits),
            "file: line 1: longer than 20 bytes; is a quote not closed?");
}

// --- data sets
class Csv : public testing::Test {
 protected:
  Dataset read(const std::string& text, const CsvOptions& options = {}) const {
    tests::put_file(path_, text);
    return read_csv(path_, options);
  }
  template <class E = ParseError>
  std::string refusal(const std::string& text, const CsvOptions& options = {}) const {
    const std::string message = message_of<E>([&] { read(text, options); });
    const std::string start = path_ + ": ";
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(std::min(start.size(), message.size()));
  }

  const tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("table.csv");
};
std::vector<float> data_of(const Dataset& dataset) {
  return std::get<std::vector<float>>(dataset.data->values);
}
std::vector<std::int64_t> classes_of(const Dataset& dataset) {
  return std::get<std::vector<std::int64_t>>(dataset.labels->values);
}

TEST_F(Csv, numbers_and_classes) {
  const Dataset dataset = read("x,y,kind\n1,-2.5e1,0\n+3,.5,2\n");
  EXPECT_EQ(dataset.data->shape, (Shape{2, 2}));
  EXPECT_THAT(data_of(dataset), ElementsAre(1, -25, 3, 0.5f));
  EXPECT_EQ(dataset.labels->shape, (Shape{2}));
  EXPECT_THAT(classes_of(dataset), ElementsAre(0, 2));
  EXPECT_THAT(dataset.classes, IsEmpty());
  EXPECT_EQ(dataset.name, "table.csv");
}

TEST_F(Csv, names_become_classes_in_order_of_appearance) {
  const Dataset dataset = read("colour,size,kind\nred,1,cat\nblue,2,dog\nred,3,\"cat\"\n,4,dog\n");
  EXPECT_THAT(data_of(dataset), ElementsAre(0, 1, 1, 2, 0, 3, 2, 4));
  EXPECT_THAT(classes_of(dataset), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(dataset.classes, ElementsAre("cat", "dog"));
}

TEST_F(Csv, an_empty_name_before_others_is_a_class_too) {
  EXPECT_THAT(data_of(read("a,b\n,1\nx,1\n,1\n")), ElementsAre(0, 1, 0));
}

TEST_F(Csv, quoted_numbers_may_be_names) {
  EXPECT_THAT(classes_of(read("a,b\n1,12A\n2,\"12\"\n")), ElementsAre(0, 1));
  EXPECT_THAT(data_of(read("a,b\n\"1.5\",1\n")), ElementsAre(1.5f));
}

TEST_F(Csv, other_labels_are_numbers) {
  const auto numbers = [&](const std::string& text) {
    const Dataset dataset = read(text);
    EXPECT_EQ(dataset.labels->shape.rank(), 2);
    EXPECT_EQ(dataset.labels->shape[1], 1);
    return std::get<std::vector<float>>(dataset.labels->values);
  };
  EXPECT_THAT(numbers("1,2\n3,2.5\n"), ElementsAre(2, 2.5f));
  EXPECT_THAT(numbers("1,2.0\n"), ElementsAre(2));
  EXPECT_THAT(numbers("1,-1\n2,1\n"), ElementsAre(-1, 1));
}

TEST_F(Csv, label_by_name_or_number) {
  const std::string text = "x,kind,y\n1,7,2\n3,8,4\n";
  for (const char* label : {"kind", "1"}) {
    const Dataset dataset = read(text, {.label = label});
    EXPECT_THAT(classes_of(dataset), ElementsAre(7, 8));
    EXPECT_THAT(data_of(dataset), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_THAT(classes_of(read("2,1,0\n5,6,7\n", {.header = true, .label = "2"})), ElementsAre(5));
  EXPECT_EQ(refusal<TypeError>(text, {.label = "kid"}),
            "there is no label column 'kid'; did you mean 'kind'? (columns 0 to 2: x, kind, y)");
  EXPECT_EQ(refusal<TypeError>(text, {.label = "3"}),
            "there is no label column '3' (columns 0 to 2: x, kind, y)");
  EXPECT_EQ(refusal<TypeError>("1,2\n", {.label = "kind"}),
            "there is no label column 'kind'; the file has no header, so give its number "
            "(columns 0 to 1)");
  EXPECT_EQ(refusal<TypeError>("a,a,b\n1,2,3\n", {.label = "a"}),
            "two columns have the name of the label, 'a'; give its number, from 0");
}

TEST_F(Csv, finds_out_whether_there_is_a_header) {
  EXPECT_EQ(read("1,2\n3,4\n").size(), 2);
  EXPECT_EQ(read("a,b\n3,4\n").size(), 1);
  EXPECT_EQ(read("0,1,label\n3,4,5\n").size(), 1);  // a name above a number
  EXPECT_EQ(read("5.1,3.5,setosa\n4.9,3.0,setosa\n").size(), 2);
  EXPECT_EQ(read("a,b\nx,y\n").size(), 1);  // only names
  EXPECT_EQ(read("a,b\nx,y\n", {.header = false}).size(), 2);
  EXPECT_EQ(read("1,2\n3,4\n", {.header = true}).size(), 1);
}

TEST_F(Csv, other_separators) {
  EXPECT_THAT(data_of(read("a;b\n1;2\n", {.separator = ';'})), ElementsAre(1));
  EXPECT_THAT(data_of(read("a\tb\n1\t2\n", {.separator = '\t'})), ElementsAre(1));
  EXPECT_EQ(refusal("a;b\n1;2\n"),
            "line 1: a single column; expected data and a label, separated by ','");
  for (const char bad : {'"', '\n', '\r', '.', '-', '+', '0', 'e', '\0'})
    EXPECT_THROW(read("a,b\n1,2\n", {.separator = bad}), TypeError);
}

TEST_F(Csv, says_where_numbers_are_none) {
  EXPECT_EQ(refusal("x,y\n1,2\n3\n"), "line 3: 1 field; the lines before have 2");
  EXPECT_EQ(refusal("x,y\n1,2\n3,4,5\n"), "line 3: 3 fields; the lines before have 2");
  EXPECT_EQ(refusal("x,y\n1,2\n,4\n"),
            "line 3, column 'x': an empty field in a column of numbers; "
            "data.missing (drop or mean) says what becomes of missing values");
  EXPECT_EQ(refusal("x,y\n,2\n3,4\n"),
            "line 2, column 'x': an empty field in a column of numbers; "
            "data.missing (drop or mean) says what becomes of missing values");
  EXPECT_EQ(refusal("1,2\nabc,4\n"),
            "line 2, column 0 (from 0): \"abc\" in a column of numbers (line 1 has \"1\")");
  EXPECT_EQ(refusal("x,y\nNA,2\n3,4\n", {.header = true}),
            "line 3, column 'x': 3 in a column of names (line 2 has \"NA\"); data.missing (drop or "
            "mean) says what becomes of missing values");
  EXPECT_EQ(refusal("x,y\n1,2\nnan,4\n"),
            "line 3, column 'x': \"nan\" is not a finite number; "
            "data.missing (drop or mean) says what becomes of missing values");
  EXPECT_EQ(refusal("x,y\nred,2\n3,4\n"),
            "line 3, column 'x': 3 in a column of names (line 2 has \"red\"); put it in quotes if "
            "it is one");
  EXPECT_EQ(refusal("x,y\n-inf,2\n"), "line 2, column 'x': \"-inf\" is not a finite number");
  EXPECT_EQ(refusal("x,y\n1e39,2\n"), "line 2, column 'x': \"1e39\" is out of the range of f32");
  EXPECT_EQ(refusal("x,y\n1e999,2\n"), "line 2, column 'x': \"1e999\" is out of the range of f32");
  EXPECT_EQ(refusal("x,y\n1,2\n3,\n"), "line 3, column 'y': the label is empty");
  EXPECT_EQ(refusal("x,z,y\n,1,2\n,3,4\n"),
            "line 2, column 'x': all fields of the column are empty");
}

TEST_F(Csv, refuses_files_without_data) {
  EXPECT_EQ(refusal(""), "line 1: the file is empty");
  EXPECT_EQ(refusal("\n\n"), "line 1: the file is empty");
  EXPECT_EQ(refusal("x,y\n"), "there are no lines of data");
  EXPECT_EQ(refusal("\xFF\xFEx\0,\0"), "line 1: the text is UTF-16; save it as UTF-8");
  EXPECT_THROW(read_csv(folder_.file("nothing.csv")), IoError);
  EXPECT_THROW(read_csv(folder_.path()), IoError);
}

TEST_F(Csv, reads_what_a_spreadsheet_writes) {
  const Dataset dataset = read(
      "\xEF\xBB\xBF\"Height, m\",\"Says \"\"hi\"\"\",Kind\r\n1.8,yes,a\r\n1.7,\"no, or\nso\",b\r\n",
      {.label = "Kind"});
  EXPECT_THAT(data_of(dataset), ElementsAre(1.8f, 0, 1.7f, 1));
  EXPECT_THAT(dataset.classes, ElementsAre("a", "b"));
}

// --- separators
constexpr std::optional<char> kAuto = std::nullopt;

TEST_F(Csv, finds_the_separator_that_makes_a_table) {
  for (const char* text : {"a,b\n1,2\n", "a;b\n1;2\n", "a\tb\n1\t2\n", "a|b\n1|2\n"})
    EXPECT_THAT(data_of(read(text, {.separator = kAuto})), ElementsAre(1)) << text;
  EXPECT_THAT(data_of(read("a,b\n\"x;y\",2\n", {.separator = kAuto})), ElementsAre(0));
  EXPECT_EQ(refusal<TypeError>("a,b;c\n1,2;3\n", {.separator = kAuto}),
            "its fields could be separated by ',' and by ';'; say by which (data.separator)");
  EXPECT_EQ(refusal("a\n1\n", {.separator = kAuto}),
            "line 1: a single column; expected data and a label, separated by ',', ';', a tab or "
            "'|'");
}

TEST_F(Csv, a_decimal_comma_is_no_name) {
  EXPECT_EQ(
      refusal("x;y\n1,5;2\n", {.separator = kAuto}),
      "line 2, column 'x': \"1,5\" is a number with a decimal comma; write a point, or put it "
      "in quotes if it is a name");
  EXPECT_EQ(refusal("x;y\na;2\n-1,5;2\n", {.separator = ';'}),
            "line 3, column 'x': \"-1,5\" is a number with a decimal comma; write a point, or put "
            "it in quotes if it is a name");
  EXPECT_THAT(data_of(read("x;y\n\"1,5\";2\n", {.separator = ';'})), ElementsAre(0));
}

// --- missing values
TEST_F(Csv, lines_with_a_missing_value_can_be_left_out) {
  const Dataset dataset =
      read("x,colour,kind\n,red,a\n1,blue,b\n2,?,a\n3,\"?\",b\n4,red,\nNA,red,a\n5,red,c\n",
           {.missing = Missing::drop, .keep_rows = true});
  EXPECT_THAT(data_of(dataset), ElementsAre(1, 0, 3, 1, 5, 2));
  EXPECT_THAT(dataset.columns[1].texts, ElementsAre("blue", "?", "red"));
  EXPECT_THAT(dataset.classes, ElementsAre("b", "c"));
  EXPECT_THAT(dataset.rows->numbers, ElementsAre(1, 3, 6));
  EXPECT_EQ(refusal("x,y\n,1\n2,\n", {.missing = Missing::drop}),
            "in every line a value is missing");
}

TEST_F(Csv, missing_numbers_can_be_kept_as_nan) {
  const Dataset dataset = read("x,y,colour,kind\n,nan,NA,0\nNA,2,red,1\n3,n/a,,2\n?,4,red,3\n",
                               {.header = true, .missing = Missing::keep});
  const std::vector<float> data = data_of(dataset);
  std::vector<float> known;
  for (const std::size_t k : {6U, 4U, 10U}) known.push_back(data[k]);
  EXPECT_THAT(known, ElementsAre(3, 2, 4));
  for (const std::size_t k : {0U, 1U, 3U, 7U, 9U}) EXPECT_TRUE(std::isnan(data[k])) << k;
  // A missing text is a text like others.
  EXPECT_THAT(dataset.columns[2].texts, ElementsAre("NA", "red", ""));
  EXPECT_TRUE(dataset.columns[0].texts.empty());
  EXPECT_EQ(refusal("x,y\n1,0\n2,\n", {.missing = Missing::keep}),
            "line 3, column 'y': the label is empty");
  EXPECT_EQ(refusal("x,z,y\nNA,1,2\n?,3,4\n", {.header = true, .missing = Missing::keep}),
            "line 2, column 'x': all fields of the column are empty");
  // A model that knows the column to hold numbers needs none of them.
  const Dataset like =
      read("x,z,y\nNA,1,2\n?,3,4\n",
           {.header = true, .like = {{"x", {}}, {"z", {}}}, .missing = Missing::keep});
  EXPECT_TRUE(std::isnan(data_of(like)[0]));
}

// --- one-hot
TEST_F(Csv, texts_can_become_a_column_each) {
  const std::string text = "colour,size,shape,kind\nred,1,flat,0\nblue,2,round,1\nred,3,round,0\n";
  const Dataset named = read(text, {.one_hot = {"colour"}});
  EXPECT_EQ(named.data->shape, (Shape{3, 4}));
  EXPECT_THAT(data_of(named), ElementsAre(1, 0, 1, 0,  //
                                          0, 1, 2, 1,  //
                                          1, 0, 3, 1));
  EXPECT_TRUE(named.columns[0].one_hot);
  EXPECT_FALSE(named.columns[2].one_hot);
  const Dataset all = read(text, {.one_hot = {"*"}});
  EXPECT_THAT(data_of(all), ElementsAre(1, 0, 1, 1, 0,  //
                                        0, 1, 2, 0, 1,  //
                                        1, 0, 3, 0, 1));
  // What is named is text, whatever it looks like; by number, too.
  EXPECT_THAT(data_of(read(text, {.one_hot = {"1"}})),
              ElementsAre(0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1));
}

TEST_F(Csv, one_hot_columns_are_those_that_the_model_knows) {
  const Dataset known = read("colour,size,kind\nred,1,0\nblue,2,1\n", {.one_hot = {"*"}});
  const CsvOptions options{.like = known.columns, .one_hot = {"*"}};
  EXPECT_THAT(data_of(read("colour,size,kind\nblue,5,1\n", options)), ElementsAre(0, 1, 5));
  EXPECT_EQ(refusal("colour,size,kind\nblau,5,1\n", options),
            "line 2, column 'colour': \"blau\" is not among the texts of the data that the model "
            "was made for; did you mean 'blue'?");
}

TEST_F(Csv, one_hot_columns_must_be_there_and_not_too_many) {
  const std::string text = "colour,size,kind\nred,1,0\n";
  EXPECT_EQ(refusal<TypeError>(text, {.one_hot = {"color"}}),
            "there is no column 'color' to make one-hot; did you mean 'colour'?");
  EXPECT_EQ(refusal<TypeError>(text, {.one_hot = {"kind"}}),
            "column 'kind' is the label, which is no column of data to make one-hot");
  EXPECT_EQ(refusal<TypeError>(text, {.one_hot = {"s*"}}),
            "there is no column of text 's*' to make one-hot");
  std::string many = "id,kind\n";
  for (int k = 0; k < 4097; ++k) many += "n" + std::to_string(k) + ",0\n";
  EXPECT_EQ(refusal<TypeError>(many, {.one_hot = {"id"}}),
            "column 0 (from 0) has 4097 different texts; at most 4096 are made one-hot");
}

TEST_F(Csv, rows_are_kept_as_they_stand_there) {
  const Dataset dataset =
      read("a,b,kind\n01,\"x, y\",cat\n2.50,z,dog\n", {.label = "kind", .keep_rows = true});
  EXPECT_THAT(dataset.rows->fields, ElementsAre("01", "x, y", "2.50", "z"));
  EXPECT_THAT(dataset.rows->labels, ElementsAre("cat", "dog"));
  const Dataset second = slice(dataset, 1, 1);
  EXPECT_THAT(second.rows->numbers, ElementsAre(1));
  EXPECT_THAT(second.rows->fields, ElementsAre("2.50", "z"));
  EXPECT_THAT(second.rows->labels, ElementsAre("dog"));
  EXPECT_EQ(read("a,b\n1,2\n").rows, nullptr);
}

}  // namespace
}  // namespace pantala::data
