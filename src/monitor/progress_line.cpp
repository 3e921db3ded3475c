#include "monitor/progress_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/json.h"
#include "pantala/error.h"

namespace pantala::monitor {

namespace {

constexpr std::array<std::pair<std::string_view, ProgressMode>, 4> kModes{
    {{"auto", ProgressMode::automatic},
     {"plain", ProgressMode::plain},
     {"json", ProgressMode::json},
     {"none", ProgressMode::none}}};

constexpr double kLiveInterval = 0.1, kJsonInterval = 1;
// Plain lines: far apart in long runs, so that their logs can be read.
constexpr double kPlainLeast = 10, kPlainMost = 60, kPlainShare = 1.0 / 20;
// The average is over about the last 50 steps, and at first over the last tenth of them: what the
// loss was at the beginning must not linger.
constexpr double kLeastLossShare = 0.02, kLossMemory = 0.1;
constexpr int kUnknownWidth = 80;
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string measure_text(double value) {
  if (!std::isfinite(value)) return number_text(value);  // without the sign of a NaN
  const double size = std::abs(value);
  return (size == 0 || size >= 1e-3) && size < 1e4 ? fmt::format("{:.4f}", value)
                                                   : fmt::format("{:.3e}", value);
}
std::string count_text(std::int64_t count, std::optional<std::int64_t> of) {
  return of && *of > 0 ? fmt::format("{}/{}", count, *of) : fmt::format("{}", count);
}
std::optional<std::int64_t> if_known(std::int64_t count) {
  return count > 0 ? std::optional(count) : std::nullopt;
}

// Metrics first, first + 1, ..., end - 1, as far as there are some.
void add_metrics(std::vector<LinePart>& parts, const Metrics& metrics, std::size_t first,
                 std::size_t end, int rank) {
  for (std::size_t k = first; k < std::min(end, metrics.size()); ++k)
    parts.push_back(
        {printable(metrics[k].first), measure_text(metrics[k].second), rank + static_cast<int>(k)});
}

std::string_view activity_name(Activity::Kind kind) {
  switch (kind) {
    case Activity::Kind::training:
      return "training";
    case Activity::Kind::compiling:
      return "compiling";
    case Activity::Kind::validating:
      return "validating";
  }
  return "";
}

// "validating 3/79"
std::string activity_text(const Activity& activity) {
  const std::string_view name = activity_name(activity.kind);
  return activity.batch == 0
             ? std::string(name)
             : fmt::format("{} {}", name, count_text(activity.batch, activity.batches));
}

std::string json_line(std::string_view event, std::vector<Field> fields) {
  return fmt::format("{{\"event\":\"{}\",{}}}", event, json_members(fields));
}

std::string json_activity(const Activity& activity) {
  std::vector<Field> fields;
  if (activity.kind == Activity::Kind::validating) fields.push_back({"batch", activity.batch});
  if (activity.batches) fields.push_back({"batches", *activity.batches});
  const std::string members = json_members(fields);
  return fmt::format("{{\"event\":\"activity\",\"activity\":\"{}\"{}{}}}",
                     activity_name(activity.kind), members.empty() ? "" : ",", members);
}

std::string json_text_line(std::string_view event, std::string_view level, std::string_view text) {
  std::string line = fmt::format("{{\"event\":\"{}\",", event);
  if (!level.empty()) line += fmt::format("\"level\":\"{}\",", level);
  return line +
         fmt::format("\"text\":{}}}",
                     io::Json(text).dump(-1, ' ', false, io::Json::error_handler_t::replace));
}

}  // namespace

ProgressMode parse_progress_mode(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
    names.emplace_back(known);
  }
  throw TypeError(fmt::format("there is no progress '{}'{}; there are: {}", name,
                              did_you_mean(name, names), fmt::join(names, ", ")));
}

ProgressOptions progress_on_stderr(ProgressMode mode, const char* term, const char* no_color) {
  ProgressOptions options;
  options.mode = mode;
  options.terminal = ::isatty(STDERR_FILENO) == 1 && term && *term && term != std::string("dumb");
  options.colour = options.terminal && !(no_color && *no_color);
  options.width = [] {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? static_cast<int>(size.ws_col) : 0;
  };
  options.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  options.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  return options;
}

ProgressLine::ProgressLine(ProgressOptions options)
    : options_(std::move(options)),
      form_(options_.mode == ProgressMode::none    ? Form::none
            : options_.mode == ProgressMode::json  ? Form::json
            : options_.mode == ProgressMode::plain ? Form::plain
            : options_.terminal                    ? Form::live
                                                   : Form::plain) {
  if (form_ != Form::live && form_ != Form::json) return;
  detour_ = std::make_unique<logging::Detour>(
      [this](logging::Level level, std::string_view text, const std::function<void()>& write) {
        const std::lock_guard lock(mutex_);
        if (form_ == Form::json)
          return show_line(json_text_line("log", logging::level_name(level), text));
        const std::string live = live_;
        erase_live();
        write();
        draw_live(live);
      });
}

ProgressLine::~ProgressLine() {
  detour_.reset();
  finish();
}

void ProgressLine::observe(double loss) {
  // One that is not finite would stay for ever.
  if (!std::isfinite(loss)) return;
  const double share =
      std::max(kLeastLossShare, 1 / (1 + kLossMemory * static_cast<double>(losses_++)));
  loss_ += share * (loss - loss_);
}

double ProgressLine::interval() const {
  if (form_ == Form::live) return kLiveInterval;
  if (form_ == Form::json) return kJsonInterval;
  return std::clamp((*last_ - *begin_) * kPlainShare, kPlainLeast, kPlainMost);
}

bool ProgressLine::is_due() const {
  return form_ != Form::none && (!last_ || options_.clock() - *last_ >= interval());
}

std::optional<double> ProgressLine::seconds_left(const StepRecord& record, const RunPlace& place) {
  const std::int64_t done = record.epoch * place.batches.value_or(0) + place.batch;
  const Origin now{options_.clock(), done, record.global_step};
  if (!origin_) origin_ = now, compiling_seconds_ = 0;
  // What was compiled is not compiled again; what is left is validated, too.
  const double seconds = now.seconds - origin_->seconds - compiling_seconds_;
  // What is left, in parts of what has been done since.
  std::optional<double> left;
  if (place.batches && place.epochs > 0 && done > origin_->batches)
    left = static_cast<double>(place.epochs * *place.batches - done) /
           static_cast<double>(done - origin_->batches);
  if (place.max_steps > 0 && record.global_step > origin_->steps) {
    const double by_steps = static_cast<double>(place.max_steps - record.global_step) /
                            static_cast<double>(record.global_step - origin_->steps);
    left = std::min(left.value_or(by_steps), by_steps);
  }
  if (left) left = std::max(0.0, *left) * seconds;
  return left;
}

void ProgressLine::step(const StepRecord& record, const RunPlace& place) {
  if (!is_due()) return;
  last_ = options_.clock();
  if (!begin_) begin_ = last_;
  const std::optional<double> left = seconds_left(record, place);
  const double loss = losses_ > 0 && std::isfinite(record.loss) ? loss_ : record.loss;
  const std::lock_guard lock(mutex_);
  if (form_ == Form::json) {
    std::vector<Field> fields = fields_of(record);
    fields.push_back({"smoothed_loss", loss});
    if (record.network_share) fields.push_back({"network_share", *record.network_share});
    fields.push_back({"batch", place.batch});
    if (place.batches) fields.push_back({"batches", *place.batches});
    if (place.epochs > 0) fields.push_back({"epochs", place.epochs});
    if (left) fields.push_back({"seconds_left", *left});
    return show_line(json_line("step", std::move(fields)));
  }
  place_ = {{"epoch", count_text(record.epoch + 1, if_known(place.epochs)), 0},
            {"step", count_text(place.batch, place.batches), 1},
            {"loss", measure_text(loss), 1}};
  std::vector<LinePart> parts = place_;
  add_metrics(parts, metrics_, 0, 1, 4);
  parts.push_back({"lr", number(record.learning_rate), 5});
  if (record.items_per_second)
    parts.push_back({"", rate_text(*record.items_per_second) + " items/s", 3});
  if (record.wait_share)
    parts.push_back({"data", fmt::format("{:.0f}%", 100 * *record.wait_share), 6});
  if (record.network_share)
    parts.push_back({"net", fmt::format("{:.0f}%", 100 * *record.network_share), 6});
  if (record.memory_bytes) parts.push_back({"mem", memory_text(*record.memory_bytes), 7});
  if (left) parts.push_back({"left", duration_text(*left), 2});
  if (form_ == Form::plain) return show_line(joined(parts, false));
  draw_live(step_line_ = in_terminal(std::move(parts)));
}

std::string ProgressLine::in_terminal(std::vector<LinePart> parts) const {
  const int columns = options_.width ? options_.width() : 0;
  // A character in the last column would begin a new line on some terminals.
  const int width = (columns > 0 ? columns : kUnknownWidth) - 1;
  return fitted(std::move(parts), static_cast<std::size_t>(width), options_.colour);
}

void ProgressLine::activity(const Activity& activity) {
  if (form_ == Form::none) return;
  const double now = options_.clock();
  if (compiling_since_) compiling_seconds_ += now - *compiling_since_;
  compiling_since_.reset();
  if (activity.kind == Activity::Kind::compiling) compiling_since_ = now;
  const bool trains = activity.kind == Activity::Kind::training,
             changed = std::exchange(activity_, activity.kind) != activity.kind;
  const std::lock_guard lock(mutex_);
  if (trains) {
    if (form_ != Form::live || !changed) return;
    erase_live();
    return draw_live(step_line_);
  }
  // Lines that stay are for what takes long: not before the first step, nor after the last.
  if (form_ == Form::live ? !changed && !is_due() : !last_ || !is_due()) return;
  last_ = now;
  if (!begin_) begin_ = last_;
  if (form_ == Form::json) return show_line(json_activity(activity));
  std::vector<LinePart> parts = place_;
  // The steps of the epoch are over.
  if (activity.kind == Activity::Kind::validating)
    parts.resize(std::min(parts.size(), std::size_t{1}));
  parts.push_back({"", activity_text(activity), 0});
  if (form_ == Form::plain) return show_line(joined(parts, false));
  draw_live(in_terminal(std::move(parts)));
}

void ProgressLine::epoch(const EpochRecord& record, std::int64_t epochs) {
  metrics_ = record.metrics;
  if (form_ == Form::none) return;
  const std::lock_guard lock(mutex_);
  if (form_ == Form::json) {
    std::vector<Field> fields = fields_of(record);
    if (epochs > 0) fields.push_back({"epochs", epochs});
    return show_line(json_line("epoch", std::move(fields)));
  }
  std::vector<LinePart> parts = {{"epoch", count_text(record.epoch + 1, if_known(epochs)), 0},
                                 {"loss", measure_text(record.avg_loss), 1}};
  if (record.validation_loss)
    parts.push_back({"validation loss", measure_text(*record.validation_loss), 1});
  // The first metric is the one that people look for.
  add_metrics(parts, record.metrics, 0, 1, 1);
  add_metrics(parts, record.metrics, 1, record.metrics.size(), 4);
  if (record.seconds) parts.push_back({"", fmt::format("{:.1f} s", *record.seconds), 2});
  if (record.items_per_second)
    parts.push_back({"", rate_text(*record.items_per_second) + " items/s", 3});
  erase_live();  // it is about steps of the epoch that is over
  step_line_.clear();
  show_line(form_ == Form::live ? in_terminal(std::move(parts)) : joined(parts, false));
}

void ProgressLine::message(std::string_view text) {
  if (form_ == Form::none) return;
  const std::lock_guard lock(mutex_);
  if (form_ == Form::json) return show_line(json_text_line("message", "", text));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    show_line(printable(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void ProgressLine::finish() {
  const std::lock_guard lock(mutex_);
  erase_live();
  step_line_.clear();
  place_.clear();
  last_.reset();
}

void ProgressLine::show_line(std::string_view text) {
  const std::string live = live_;
  erase_live();
  options_.write(fmt::format("{}\n", text));
  draw_live(live);
}

void ProgressLine::draw_live(std::string text) {
  if (text.empty()) return;
  live_ = std::move(text);
  options_.write(fmt::format("{}{}", kEraseLine, live_));
}

void ProgressLine::erase_live() {
  if (live_.empty()) return;
  live_.clear();
  options_.write(kEraseLine);
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{} d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string memory_text(std::int64_t bytes) {
  if (bytes < std::int64_t{1} << 20) return fmt::format("{} KiB", bytes >> 10);
  if (bytes < std::int64_t{1} << 30) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second) || per_second > 1e15) return "?";
  if (per_second < 100) return fmt::format("{:.1f}", per_second);
  const std::string digits = fmt::format("{}", std::llround(per_second));
  std::string text;
  for (std::size_t k = 0; k < digits.size(); ++k) {
    if (k > 0 && (digits.size() - k) % 3 == 0) text += ',';
    text += digits[k];
  }
  return text;
}

}  // namespace pantala::monitor
