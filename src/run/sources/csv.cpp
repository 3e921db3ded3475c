#include "base/text.h"
#include "run/core/key_types.h"
#include "run/sources/source.h"

namespace pantala::run {

namespace {

std::optional<char> separator_of(const std::string& text) {
  if (text == "auto") return {};
  return text == "tab" ? '\t' : text[0];
}

data::Missing missing_of(const std::string& text) {
  if (text == "drop") return data::Missing::drop;
  return text == "mean" ? data::Missing::keep : data::Missing::error;
}

// Columns and labels are numbered as the model knows them. Who wants the truth is given it as text,
// and the rest of the row too: a label of a class that the model does not know is no mistake here.
SourceSets open_csv(const SourceRequest& request) {
  const RunConfig& config = request.config;
  data::CsvOptions options{.separator = separator_of(config.data.separator),
                           .label = config.data.label,
                           .missing = missing_of(config.data.missing),
                           .one_hot = comma_parts(config.data.onehot)};
  if (request.facts) options.like = request.facts->columns;
  options.label_may_lack = request.items_alone;
  options.keep_rows = request.items_alone;
  return {data::read_csv(request.path, options)};
}

Key separator_key() {
  return field_key("data.separator", RUN_FIELD(data.separator), "auto, tab or one character",
                   "Of csv: what stands between two fields. auto: a comma, semicolon, tab or |, "
                   "whichever makes a table of the file",
                   Effect::numbers, [](const Given& given) {
                     const auto& text = given.must_be<std::string>();
                     if (text != "auto" && text != "tab" && text.size() != 1) given.refuse();
                     return text;
                   });
}

}  // namespace

Source csv_source() {
  return {
      .name = "csv",
      .argument = "FILE",
      .help = "a row per item",
      .endings = {".csv", ".tsv"},
      .keys = {name_or_number("data.label", RUN_FIELD(data.label),
                              "Of csv: the column of the label, by name or by number from 0; "
                              "\"\": the last one"),
               separator_key(),
               choice("data.missing", RUN_FIELD(data.missing), {"error", "drop", "mean"},
                      "Of csv: what an empty field, NA, nan, null or ? means: a mistake; its line "
                      "is left out; or the mean of the column in the training set"),
               name_or_number("data.onehot", RUN_FIELD(data.onehot),
                              "Of csv: columns of text that become a column per text, by name, "
                              "number or pattern (\"*\": all), several with commas between; "
                              "\"\": texts become numbers")},
      .open = open_csv,
      .labels_may_be_missing = true};
}

}  // namespace pantala::run
