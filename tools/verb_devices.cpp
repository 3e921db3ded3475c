// pantala devices: what programs can be run on here.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/device.h"
#include "tools/command.h"
#include "tools/device_row.h"
#include "tools/options.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

// The devices that plans are made for, and the interpreter of graphs.
std::vector<Json> rows(bool probe) {
  std::vector<Json> rows;
  for (const std::string& name : device::devices_here()) rows.push_back(device_row(name, probe));
  rows.push_back(
      {{"name", "ref"},
       {"description", "the reference interpreter: every op in double precision; slow"}});
  return rows;
}

}  // namespace

Run devices_verb(VerbOptions& verb) {
  const auto json = std::make_shared<bool>(false), probes = std::make_shared<bool>(false);
  verb.add_flag(
      "--probe", *probes,
      "Measure what the processor does at most: multiply-adds of f32 on all threads and on "
      "one, and bytes of memory that are read or copied");
  verb.add_flag("--json", *json, "One JSON object a line");
  return [json, probes] {
    for (const Json& row : rows(*probes)) {
      if (*json)
        fmt::print("{}\n", row.dump());
      else
        fmt::print("{:8}  {}{}\n", row.at("name").get<std::string>(),
                   row.at("description").get<std::string>(),
                   row.contains("tested") ? "; " + row.at("tested").get<std::string>() : "");
    }
    return 0;
  };
}

}  // namespace pantala::tools
