// The text form of a graph: prints and parses back to the same graph. Golden tests and bug reports
// use it.
#pragma once

#include <string>
#include <string_view>

#include "pantala/graph.h"

namespace pantala {

struct PrintOptions {
  bool locations = false;  // append each node's label and source line as a comment
};
std::string to_text(const Graph& graph, const PrintOptions& options = {});
// `file` is the name used in messages. ParseError or TypeError with its line.
Graph parse_graph(std::string_view text, std::string_view file = "<text>");

}  // namespace pantala
