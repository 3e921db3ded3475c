// Layouts: images that direct convolutions read and write lie with channels last, or by planes, as
// the graph has them. Neither changes what is summed in which order, so bits are the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/graph.h"
#include "search/weigh.h"

namespace pantala::search {

// Convolutions that are alike, so that they are decided alike: one op, one type of result.
struct Imaged {
  std::string name;                  // "convolution f32[8,64,112,112]"
  std::vector<std::uint32_t> nodes;  // of the lowered graph
  std::int64_t elements = 0;
};
// Those that are computed directly, with channels last, and have most elements first.
std::vector<Imaged> with_channels_last(const Graph& graph);

// The graph with these convolutions by planes.
Graph by_planes(const Graph& graph, const std::vector<std::uint32_t>& nodes);

// The graph as it is given, or with all of them by planes, or kind after kind, as long as it pays.
// The graphs that are looked at have no more than `most_nodes` together.
Judged better_layouts(Judged given, Scales& scales, std::size_t most_nodes,
                      std::vector<Imaged>& changed);

}  // namespace pantala::search
