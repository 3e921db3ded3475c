#include "monitor/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "monitor/records.h"

namespace pantala::monitor {

namespace {

// Told apart by people who do not see all colours, too (after Okabe and Ito; no yellow on white).
constexpr std::array<std::string_view, kColours> kPalette{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b5b5b", "#8c4fb0"};
constexpr double kLeft = 68, kRight = 22, kBottom = 54, kLegendTop = 54, kLegendRow = 19;
constexpr double kCharacterWidth = 6.7;  // of the legend's letters, on average
constexpr std::size_t kMostLabel = 48, kMostTitle = 72, kMostDots = 60;
// Beyond it differences overflow.
constexpr double kMostValue = 1e300;

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t most) {
  std::string out = printable(text);
  if (characters(out) <= most) return out;
  while (characters(out) >= most) {
    while ((static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    out.pop_back();
  }
  return out + "…";
}

// Where numbers are on the paper, along one axis.
class Axis {
 public:
  Axis(bool log, double from, double to) : log_(log), from_(from), to_(to) {}

  bool holds(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double scaled(double value) const {
    return log_ ? std::log10(value) : std::clamp(value, -kMostValue, kMostValue);
  }
  void include(double value) {
    if (!holds(value)) return;
    low_ = std::min(low_, scaled(value));
    high_ = std::max(high_, scaled(value));
  }
  // On a logarithmic axis, the nearest value that is at most a decade away from what is included.
  double limited(double value) const {
    if (!log_ || low_ > high_) return value;
    return std::pow(10, std::clamp(std::log10(value), low_ - 1, high_ + 1));
  }
  // Once everything is included.
  void finish(double margin, bool from_zero) {
    if (low_ > high_) low_ = 0, high_ = 1;
    const bool at_zero = from_zero && !log_ && low_ >= 0;
    if (at_zero) low_ = 0;
    const double least = std::max({std::abs(low_), std::abs(high_), 1e-300}) * 1e-9;
    if (high_ - low_ < least) {
      const double half = std::max(least, log_ ? 0.5 : std::abs(high_) / 10 + 1e-12);
      high_ += half;
      if (!at_zero) low_ -= half;
    }
    const double extra = (high_ - low_) * margin;
    high_ += extra;
    if (!at_zero) low_ -= extra;
  }
  double place(double value) const { return place_scaled(scaled(value)); }
  std::vector<double> ticks(int about, bool whole) const {
    if (log_) return log_ticks_between(std::pow(10, low_), std::pow(10, high_));
    return ticks_between(low_, high_, about, whole);
  }
  bool log() const { return log_; }

 private:
  double place_scaled(double value) const {
    const double share = std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
    return from_ + share * (to_ - from_);
  }
  bool log_;
  double from_, to_;
  double low_ = std::numeric_limits<double>::infinity(),
         high_ = -std::numeric_limits<double>::infinity();
};

std::vector<Point> drawable(const Curve& curve, const Axis& x, const Axis& y) {
  std::vector<Point> points;
  for (const Point& point : curve.points)
    if (x.holds(point.x) && y.holds(point.y)) points.push_back(point);
  return thinned(std::move(points));
}

std::string_view colour_of(const Curve& curve) { return kPalette[curve.colour % kColours]; }
std::string stroke_of(const Curve& curve) {
  switch (curve.stroke) {
    case Stroke::faint:
      return "stroke-width=\"1\" stroke-opacity=\"0.28\"";
    case Stroke::dashed:
      return "stroke-width=\"1.8\" stroke-dasharray=\"6 4\"";
    case Stroke::plain:
    case Stroke::marked:
      break;
  }
  return "stroke-width=\"2\"";
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        legend_(place_legend()),
        height_(kChartHeight + kLegendRow * std::max(0.0, legend_rows_ - 1)),
        top_(kLegendTop + kLegendRow * legend_rows_ + 4),
        bottom_(height_ - kBottom),
        x_(chart.log_x, kLeft, kChartWidth - kRight),
        y_(chart.log_y, bottom_, top_) {
    for (const Curve& curve : chart.curves) points_.push_back(drawable(curve, x_, y_));
    include_curves();
    for (const Mark& mark : chart.marks)
      if (x_.holds(mark.at.x) && y_.holds(mark.at.y)) include(mark.at);
    x_.finish(0.01, false);
    y_.finish(0.05, chart.y_from_zero);
  }

  std::string text() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"'Helvetica Neue', Helvetica, Arial, "
        "sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
        "<text x=\"{3}\" y=\"30\" font-size=\"16\" font-weight=\"600\" fill=\"#222222\">{2}"
        "</text>\n",
        kChartWidth, height_, xml_text(shortened(chart_.title, kMostTitle)), kLeft);
    draw_legend();
    draw_axes();
    for (std::size_t k = 0; k < points_.size(); ++k) draw_curve(chart_.curves[k], points_[k]);
    for (const Mark& mark : chart_.marks) draw_mark(mark);
    return out_ + "</svg>\n";
  }

 private:
  struct LegendEntry {
    const Curve* curve;
    std::string label;
    double x, row;
  };

  void include(const Point& point) {
    x_.include(point.x);
    y_.include(point.y);
  }

  // What lies behind other curves scatters: it widens a logarithmic axis by a decade at most.
  void include_curves() {
    for (const bool faint : {false, true}) {
      const Axis others = y_;
      for (std::size_t k = 0; k < points_.size(); ++k)
        if ((chart_.curves[k].stroke == Stroke::faint) == faint)
          for (const Point& point : points_[k])
            include({point.x, faint ? others.limited(point.y) : point.y});
    }
  }

  // Entries side by side, as many rows as it takes.
  std::vector<LegendEntry> place_legend() {
    std::vector<LegendEntry> entries;
    double x = kLeft, row = 0;
    for (const Curve& curve : chart_.curves) {
      if (curve.label.empty()) continue;
      std::string label = shortened(curve.label, kMostLabel);
      const double width = 48 + kCharacterWidth * static_cast<double>(characters(label));
      if (x > kLeft && x + width > kChartWidth - kRight) x = kLeft, row += 1;
      entries.push_back({&curve, std::move(label), x, row});
      x += width;
    }
    legend_rows_ = entries.empty() ? 0 : row + 1;
    return entries;
  }

  void draw_legend() {
    for (const LegendEntry& entry : legend_) {
      const double y = kLegendTop + kLegendRow * entry.row;
      out_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n",
          entry.x, y - 4, entry.x + 22, y - 4, colour_of(*entry.curve), stroke_of(*entry.curve));
      if (entry.curve->stroke == Stroke::marked)
        draw_dot(entry.x + 11, y - 4, colour_of(*entry.curve));
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#444444\">{}</text>\n",
                          entry.x + 28, y, xml_text(entry.label));
    }
  }

  void draw_axes() {
    const double right = kChartWidth - kRight;
    out_ += "<g stroke=\"#e8e8e8\" stroke-width=\"1\">\n";
    const std::vector<double> x_ticks = x_.ticks(7, chart_.whole_x), y_ticks = y_.ticks(6, false);
    for (const double tick : y_ticks)
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y_.place(tick), right);
    for (const double tick : x_ticks)
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x_.place(tick), top_, bottom_);
    out_ += "</g>\n";
    out_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" fill=\"none\" stroke=\"#8a8a8a\"/>\n"
        "<g fill=\"#555555\" font-size=\"11.5\">\n",
        kLeft, top_, bottom_, right);
    draw_tick_texts(x_ticks, y_ticks);
    out_ += "</g>\n";
    out_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444444\">{}</text>\n",
        (kLeft + right) / 2, bottom_ + 40, xml_text(shortened(chart_.x_label, kMostLabel)));
    out_ += fmt::format(
        "<text transform=\"translate(17 {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
        "fill=\"#444444\">{}</text>\n",
        (top_ + bottom_) / 2, xml_text(shortened(chart_.y_label, kMostLabel)));
  }

  void draw_tick_texts(const std::vector<double>& x_ticks, const std::vector<double>& y_ticks) {
    const auto step = [](const Axis& axis, const std::vector<double>& ticks) {
      return axis.log() || ticks.size() < 2 ? 0 : ticks[1] - ticks[0];
    };
    for (const double tick : x_ticks)
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                          x_.place(tick), bottom_ + 18, tick_text(tick, step(x_, x_ticks)));
    for (const double tick : y_ticks)
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                          kLeft - 8, y_.place(tick) + 4, tick_text(tick, step(y_, y_ticks)));
  }

  void draw_dot(double x, double y, std::string_view colour) {
    out_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\" fill=\"{}\" stroke=\"#ffffff\"/>\n", x, y,
        colour);
  }

  void draw_curve(const Curve& curve, const std::vector<Point>& points) {
    if (points.empty()) return;
    out_ += fmt::format("<path fill=\"none\" stroke-linejoin=\"round\" stroke=\"{}\" {} d=\"",
                        colour_of(curve), stroke_of(curve));
    char command = 'M';
    for (const Point& point : points) {
      out_ += fmt::format("{}{:.1f} {:.1f}", command, x_.place(point.x), y_.place(point.y));
      command = 'L';
    }
    out_ += "\"/>\n";
    // A line of one point would not be seen.
    if ((curve.stroke == Stroke::marked && points.size() <= kMostDots) || points.size() == 1)
      for (const Point& point : points)
        draw_dot(x_.place(point.x), y_.place(point.y), colour_of(curve));
  }

  void draw_mark(const Mark& mark) {
    if (!x_.holds(mark.at.x) || !y_.holds(mark.at.y)) return;
    const double x = x_.place(mark.at.x), y = y_.place(mark.at.y);
    const bool on_the_right = x > (kLeft + kChartWidth - kRight) / 2;
    out_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#333333\" stroke-width=\"1\" "
        "stroke-dasharray=\"3 3\"/>\n"
        "<circle cx=\"{0:.1f}\" cy=\"{3:.1f}\" r=\"5\" fill=\"#ffffff\" stroke=\"#333333\" "
        "stroke-width=\"2\"/>\n"
        // Twice: with a white rim, so that it can be read over lines, and itself.
        "<g font-weight=\"600\" text-anchor=\"{6}\" fill=\"#222222\">\n"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\" stroke=\"#ffffff\" stroke-width=\"3\">{7}</text>\n"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{7}</text>\n</g>\n",
        x, top_, bottom_, y, on_the_right ? x - 9 : x + 9, top_ + 14,
        on_the_right ? "end" : "start", xml_text(shortened(mark.label, kMostLabel)));
  }

  const Chart& chart_;
  double legend_rows_ = 0;
  std::vector<LegendEntry> legend_;
  double height_, top_, bottom_;
  Axis x_, y_;
  std::vector<std::vector<Point>> points_;
  std::string out_;
};

// The finite points, or of very many the means of as many stretches as can be told apart.
std::vector<Point> stretch_means(std::span<const Point> points) {
  constexpr double kMostSummed = 1e280;  // sums of products must stay finite
  std::vector<Point> finite;
  for (const Point& point : points)
    if (std::isfinite(point.x) && std::isfinite(point.y))
      finite.push_back({std::clamp(point.x, -kMostSummed, kMostSummed),
                        std::clamp(point.y, -kMostSummed, kMostSummed)});
  const std::size_t stretches = std::min(finite.size(), 2 * kMostPoints);
  std::vector<Point> means;
  for (std::size_t k = 0; k < stretches; ++k) {
    const std::size_t begin = k * finite.size() / stretches,
                      end = (k + 1) * finite.size() / stretches;
    Point sum;
    for (std::size_t i = begin; i < end; ++i) sum = {sum.x + finite[i].x, sum.y + finite[i].y};
    const auto count = static_cast<double>(end - begin);
    means.push_back({sum.x / count, sum.y / count});
  }
  return means;
}

// How far around a point its neighbours count: of the whole length, and of the way to the point.
// Losses fall fast at first: what lies far back on the way says nothing about here.
constexpr double kMostReach = 1.0 / 40, kReachSoFar = 1.0 / 10;

// The value at point k of the line through the neighbours within the reach, the nearer ones
// counting more. In the middle that is their mean; at the end, where there are none on one side, it
// neither lags behind nor follows a single point. It never leaves the range of the neighbours.
double fitted_value(const std::vector<Point>& points, std::size_t k, double reach) {
  const double here = points[k].y;
  if (!(reach > 0)) return here;
  double n = 0, x = 0, xx = 0, y = 0, xy = 0, low = here, high = here;
  const auto add = [&](const Point& point) {
    const double distance = (point.x - points[k].x) / reach;
    if (!(std::abs(distance) < 1)) return false;
    const double weight = 1 - distance * distance;
    n += weight;
    x += weight * distance;
    xx += weight * distance * distance;
    y += weight * point.y;
    xy += weight * distance * point.y;
    low = std::min(low, point.y);
    high = std::max(high, point.y);
    return true;
  };
  add(points[k]);
  for (std::size_t i = k; i-- > 0 && add(points[i]);) {}
  for (std::size_t i = k + 1; i < points.size() && add(points[i]); ++i) {}
  const double determinant = n * xx - x * x;
  return determinant > 0 ? std::clamp((y * xx - x * xy) / determinant, low, high) : here;
}

}  // namespace

std::string svg(const Chart& chart) { return Drawing(chart).text(); }

std::vector<Point> smoothed(std::span<const Point> points) {
  const std::vector<Point> means = stretch_means(points);
  std::vector<Point> out = means;
  if (means.empty()) return out;
  const double begin = means.front().x, most = (means.back().x - begin) * kMostReach;
  for (std::size_t k = 0; k < means.size(); ++k)
    out[k].y = fitted_value(means, k, std::min(most, (means[k].x - begin) * kReachSoFar));
  return out;
}

std::vector<Point> thinned(std::vector<Point> points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<Point> out;
  const std::size_t stretches = kMostPoints / 2 - 1;
  const auto begin_of = [&](std::size_t stretch) {
    return 1 + stretch * (points.size() - 2) / stretches;
  };
  out.push_back(points.front());
  for (std::size_t k = 0; k < stretches; ++k) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin_of(k));
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(begin_of(k + 1));
    const auto [low, high] =
        std::minmax_element(first, last, [](const Point& a, const Point& b) { return a.y < b.y; });
    out.push_back(*std::min(low, high));
    if (low != high) out.push_back(*std::max(low, high));
  }
  out.push_back(points.back());
  return out;
}

std::vector<double> ticks_between(double low, double high, int about, bool whole) {
  const double raw = (high - low) / about;
  if (!(raw > 0) || !std::isfinite(raw)) return {};
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= power * factor * 1.0001) {
      step = power * factor;
      break;
    }
  if (whole) step = std::max(step, 1.0);
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int k = 0; k <= 4 * about; ++k) {
    const double tick = (first + k) * step;
    if (tick > high + 1e-9 * step) break;
    ticks.push_back(tick == 0 ? 0.0 : tick);  // no -0
  }
  return ticks;
}

std::vector<double> log_ticks_between(double low, double high) {
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const double decades = std::log10(high) - std::log10(low);
  if (!(decades > 0) || !std::isfinite(decades)) return {};
  // All powers of ten, or only every so many of them; 2 and 5 between if they are few.
  const double stride = std::max(1.0, std::ceil(decades / 8));
  const std::vector<double> factors = decades < 2.5 ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
  std::vector<double> ticks;
  for (double power = std::ceil(first / stride) * stride; power <= last; power += stride)
    for (const double factor : factors) {
      const double tick = factor * std::pow(10, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  return ticks;
}

std::string tick_text(double tick, double step) {
  const double size = std::abs(tick);
  // Sums of steps have rounding errors: only digits down to the step's are shown.
  if (step > 0 && step >= 1e-5 && size < 1e7) {
    const int digits = static_cast<int>(std::max(0.0, -std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}f}", tick, digits);
  }
  if (size >= 1e-4 && size < 1e7 && step == 0) return fmt::format("{:.4g}", tick);
  int digits = 1;
  if (step > 0 && size > 0)
    digits = std::clamp(static_cast<int>(std::floor(std::log10(size / step) + 1e-9)) + 1, 1, 12);
  std::string text = fmt::format("{:.{}g}", tick, digits);
  // 1e-05 -> 1e-5
  const std::size_t e = text.find('e');
  if (e != std::string::npos) {
    if (text[e + 1] == '+') text.erase(e + 1, 1);
    const std::size_t number = e + 1 + (text[e + 1] == '-' ? 1U : 0U);
    while (number + 1 < text.size() && text[number] == '0') text.erase(number, 1);
  }
  return text;
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace pantala::monitor
