// What a model must know of its data, as a file of the run folder.
#include <fmt/format.h>

#include "io/json.h"
#include "pantala/error.h"
#include "tools/train/source.h"

namespace pantala::tools {

std::string profile_json(const DataProfile& profile) {
  io::OrderedJson columns = io::OrderedJson::array();
  for (const data::Column& column : profile.columns)
    columns.push_back({{"name", column.name}, {"texts", column.texts}});
  return io::OrderedJson{{"item", profile.item.vec()},
                         {"classes", profile.classes},
                         {"targets", profile.targets},
                         {"positions", profile.positions},
                         {"names", profile.names},
                         {"columns", columns},
                         {"factor", profile.factor},
                         {"mean", profile.mean},
                         {"std", profile.std},
                         {"target_mean", profile.target_mean},
                         {"target_std", profile.target_std},
                         {"tokens", profile.tokens},
                         {"hash", profile.hash}}
             .dump(1) +
         "\n";
}

DataProfile read_profile(const std::filesystem::path& path) {
  const io::Json json = io::read_json(path);
  DataProfile profile = io::extract(path.string(), [&] {
    std::vector<data::Column> columns;
    for (const io::Json& column : json.at("columns"))
      columns.push_back({column.at("name"), column.at("texts")});
    return DataProfile{.item = Shape(json.at("item").get<std::vector<std::int64_t>>()),
                       .classes = json.at("classes"),
                       .targets = json.at("targets"),
                       .positions = json.at("positions"),
                       .names = json.at("names"),
                       .columns = std::move(columns),
                       .factor = json.at("factor"),
                       .mean = json.at("mean"),
                       .std = json.at("std"),
                       .target_mean = json.at("target_mean"),
                       .target_std = json.at("target_std"),
                       .tokens = json.at("tokens"),
                       .hash = json.at("hash")};
  });
  const auto named = static_cast<std::int64_t>(profile.names.size()),
             scaled = static_cast<std::int64_t>(profile.target_mean.size());
  const std::int64_t outputs = profile.classes + profile.targets;
  if (profile.classes < 0 || profile.targets < 0 || outputs < 1 || profile.positions < 0 ||
      outputs > DataProfile::kMaxClasses || (profile.classes > 0 && profile.targets > 0) ||
      named > profile.classes || profile.mean.size() != profile.std.size() ||
      (scaled != 0 && scaled != profile.targets) ||
      profile.target_mean.size() != profile.target_std.size())
    throw ParseError(
        fmt::format("{}: the numbers in this file do not fit together", path.string()));
  return profile;
}

}  // namespace pantala::tools
