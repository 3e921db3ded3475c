// A line of progress as parts, of which those that matter least go where the line is too narrow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pantala::monitor {

struct LinePart {
  std::string label, text;
  int rank = 0;  // high ones are the first to go; up to 1 they are bold where there are colours
  std::size_t size() const { return label.size() + (label.empty() ? 0 : 1) + text.size(); }
};

std::string joined(const std::vector<LinePart>& parts, bool colour);
// In at most `width` columns; of several parts of one rank the last one goes first.
std::string fitted(std::vector<LinePart> parts, std::size_t width, bool colour);

}  // namespace pantala::monitor
