// The facts as a file.
#include "run/core/data_facts.h"

#include <fmt/format.h>

#include "io/json.h"
#include "pantala/error.h"

namespace pantala::run {

std::string class_title(const DataFacts& facts, std::size_t klass) {
  return klass < facts.names.size() ? facts.names[klass] : fmt::to_string(klass);
}

namespace {
// Older runs have their number, which is 0 where an item has one class.
Shape positions_in(const io::Json& json) {
  if (!json.is_number()) return Shape(json.get<std::vector<std::int64_t>>());
  const std::int64_t count = json.get<std::int64_t>();
  return count == 0 ? Shape{} : Shape{count};
}
}  // namespace

std::string facts_json(const DataFacts& facts) {
  io::OrderedJson columns = io::OrderedJson::array();
  for (const data::Column& column : facts.columns)
    columns.push_back(
        {{"name", column.name}, {"texts", column.texts}, {"one_hot", column.one_hot}});
  return io::OrderedJson{{"item", facts.item.vec()},
                         {"classes", facts.classes},
                         {"targets", facts.targets},
                         {"positions", facts.positions.vec()},
                         {"names", facts.names},
                         {"columns", columns},
                         {"fill", facts.fill},
                         {"factor", facts.factor},
                         {"mean", facts.mean},
                         {"std", facts.std},
                         {"target_mean", facts.target_mean},
                         {"target_std", facts.target_std},
                         {"tokens", facts.tokens},
                         {"hash", facts.hash}}
             .dump(1) +
         "\n";
}

DataFacts read_facts(const std::filesystem::path& path) {
  const io::Json json = io::read_json(path);
  DataFacts facts = io::extract(path.string(), [&] {
    std::vector<data::Column> columns;
    for (const io::Json& column : json.at("columns"))
      columns.push_back({column.at("name"), column.at("texts"), column.value("one_hot", false)});
    return DataFacts{.item = Shape(json.at("item").get<std::vector<std::int64_t>>()),
                     .classes = json.at("classes"),
                     .targets = json.at("targets"),
                     .positions = positions_in(json.at("positions")),
                     .names = json.at("names"),
                     .columns = std::move(columns),
                     .fill = json.value("fill", std::vector<double>()),
                     .factor = json.at("factor"),
                     .mean = json.at("mean"),
                     .std = json.at("std"),
                     .target_mean = json.at("target_mean"),
                     .target_std = json.at("target_std"),
                     .tokens = json.at("tokens"),
                     .hash = json.at("hash")};
  });
  const auto named = static_cast<std::int64_t>(facts.names.size()),
             scaled = static_cast<std::int64_t>(facts.target_mean.size());
  const std::int64_t outputs = facts.classes + facts.targets;
  if (facts.classes < 0 || facts.targets < 0 || outputs < 1 || outputs > DataFacts::kMaxClasses ||
      (facts.classes > 0 && facts.targets > 0) || named > facts.classes ||
      facts.mean.size() != facts.std.size() || (scaled != 0 && scaled != facts.targets) ||
      facts.target_mean.size() != facts.target_std.size())
    throw ParseError(
        fmt::format("{}: the numbers in this file do not fit together", path.string()));
  return facts;
}

}  // namespace pantala::run
