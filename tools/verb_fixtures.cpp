// pantala fixtures DIR: runs the recorded cases of a folder on a device and compares. The last line
// is `N passed, M failed`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "tools/command.h"
#include "tools/fixtures/fixtures.h"
#include "tools/options.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string folder, device = "ref", target, filter;
  bool json = false;
};

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = list.find(',', begin);
    if (const std::string_view part = list.substr(begin, end - begin); !part.empty())
      parts.emplace_back(part);
  }
  return parts;
}

// The cases whose names start with one of the filters, in the order of the files. A filter without
// a case is a mistake in its name.
std::vector<std::string> select(const std::vector<std::string>& names,
                                const std::vector<std::string>& filters) {
  if (filters.empty()) return names;
  for (const std::string& filter : filters)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.starts_with(filter); }))
      throw TypeError(
          fmt::format("no case starts with '{}'{}", filter, did_you_mean(filter, names)));
  std::vector<std::string> selected;
  for (const std::string& name : names)
    if (std::any_of(filters.begin(), filters.end(),
                    [&](const std::string& filter) { return name.starts_with(filter); }))
      selected.push_back(name);
  return selected;
}

// JSON has no NaN or infinity: they become text.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(exact(value)); }

Json to_json(const CaseResult& result) {
  Json failures = Json::array();
  for (const Mismatch& m : result.mismatches) {
    if (!m.message.empty())
      failures.push_back({{"tensor", m.tensor}, {"message", m.message}});
    else
      failures.push_back({{"tensor", m.tensor},
                          {"error", number(m.error)},
                          {"bound", m.bound},
                          {"index", m.index},
                          {"expected", number(m.expected)},
                          {"got", number(m.got)}});
  }
  return {{"case", result.name},
          {"passed", result.passed()},
          {"share_of_bound", number(result.worst)},
          {"failures", failures}};
}

void print(const CaseResult& result, bool json) {
  if (json)
    fmt::print("{}\n", to_json(result).dump());
  else
    for (const Mismatch& mismatch : result.mismatches)
      fmt::print("FAILED {}: {}\n", result.name, to_text(mismatch));
}

// Whether a filter names this model rather than all models.
bool asked_for(const std::string& name, const std::vector<std::string>& filters) {
  return std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
    return filter.size() > std::string_view("models/").size() && name.starts_with(filter);
  });
}

int run(const Options& options) {
  Device device = parse_device(options.device);
  device.target = options.target;
  const Fixtures fixtures(options.folder);
  const std::vector<std::string> filters = split(options.filter);
  int passed = 0, failed = 0;
  std::vector<std::string> not_available;
  for (const std::string& name : select(fixtures.names(), filters)) {
    if (!fixtures.available(name) && !asked_for(name, filters)) {
      not_available.push_back(name);
      continue;
    }
    const CaseResult result = fixtures.run(name, device);
    ++(result.passed() ? passed : failed);
    print(result, options.json);
  }
  if (options.json)
    fmt::print("{}\n", Json{{"device", options.device},
                            {"passed", passed},
                            {"failed", failed},
                            {"not_available", not_available}}
                           .dump());
  else if (!not_available.empty())
    fmt::print("not available: {}\n", fmt::join(not_available, ", "));
  if (passed + failed == 0) throw TypeError("none of the cases is available");
  fmt::print(options.json ? stderr : stdout, "{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : kExitFailed;
}

}  // namespace

Run fixtures_verb(VerbOptions& verb) {
  const auto options = std::make_shared<Options>();
  verb.add_option("DIR", options->folder,
                  "The folder with ops.json, layers.json, optimizers.json, schedules.json, models/")
      ->envname("PANTALA_FIXTURES")
      ->required();
  verb.add_option("--device", options->device,
                  fmt::format("Where to run: {}", fmt::join(device_names(), ", ")))
      ->capture_default_str();
  verb.add_option("--target", options->target,
                  "The class of processors that kernels are made for, as in the option of compile; "
                  "kir also takes gpu");
  verb.add_option("--filter", options->filter,
                  "Only cases whose names start with one of these, separated by commas: "
                  "ops/softmax,optimizers/");
  verb.add_flag("--json", options->json, "One JSON object a line per case, then a summary");
  return [options] { return run(*options); };
}

}  // namespace pantala::tools
