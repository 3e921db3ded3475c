#include "monitor/run_series.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "monitor/run_log.h"
#include "pantala/error.h"

namespace pantala::monitor {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// Calls f(line, "file:number") for every line that has an end.
template <class F>
void for_each_line(const fs::path& path, F&& f) {
  const io::FileReader file(path);
  std::string pending, block;
  std::int64_t number = 1;
  for (std::uint64_t offset = 0; offset < file.size(); offset += block.size()) {
    block.resize(std::min<std::uint64_t>(kMaxLineBytes, file.size() - offset));
    file.read_at(offset, block);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = block.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      pending.append(block, begin, end - begin);
      f(std::string_view(pending), fmt::format("{}:{}", path.string(), number++));
      pending.clear();
    }
    pending.append(block, begin);
    if (pending.size() > kMaxLineBytes)
      throw ParseError(fmt::format("{}:{}: the line has more than {} bytes", path.string(), number,
                                   kMaxLineBytes));
  }
}

// One line of either file.
struct Row {
  std::string where, kind;
  std::map<std::string, double> numbers;

  std::optional<double> find(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  double get(const std::string& name) const {
    const std::optional<double> number = find(name);
    if (!number) throw ParseError(fmt::format("{}: '{}' is missing", where, name));
    return *number;
  }
  std::int64_t whole(const std::string& name) const {
    const double number = get(name);
    constexpr double kMost = 9007199254740992;  // all whole numbers up to it are doubles
    if (!(number >= 0 && number <= kMost) || number != std::floor(number))
      throw ParseError(
          fmt::format("{}: '{}' is {}, not a whole number", where, name, exact(number)));
    return static_cast<std::int64_t>(number);
  }

  void read(const std::string& name, std::int64_t& number) const { number = whole(name); }
  void read(const std::string& name, double& number) const { number = get(name); }
  template <class T>
  void read(const std::string& name, std::optional<T>& number) const {
    if (find(name)) read(name, number.emplace());
  }
};

StepRecord step_of(const Row& row) {
  StepRecord record;
  each_number(record, [&](const char* name, auto& number) { row.read(name, number); });
  return record;
}

EpochRecord epoch_of(const Row& row) {
  EpochRecord record;
  std::set<std::string, std::less<>> known;
  each_number(record, [&](const char* name, auto& number) {
    row.read(name, number);
    known.insert(name);
  });
  for (const auto& [name, number] : row.numbers)
    if (name.starts_with(kValidationPrefix) && !known.contains(name))
      record.metrics.emplace_back(name.substr(kValidationPrefix.size()), number);
  return record;
}

// Keeps every stride-th of what it is given, so that they stay few.
template <class Record>
class Thinned {
 public:
  void add(Record record) {
    if (count_++ % stride_ != 0) return;
    records_.push_back(std::move(record));
    if (records_.size() < kMostRecords) return;
    for (std::size_t k = 1; 2 * k < records_.size(); ++k) records_[k] = std::move(records_[2 * k]);
    records_.resize((records_.size() + 1) / 2);
    stride_ *= 2;
  }
  std::vector<Record> take() { return std::move(records_); }

 private:
  std::vector<Record> records_;
  std::size_t count_ = 0, stride_ = 1;
};

class SeriesBuilder {
 public:
  void add(const Row& row) {
    if (row.kind == "step")
      steps_.add(step_of(row));
    else if (row.kind == "epoch")
      epochs_.add(epoch_of(row));
    else
      throw ParseError(fmt::format("{}: the kind is {}, not \"step\" or \"epoch\"", row.where,
                                   in_quotes(row.kind)));
  }
  RunSeries take() { return {{}, steps_.take(), epochs_.take()}; }

 private:
  Thinned<StepRecord> steps_;
  Thinned<EpochRecord> epochs_;
};

double number_of(std::string_view text, std::string_view where, std::string_view name) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end)
    throw ParseError(fmt::format("{}: '{}' is {}, not a number", where, name, in_quotes(text)));
  return number;
}

Row row_of_json(std::string_view line, const std::string& where) {
  const io::Json document = io::parse_json(line, where, 2);
  Row row{where, {}, {}};
  io::extract(where, [&] {
    row.kind = document.at("kind").get<std::string>();
    for (const auto& [name, value] : document.items()) {
      if (value.is_number())
        row.numbers[name] = value.get<double>();
      else if (name != "kind")
        row.numbers[name] = number_of(value.get_ref<const std::string&>(), where, name);
    }
  });
  return row;
}

// The cells of a line of a table; cells in quotes may hold commas and doubled quotes.
std::vector<std::string> cells_of(std::string_view line, std::string_view where) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool in_quotes = false;
  for (std::size_t k = 0; k < line.size(); ++k) {
    const bool doubled = in_quotes && line[k] == '"' && k + 1 < line.size() && line[k + 1] == '"';
    if (doubled)
      cells.back() += line[k++];
    else if (line[k] == '"')
      in_quotes = !in_quotes;
    else if (line[k] == ',' && !in_quotes)
      cells.emplace_back();
    else
      cells.back() += line[k];
  }
  if (in_quotes) throw ParseError(fmt::format("{}: a quote is not closed", where));
  return cells;
}

Row row_of_cells(const std::vector<std::string>& columns, std::vector<std::string> cells,
                 const std::string& where) {
  if (cells.size() != columns.size())
    throw ParseError(fmt::format("{}: {}, but the header has {}", where,
                                 counted(cells.size(), "cell"), columns.size()));
  Row row{where, {}, {}};
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (columns[k] == "kind")
      row.kind = std::move(cells[k]);
    else if (!cells[k].empty())
      row.numbers[columns[k]] = number_of(cells[k], where, columns[k]);
  }
  return row;
}

std::string run_name(const fs::path& folder) {
  std::error_code error;
  fs::path whole = fs::absolute(folder, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "runs/a/"
  return printable(whole.filename().string());
}

}  // namespace

RunSeries read_metrics_jsonl(const fs::path& file) {
  SeriesBuilder series;
  for_each_line(file, [&](std::string_view line, const std::string& where) {
    series.add(row_of_json(line, where));
  });
  return series.take();
}

RunSeries read_metrics_csv(const fs::path& file) {
  SeriesBuilder series;
  std::vector<std::string> columns;
  for_each_line(file, [&](std::string_view line, const std::string& where) {
    std::vector<std::string> cells = cells_of(line, where);
    if (columns.empty())
      columns = std::move(cells);
    else
      series.add(row_of_cells(columns, std::move(cells), where));
  });
  return series.take();
}

RunSeries read_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw IoError(
        fmt::format("{}: there is no such folder; expected the folder of a run", folder.string()));
  const fs::path jsonl = folder / kMetricsJsonl, csv = folder / kMetricsCsv;
  RunSeries series;
  if (fs::exists(jsonl, error))
    series = read_metrics_jsonl(jsonl);
  else if (fs::exists(csv, error))
    series = read_metrics_csv(csv);
  else
    throw IoError(fmt::format("{}: there is no {} in it; expected the folder of a run",
                              folder.string(), kMetricsJsonl));
  if (series.steps.empty() && series.epochs.empty())
    throw IoError(fmt::format("{}: no step and no epoch has been logged yet", folder.string()));
  series.name = run_name(folder);
  return series;
}

}  // namespace pantala::monitor
