// Line charts as SVG files that need nothing else: axes with round numbers, a legend, a title. Any
// numbers can be drawn: those that have no place (not finite, not positive on a logarithmic axis)
// are left out, and long lines are thinned with their peaks kept, so that files stay small.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::monitor {

struct Point {
  double x = 0, y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

enum class Stroke : std::uint8_t {
  plain,
  faint,  // thin and pale: what lies behind a smooth line
  dashed,
  marked,  // with a dot at every point, if they are few
};
struct Curve {
  std::string label;  // "": not in the legend
  std::vector<Point> points = {};
  std::size_t colour = 0;  // a number; colours repeat after kColours
  Stroke stroke = Stroke::plain;
};
// A point that is pointed out.
struct Mark {
  Point at;
  std::string label;
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<Curve> curves = {};
  std::vector<Mark> marks = {};
  bool log_x = false, log_y = false;
  bool whole_x = false;      // ticks at whole numbers only: steps, epochs
  bool y_from_zero = false;  // the axis begins at 0 if no number is below it
};

inline constexpr std::size_t kColours = 8;
inline constexpr std::size_t kMostPoints = 2000;             // of a curve in the file
inline constexpr int kChartWidth = 720, kChartHeight = 440;  // higher if the legend needs room

std::string svg(const Chart& chart);

// A line through the neighbours of each point: over a twentieth of the length, but no more than a
// tenth of the way so far to either side, so that a steep beginning does not lift what comes after
// it, and points that are few stay what they are. Those that are not finite are left out, and very
// many are first averaged in stretches.
std::vector<Point> smoothed(std::span<const Point> points);

// --- the parts

// At most kMostPoints of the points, among them the lowest and highest of every stretch.
std::vector<Point> thinned(std::vector<Point> points);
// Multiples of 1, 2 or 5 times a power of ten that lie between the two.
std::vector<double> ticks_between(double low, double high, int about, bool whole = false);
std::vector<double> log_ticks_between(double low, double high);  // both > 0
std::string tick_text(double tick, double step);
std::string xml_text(std::string_view text);

}  // namespace pantala::monitor
