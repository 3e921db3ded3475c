#include "monitor/run_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <system_error>

#include "base/log.h"
#include "base/text.h"
#include "io/file.h"
#include "io/file_changes.h"
#include "io/json.h"
#include "io/system_error.h"
#include "pantala/error.h"

namespace pantala::monitor {

namespace fs = std::filesystem;

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  return name.data();
}

bool is_event_file(std::string_view name) { return name.starts_with(io::kEventFilePrefix); }

// Those that do not go on would be shown beside the new one.
void remove_event_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (is_event_file(entry->path().filename().string())) found.push_back(entry->path());
  for (const fs::path& path : found)
    if (!error) error = io::remove_path(path);
  if (error)
    throw IoError(
        fmt::format("{}: cannot remove old event files: {}", folder.string(), error.message()));
}

// The length of the file's longest beginning of at most `limit` bytes that ends with a line's end.
std::uint64_t whole_line_bytes(const fs::path& path, std::uint64_t limit) {
  const io::FileReader file(path);
  std::uint64_t end = std::min(limit, file.size());
  std::array<char, 4096> block{};
  while (end > 0) {
    const std::uint64_t count = std::min<std::uint64_t>(end, block.size());
    file.read_at(end - count, std::span(block.data(), count));
    for (std::uint64_t k = count; k > 0; --k)
      if (block[k - 1] == '\n') return end - count + k;
    end -= count;
  }
  return 0;
}

// How much of a file is kept: of one that should have `position` bytes, what is whole.
template <class WholeBytes>
std::uint64_t kept_bytes(const fs::path& path, std::uint64_t position, WholeBytes whole_bytes) {
  std::error_code error;
  const bool exists = fs::exists(path, error) && !error;
  const std::uint64_t whole = exists ? whole_bytes(path, position) : 0;
  if (whole < position)
    logging::warning("{}: {}; the log goes on with {} of its {} bytes", path.string(),
                     exists ? "shorter than when the checkpoint was saved, or damaged" : "missing",
                     whole, position);
  return whole;
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::vector<std::string> texts;
  for (const std::string& cell : cells) texts.push_back(csv_text(cell));
  return fmt::format("{}\n", fmt::join(texts, ","));
}

std::vector<std::string> columns_of(const std::vector<std::string>& metrics) {
  std::vector<std::string> columns = {
      "kind",        "time",         "epoch",         "step",           "steps",
      "global_step", "loss",         "learning_rate", "gradient_norm",  "items_per_second",
      "wait_share",  "memory_bytes", "seconds",       "validation_loss"};
  for (const std::string& metric : metrics)
    columns.push_back(fmt::format("{}{}", kValidationPrefix, metric));
  return columns;
}

// Rows of a table whose header is another cannot be continued; it is put aside.
void put_aside_other_table(const fs::path& path, std::string_view header) {
  std::error_code error;
  if (!fs::exists(path, error) || error) return;
  const io::FileReader file(path);
  std::string found(std::min<std::uint64_t>(file.size(), header.size()), '\0');
  file.read_at(0, found);
  if (found == header.substr(0, found.size())) return;
  const fs::path aside = path.string() + ".old";
  io::check_change(io::rename_path(path, aside), path, "rename");
  logging::warning("{}: its columns are others than this version writes; it is now {}",
                   path.string(), aside.string());
}

}  // namespace

std::int64_t interval_at(std::int64_t global_step) {
  constexpr std::int64_t kRowsAgo = 50;  // the run was half as long about so many rows ago
  std::int64_t interval = 1;
  for (const std::int64_t longer : {2, 5, 10, 20, 50, 100})
    if (global_step >= kRowsAgo * longer) interval = longer;
  return interval;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct RunLog::Positions {
  std::map<std::string, std::uint64_t> bytes;  // by the file's name
  bool fresh = true;

  static Positions parse(std::string_view text) {
    constexpr std::string_view where = "positions of the run's log";
    const io::Json document = io::parse_json(text, where, 2);
    Positions positions;
    positions.fresh = false;
    io::extract(where, [&] {
      for (const auto& [name, size] : document.get_ref<const io::Json::object_t&>()) {
        if (name != kMetricsJsonl && name != kMetricsCsv &&
            (!is_event_file(name) || name.find('/') != std::string::npos))
          throw ParseError(fmt::format("{}: {} is no file of a log", where, in_quotes(name)));
        if (!size.is_number_unsigned())
          throw ParseError(fmt::format("{}: {} has no size", where, in_quotes(name)));
        positions.bytes[name] = size.get<std::uint64_t>();
      }
    });
    return positions;
  }

  std::uint64_t of(std::string_view name) const {
    const auto found = bytes.find(std::string(name));
    return found == bytes.end() ? 0 : found->second;
  }
  std::optional<std::string> event_file() const {
    for (const auto& [name, size] : bytes)
      if (is_event_file(name)) return name;
    return std::nullopt;
  }
};

RunLog::RunLog(fs::path folder, RunLogOptions options)
    : RunLog(std::move(folder), Positions{}, std::move(options)) {}

RunLog::RunLog(fs::path folder, std::string_view positions, RunLogOptions options)
    : RunLog(std::move(folder), Positions::parse(positions), std::move(options)) {}

RunLog::RunLog(fs::path folder, const Positions& positions, RunLogOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      columns_(columns_of(options_.metrics)) {
  io::check_change(io::make_folders(folder_), folder_, "make the folder");
  if (positions.fresh) remove_event_files(folder_);

  const fs::path jsonl = folder_ / kMetricsJsonl, csv = folder_ / kMetricsCsv;
  jsonl_.emplace(jsonl, kept_bytes(jsonl, positions.of(kMetricsJsonl), whole_line_bytes));
  const std::string header = csv_row(columns_);
  if (!positions.fresh) put_aside_other_table(csv, header);
  csv_.emplace(csv, kept_bytes(csv, positions.of(kMetricsCsv), whole_line_bytes));
  if (csv_->size() == 0) csv_->append(header);
  if (!options_.tensorboard) return;
  const double now = options_.wall_clock();
  const std::string name = positions.event_file().value_or(io::event_file_name(now, host_name()));
  events_.emplace(folder_ / name,
                  kept_bytes(folder_ / name, positions.of(name), io::whole_event_bytes), now);
}

bool RunLog::step_is_due(std::int64_t global_step) const {
  const std::int64_t interval = options_.log_interval.value_or(interval_at(global_step));
  return interval > 0 && (global_step == 1 || global_step % interval == 0);
}

void RunLog::step(const StepRecord& record) {
  if (step_is_due(record.global_step))
    write("step", "train/", record.global_step, fields_of(record));
}

void RunLog::epoch(const EpochRecord& record) {
  write("epoch", "epoch/", record.global_step, fields_of(record));
}

void RunLog::write(std::string_view kind, std::string_view tag_group, std::int64_t global_step,
                   const std::vector<Field>& fields) {
  const double now = options_.wall_clock();
  std::map<std::string_view, std::string> cells = {{"kind", std::string(kind)},
                                                   {"time", exact(now)}};
  std::vector<io::Scalar> scalars;
  for (const Field& field : fields) {
    cells[field.name] = number_text(field.value);
    if (is_place(field.name)) continue;
    const double number =
        std::visit([](auto value) { return static_cast<double>(value); }, field.value);
    const std::string_view name = field.name;
    scalars.emplace_back(name.starts_with(kValidationPrefix)
                             ? fmt::format("validation/{}", name.substr(kValidationPrefix.size()))
                             : fmt::format("{}{}", tag_group, name),
                         number);
  }
  std::vector<std::string> row;
  for (const std::string& column : columns_) row.push_back(cells[column]);

  jsonl_->append(fmt::format("{{\"kind\":\"{}\",{},{}}}\n", kind, json_members({{"time", now}}),
                             json_members(fields)));
  csv_->append(csv_row(row));
  if (events_) events_->add(now, global_step, scalars);
}

std::string RunLog::positions() {
  io::Json document = io::Json::object();
  std::vector<io::AppendFile*> files = {&*jsonl_, &*csv_};
  if (events_) files.push_back(&events_->file());
  for (io::AppendFile* file : files) {
    file->sync();
    document[file->path().filename().string()] = file->size();
  }
  return document.dump();
}

}  // namespace pantala::monitor
