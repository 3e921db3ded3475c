#include "tools/inspect/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace pantala::tools {

std::string table_text(const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = columns[c].title.size();
    for (const auto& row : rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  std::string text;
  const auto add_cell = [&](std::size_t c, std::string_view cell) {
    const bool is_last = c + 1 == columns.size();
    if (columns[c].is_number)
      text += fmt::format("{:>{}}", cell, widths[c]);
    else if (is_last)
      text += cell;  // nothing to align behind it
    else
      text += fmt::format("{:<{}}", cell, widths[c]);
    text += is_last ? "\n" : "  ";
  };
  for (std::size_t c = 0; c < columns.size(); ++c) add_cell(c, columns[c].title);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < columns.size(); ++c) add_cell(c, row[c]);
  return text;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024 * 1024) return counted(bytes, "byte");
  return fmt::format("{:.3f} MiB", static_cast<double>(bytes) / 1048576.0);
}

}  // namespace pantala::tools
