// A trace as a viewer sees it: its rows with their spans, and whether the spans make sense.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pantala::tests {

struct TraceSpan {
  std::string name, category;
  double begin = 0, end = 0;  // microseconds
  nlohmann::json arguments;
};

class TraceFile {
 public:
  explicit TraceFile(const std::string& text) {
    const auto document = nlohmann::json::parse(text);
    std::map<int, std::string> names;
    for (const auto& event : document.at("traceEvents"))
      if (event.at("ph") == "M" && event.at("name") == "thread_name")
        names[event.at("tid")] = event.at("args").at("name");
    for (const auto& event : document.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts"), duration = event.at("dur");
      rows_[names.at(event.at("tid"))].push_back(
          {event.at("name"), event.at("cat"), begin, begin + duration,
           event.contains("args") ? event.at("args") : nlohmann::json::object()});
    }
    // Who holds others comes before them.
    for (auto& [name, spans] : rows_)
      std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
  }

  const std::vector<TraceSpan>& row(const std::string& name) const { return rows_.at(name); }
  std::vector<std::string> rows() const {
    std::vector<std::string> names;
    for (const auto& [name, spans] : rows_) names.push_back(name);
    return names;
  }
  std::vector<TraceSpan> named(const std::string& row, const std::string& name) const {
    std::vector<TraceSpan> found;
    for (const TraceSpan& span : rows_.at(row))
      if (span.name == name) found.push_back(span);
    return found;
  }

  // On every row two spans lie one after the other, or one lies within the other.
  void expect_nesting() const {
    constexpr double kDigits = 0.0015;  // times are written to the nanosecond
    for (const auto& [name, spans] : rows_) {
      std::vector<const TraceSpan*> open;
      for (const TraceSpan& span : spans) {
        EXPECT_GE(span.end, span.begin);
        while (!open.empty() && open.back()->end <= span.begin + kDigits) open.pop_back();
        if (!open.empty()) {
          EXPECT_LE(span.end, open.back()->end + kDigits)
              << name << ": " << span.name << " ends after " << open.back()->name;
        }
        open.push_back(&span);
      }
    }
  }

  // The part of [begin, end) that spans of a row cover.
  double covered(const std::string& row, double begin, double end) const {
    double at = begin, sum = 0;
    for (const TraceSpan& span : rows_.at(row)) {
      const double from = std::max(span.begin, at), to = std::min(span.end, end);
      if (to <= from) continue;
      sum += to - from;
      at = to;
    }
    return end > begin ? sum / (end - begin) : 1;
  }

 private:
  std::map<std::string, std::vector<TraceSpan>> rows_;
};

}  // namespace pantala::tests
