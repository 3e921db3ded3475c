#include "run/core/key_types.h"
#include "run/sources/source.h"

namespace pantala::run {

namespace {

// Columns and labels are numbered as the model knows them.
SourceSets open_csv(const SourceRequest& request) {
  data::CsvOptions options{.label = request.config.data.label};
  if (request.facts) options.like = request.facts->columns;
  options.label_may_lack = request.items_alone;
  return {data::read_csv(request.path, options)};
}

}  // namespace

Source csv_source() {
  return {.name = "csv",
          .argument = "FILE",
          .help = "a row per item",
          .ending = ".csv",
          .keys = {name_or_number("data.label", RUN_FIELD(data.label),
                                  "Of csv: the column of the label, by name or by number from 0; "
                                  "\"\": the last one")},
          .open = open_csv,
          .labels_may_lack = true};
}

}  // namespace pantala::run
