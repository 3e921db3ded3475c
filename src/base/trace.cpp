#include "base/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <new>

#include "base/text.h"

namespace pantala::trace {

namespace {

// How many bytes from `at` on are one character of UTF-8; 0 if they are none.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned first = byte(at);
  const std::size_t bytes = first < 0x80                     ? 1
                            : first >= 0xC2 && first <= 0xDF ? 2
                            : first >= 0xE0 && first <= 0xEF ? 3
                            : first >= 0xF0 && first <= 0xF4 ? 4
                                                             : 0;
  if (bytes == 0 || bytes > text.size() - at) return 0;
  for (std::size_t k = 1; k < bytes; ++k)
    if ((byte(at + k) & 0xC0) != 0x80) return 0;
  if (bytes < 3) return bytes;
  // Forms that are too long, halves of surrogates, and what is beyond Unicode.
  const unsigned second = byte(at + 1);
  const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                   (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return bad ? 0 : bytes;
}

// A JSON string. Names come from users: bytes that are no UTF-8 become U+FFFD.
void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    const char c = text[at];
    if (bytes == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes == 0 ? 1 : bytes;
  }
  out += '"';
}

struct AppendValue {
  std::string& out;
  void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  // JSON has no infinities and NaNs.
  void operator()(double v) const {
    if (std::isfinite(v))
      out += exact(v);
    else
      append_string(out, exact(v));
  }
  void operator()(const std::string& v) const { append_string(out, v); }
};

// Microseconds with the digits of a nanosecond.
void append_time(std::string& out, Clock::duration time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  fmt::format_to(std::back_inserter(out), "{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000,
                 std::abs(ns) % 1000);
}

void append_name(std::string& out, std::string_view what, std::size_t track,
                 std::string_view name) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"M","pid":1,"tid":{},"name":"{}","args":{{"name":)", track, what);
  append_string(out, name);
  out += "}}";
}

void append_event(std::string& out, const Event& event, Clock::time_point origin) {
  fmt::format_to(std::back_inserter(out), R"({{"ph":"X","pid":1,"tid":{},"name":)",
                 event.track.number);
  append_string(out, event.name);
  out += ",\"cat\":";
  append_string(out, event.category);
  out += ",\"ts\":";
  append_time(out, event.begin - origin);
  out += ",\"dur\":";
  append_time(out, event.duration);
  if (!event.arguments.empty()) {
    out += ",\"args\":{";
    for (const auto& [key, value] : event.arguments) {
      if (out.back() != '{') out += ',';
      append_string(out, key);
      out += ':';
      std::visit(AppendValue{out}, value);
    }
    out += '}';
  }
  out += '}';
}

}  // namespace

Recorder::Recorder(std::string process, std::size_t limit)
    : process_(std::move(process)), limit_(limit) {}

Track Recorder::this_thread() {
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = threads_.try_emplace(std::this_thread::get_id());
  if (fresh) {
    found->second = {static_cast<std::uint32_t>(tracks_.size())};
    tracks_.push_back(fmt::format("thread {}", threads_.size()));
  }
  return found->second;
}

Track Recorder::add_track(std::string name) {
  const std::lock_guard lock(mutex_);
  tracks_.push_back(std::move(name));
  return {static_cast<std::uint32_t>(tracks_.size() - 1)};
}

void Recorder::add(Event event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() < (event.lasting ? 2 * limit_ : limit_))
    events_.push_back(std::move(event));
  else
    ++dropped_;
}

std::size_t Recorder::size() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::size_t Recorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string Recorder::json() const {
  const std::lock_guard lock(mutex_);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":";
  fmt::format_to(std::back_inserter(out), "{}}},\"traceEvents\":[\n", dropped_);
  append_name(out, "process_name", 0, process_);
  for (std::size_t k = 0; k < tracks_.size(); ++k) {
    out += ",\n";
    append_name(out, "thread_name", k, tracks_[k]);
  }
  for (const Event& event : events_) {
    out += ",\n";
    append_event(out, event, begin_);
  }
  return out + "\n]}\n";
}

void Span::finish() noexcept {
  const Clock::time_point end = Clock::now();
  try {
    recorder_->add({.name = std::string(name_),
                    .category = std::string(category_),
                    .begin = begin_,
                    .duration = end - begin_,
                    .track = recorder_->this_thread(),
                    .arguments = std::move(arguments_)});
  } catch (const std::bad_alloc&) {
    // A trace is an extra: the work that it describes goes on without it.
  }
}

}  // namespace pantala::trace
