// Traces: a recorder of spans of time, as text that Perfetto and chrome://tracing open. Stages of
// the compiler, steps and kernels are recorded in one; whoever wants a file writes json() to it.
//
// Recording is asked for by handing a recorder down; where there is none, a Span is a null pointer
// that is tested once. A recorder may be used from any thread, and keeps at most `limit` events
// (and as many again of those that last): it counts what comes after and leaves it out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace pantala::trace {

using Clock = std::chrono::steady_clock;

// A row of the picture: a thread, or something else that works by itself (the worker of a device).
struct Track {
  std::uint32_t number = 0;
  friend auto operator<=>(const Track&, const Track&) = default;
};

using Value = std::variant<std::int64_t, double, bool, std::string>;
using Arguments = std::vector<std::pair<std::string, Value>>;

struct Event {
  std::string name;
  std::string category;
  Clock::time_point begin;
  Clock::duration duration{};
  Track track;
  Arguments arguments = {};
  bool lasting = false;  // one of few that frame the others, such as an epoch
};

class Recorder {
 public:
  static constexpr std::size_t kLimit = std::size_t{1} << 20;

  explicit Recorder(std::string process = "pantala", std::size_t limit = kLimit);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Track this_thread();  // the row of the calling thread, "thread 1"
  Track add_track(std::string name);

  void add(Event event);
  std::size_t size() const;
  std::size_t dropped() const;

  // Chrome's trace event format: complete events in microseconds since the recorder was made, the
  // names of process and rows, and how many events were left out.
  std::string json() const;

 private:
  const std::string process_;
  const std::size_t limit_;
  const Clock::time_point begin_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::size_t dropped_ = 0;
  std::vector<std::string> tracks_;  // names by number
  std::map<std::thread::id, Track> threads_;
};

// The time from its construction to its destruction, on the row of the thread that ends it.
class Span {
 public:
  // Records nothing if there is no recorder. The names must outlive the span.
  Span(Recorder* recorder, std::string_view name, std::string_view category)
      : recorder_(recorder), name_(name), category_(category) {
    if (recorder_) begin_ = Clock::now();
  }
  ~Span() {
    if (recorder_) finish();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Something to know about it: a count, a size, a name.
  template <class T>
  void note(std::string_view key, const T& value) {
    if (recorder_) arguments_.emplace_back(std::string(key), value_of(value));
  }

 private:
  static Value value_of(bool v) { return v; }
  static Value value_of(std::string_view v) { return std::string(v); }
  static Value value_of(const char* v) { return std::string(v); }
  static Value value_of(const std::string& v) { return v; }
  template <class T>
    requires std::is_arithmetic_v<T>
  static Value value_of(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<double>(v);
    else
      return static_cast<std::int64_t>(v);
  }
  void finish() noexcept;

  Recorder* recorder_;
  std::string_view name_, category_;
  Clock::time_point begin_;
  Arguments arguments_;
};

}  // namespace pantala::trace
