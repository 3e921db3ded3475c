// Printer and parser of the text form. The parser is handed the op table, because ir/ stands below
// the op families.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"

namespace pantala::ir {

std::string print(const GraphData& graph, bool locations);
// Names of all ops, for the message about an unknown one.
Graph parse(std::string_view text, std::string_view file, const OpLookup& find_op,
            std::span<const std::string> op_names);

}  // namespace pantala::ir
