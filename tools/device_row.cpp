#include "tools/device_row.h"

#include <variant>
#include <vector>

#include "device/describe.h"
#include "runtime/qualification.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

Json values_of(const std::vector<device::Fact>& facts) {
  Json values = Json::object();
  for (const device::Fact& fact : facts)
    std::visit([&](const auto& value) { values[fact.name] = value; }, fact.value);
  return values;
}

}  // namespace

nlohmann::ordered_json device_row(const std::string& name, bool probe) {
  const device::Description device = device::describe(name, probe);
  Json row{{"name", name}, {"description", device.text}};
  row.update(values_of(device.facts));
  if (!device.probed.empty()) row["probe"] = values_of(device.probed);
  if (const auto tested = runtime::remembered_qualification(name)) row["tested"] = tested->text();
  return row;
}

}  // namespace pantala::tools
