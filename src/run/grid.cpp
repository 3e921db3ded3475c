#include "run/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/log.h"
#include "io/file.h"
#include "io/json.h"
#include "monitor/run_log.h"
#include "monitor/run_plots.h"
#include "monitor/run_series.h"
#include "pantala/error.h"
#include "run/run_folder.h"

namespace pantala::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 10000;
constexpr std::size_t kMostNameBytes = 120;

// "a,[b,c],\"d,e\"" in its parts.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c == '[') ++depth;
    if (!quoted && c == ']') --depth;
    if (c == ',' && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// For the name of a folder: "0.001", "12x6", "none".
std::string plain_text(const ConfigValue& value) {
  std::string text;
  if (const auto* said = std::get_if<std::string>(&value))
    text = *said;
  else if (const auto* numbers = std::get_if<std::vector<double>>(&value))
    text = fmt::format("{}", fmt::join(*numbers, "x"));
  else if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    text = fmt::format("{}", fmt::join(*texts, "+"));
  else
    text = value_text(value);
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.' || c == '+';
    if (!plain) c = '-';
  }
  return text.empty() ? "none" : text;
}

// What stands for the key in names: its last part, unless another one has the same.
std::string short_key(const std::string& key, const std::vector<GridAxis>& axes) {
  const auto last = [](const std::string& name) { return name.substr(name.find_last_of('.') + 1); };
  const auto same = std::count_if(
      axes.begin(), axes.end(), [&](const GridAxis& axis) { return last(axis.key) == last(key); });
  return same == 1 ? last(key) : key;
}

std::string name_of(const std::vector<Assignment>& values, const std::vector<GridAxis>& axes,
                    const std::set<std::string>& taken) {
  std::vector<std::string> parts;
  for (const Assignment& one : values)
    parts.push_back(fmt::format("{}={}", short_key(one.key, axes), plain_text(one.value)));
  const std::string name = fmt::format("{}", fmt::join(parts, ",")).substr(0, kMostNameBytes);
  std::string own = name;
  for (int number = 2; taken.contains(own); ++number) own = fmt::format("{}-{}", name, number);
  return own;
}

// The combination of this number; the last axis changes fastest.
std::vector<Assignment> combination(const std::vector<GridAxis>& axes, std::size_t number) {
  std::vector<Assignment> values(axes.size());
  for (std::size_t k = axes.size(); k-- > 0; number /= axes[k].values.size())
    values[k] = {axes[k].key, axes[k].values[number % axes[k].values.size()], "--sweep"};
  return values;
}

std::size_t count_runs(const std::vector<GridAxis>& axes) {
  std::size_t count = 1;
  std::set<std::string> keys;
  for (const GridAxis& axis : axes) {
    if (!keys.insert(axis.key).second)
      throw TypeError(fmt::format("--sweep: {} is given twice", axis.key));
    if (axis.key == "output.folder")
      throw TypeError("--sweep: every run has a folder of its own; output.folder is the sweep's");
    count *= axis.values.size();
    if (count > kMostRuns) throw TypeError(fmt::format("--sweep: more than {} runs", kMostRuns));
  }
  return count;
}

// The names of the runs; IoError and ParseError for what is no such file.
std::vector<std::string> read_names(const fs::path& folder) {
  const fs::path file = folder / kSweepFile;
  const io::Json json = io::read_json(file);
  std::vector<std::string> names =
      io::extract(file.string(), [&] { return json.at("runs").get<std::vector<std::string>>(); });
  for (const std::string& name : names)
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      throw ParseError(fmt::format("{}: a run of a sweep is a folder in its own", file.string()));
  return names;
}

void check_folder(const fs::path& folder) {
  const RunFolder::Content content = RunFolder(folder).content();
  if (content == RunFolder::Content::nothing || is_grid_folder(folder)) return;
  throw TypeError(fmt::format("{} is there already and {}; choose another with --out",
                              folder.string(),
                              content == RunFolder::Content::run ? "holds a run, not a sweep"
                                                                 : "is not the folder of a sweep"));
}

// An earlier sweep in the folder may have had other values: its runs stay in the list.
void write_names(const Grid& grid) {
  std::vector<std::string> names;
  if (is_grid_folder(grid.folder)) names = read_names(grid.folder);
  for (const GridRun& run : grid.runs)
    if (std::find(names.begin(), names.end(), run.name) == names.end()) names.push_back(run.name);
  io::write_file(grid.folder / kSweepFile, io::OrderedJson{{"runs", names}}.dump(1) + "\n");
}

// Whether the very same run ended so before: it would again.
bool has_diverged(const RunConfig& config) {
  const RunFolder folder(config.output.folder);
  std::error_code error;
  return fs::exists(folder.diverged() / "diagnosis.txt", error) &&
         folder.content() == RunFolder::Content::run &&
         differences(folder.config(), config).empty();
}

}  // namespace

GridAxis parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw TypeError(fmt::format("--sweep must be KEY=VALUE,VALUE,..., got \"{}\"", text));
  GridAxis axis{.key = std::string(text.substr(0, equals)), .values = {}};
  for (const std::string& part : split_values(text.substr(equals + 1))) {
    axis.values.push_back(parse_set(fmt::format("{}={}", axis.key, part)).value);
    if (std::count(axis.values.begin(), axis.values.end(), axis.values.back()) > 1)
      throw TypeError(
          fmt::format("--sweep: {} is {} twice", axis.key, value_text(axis.values.back())));
  }
  return axis;
}

Grid make_grid(std::vector<Assignment> assignments, const std::vector<GridAxis>& axes) {
  const std::size_t count = count_runs(axes);
  const bool named = std::any_of(assignments.begin(), assignments.end(), [](const Assignment& one) {
    return one.key == "output.folder" && one.value != ConfigValue(std::string());
  });
  std::vector<Assignment> first = assignments;
  for (Assignment& one : combination(axes, 0)) first.push_back(std::move(one));
  Grid grid;
  grid.folder = make_config(named ? assignments : first).output.folder;
  if (!named) grid.folder += "-sweep";
  std::set<std::string> names;
  for (std::size_t k = 0; k < count; ++k) {
    GridRun run{.name = {}, .values = combination(axes, k), .config = {}};
    run.name = name_of(run.values, axes, names);
    names.insert(run.name);
    std::vector<Assignment> all = assignments;
    all.insert(all.end(), run.values.begin(), run.values.end());
    all.push_back({"output.folder", (grid.folder / run.name).string(), "--sweep"});
    run.config = make_config(all);
    grid.runs.push_back(std::move(run));
  }
  return grid;
}

GridOutcome run_grid(const Grid& grid, const GridOptions& options) {
  if (options.run.resume)
    throw TypeError("--resume is for one run; a sweep goes on where it was interrupted anyway");
  if (options.run.profile || !options.run.trace.empty())
    throw TypeError("a profile and a trace are of one run, and a sweep trains several");
  check_folder(grid.folder);
  const FolderLock lock{RunFolder(grid.folder)};
  RunFolder(grid.folder).remove_leftovers();  // the sweep's own; each run sees to its own
  write_names(grid);
  RunOptions run = options.run;
  if (!run.stop) run.stop = options.stop;  // also while one of them compiles
  GridOutcome outcome;
  for (std::size_t k = 0; k < grid.runs.size(); ++k) {
    const RunConfig& config = grid.runs[k].config;
    outcome.number = k;
    outcome.steps = 0;
    outcome.interrupted = options.stop && options.stop();
    if (outcome.interrupted) return outcome;
    if (options.begins) options.begins(k, grid.runs[k]);
    try {
      if (!options.run.restart && has_diverged(config)) {
        ++outcome.diverged;
        continue;
      }
      const RunOutcome one = run_training(config, run);
      outcome.interrupted =
          one.end == RunOutcome::End::interrupted || one.end == RunOutcome::End::not_begun;
      outcome.steps = one.steps;
    } catch (const DivergenceError& error) {  // the next value may do better
      logging::warning("{}: {}", config.output.folder, error.what());
      ++outcome.diverged;
    } catch (const std::exception& error) {  // it may be a matter of this value
      logging::warning("{}: {}", config.output.folder, error.what());
      outcome.failed.push_back({k, std::current_exception()});
    }
    if (outcome.interrupted) return outcome;
  }
  return outcome;
}

Comparison compare_grid(const Grid& grid, const GridOutcome& outcome) {
  std::vector<std::string> folders;
  for (const GridRun& run : grid.runs) folders.push_back(run.config.output.folder);
  std::map<std::string, RunConfig> failed;
  for (const GridFailure& failure : outcome.failed)
    failed.emplace(folders[failure.number], grid.runs[failure.number].config);
  return compare_runs(folders, "", failed);
}

std::vector<fs::path> draw_grid(const fs::path& folder) {
  std::vector<monitor::RunSeries> series;
  for (const std::string& run : with_logged_runs({folder.string()}))
    series.push_back(monitor::read_run(run));
  return series.empty() ? std::vector<fs::path>{} : monitor::write_plots(series, folder / "plots");
}

bool is_grid_folder(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kSweepFile, error);
}

std::vector<std::string> with_grid_runs(const std::vector<std::string>& folders) {
  std::vector<std::string> all;
  for (const std::string& folder : folders) {
    if (!is_grid_folder(folder)) {
      all.push_back(folder);
      continue;
    }
    for (const std::string& name : read_names(folder))
      if (const fs::path run = fs::path(folder) / name;
          RunFolder(run).content() == RunFolder::Content::run)
        all.push_back(run.string());
  }
  return all;
}

std::vector<std::string> with_logged_runs(const std::vector<std::string>& folders) {
  std::vector<std::string> all;
  for (const std::string& folder : folders)
    for (const std::string& run : with_grid_runs({folder})) {
      std::error_code error;
      const fs::path log = fs::path(run) / monitor::kMetricsJsonl;
      if (!is_grid_folder(folder) || (fs::exists(log, error) && fs::file_size(log, error) > 0))
        all.push_back(run);
    }
  return all;
}

}  // namespace pantala::run
