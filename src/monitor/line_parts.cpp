#include "monitor/line_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace pantala::monitor {

namespace {

constexpr std::string_view kDim = "\x1b[2m", kBold = "\x1b[1m", kNormal = "\x1b[0m";

std::size_t length_of(const std::vector<LinePart>& parts) {
  std::size_t length = parts.empty() ? 0 : 2 * (parts.size() - 1);
  for (const LinePart& part : parts) length += part.size();
  return length;
}

}  // namespace

std::string joined(const std::vector<LinePart>& parts, bool colour) {
  std::string line;
  for (const LinePart& part : parts) {
    if (!line.empty()) line += "  ";
    if (!part.label.empty())
      line += colour ? fmt::format("{}{}{} ", kDim, part.label, kNormal)
                     : fmt::format("{} ", part.label);
    line += colour && part.rank <= 1 ? fmt::format("{}{}{}", kBold, part.text, kNormal) : part.text;
  }
  return line;
}

std::string fitted(std::vector<LinePart> parts, std::size_t width, bool colour) {
  while (parts.size() > 1 && length_of(parts) > width) {
    const auto least =
        std::max_element(parts.rbegin(), parts.rend(),
                         [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; });
    parts.erase(std::next(least).base());
  }
  if (length_of(parts) > width) return joined(parts, false).substr(0, width);
  return joined(parts, colour);
}

}  // namespace pantala::monitor
