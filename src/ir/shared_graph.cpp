#include "ir/shared_graph.h"

#include "ir/graph_data.h"

namespace pantala::ir {

Graph shared(const Graph& graph) { return Graph(std::const_pointer_cast<GraphData>(graph.data())); }

}  // namespace pantala::ir
