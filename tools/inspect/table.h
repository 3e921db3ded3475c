// Rows in aligned columns, and sizes, for the tables of `pantala inspect`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::tools {

struct Column {
  std::string_view title;
  bool is_number = false;  // aligned to the right
};
// A line for the titles and one for each row; every row has a cell for every column.
std::string table_text(const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows);

// "512 bytes", "1.500 MiB".
std::string size_text(std::uint64_t bytes);

}  // namespace pantala::tools
