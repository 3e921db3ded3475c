// The kernels of a compiled graph with the nodes that each computes: where they stand in the user's
// program, and by which rules they came about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/pipeline.h"
#include "ir/graph_data.h"

namespace pantala::tools {

struct KernelNode {
  std::uint32_t id = 0;      // in the graph
  std::string op, type;      // "add", "f32[64,10]"; of several results all types
  std::string place, label;  // "net.cpp:41", "fc1"; "" if nothing is known
  std::vector<std::uint32_t> inputs;
  std::vector<ir::Rewriting> rewrites;  // in their order
};

// Launches that compute nodes together.
struct ExplainedKernel {
  std::vector<std::string> launches;   // their names
  std::vector<std::size_t> positions;  // of the launches, in the step
  std::vector<std::string> codes;      // the kernels that they run
  std::string layers, ops;
  double flops = 0, bytes = 0;
  double predicted_us = 0, measured_us = 0;  // measured: 0 if it was not
  std::vector<KernelNode> nodes;             // operands first
  std::vector<KernelNode> leaves;            // that it reads, and numbers of the host
  std::vector<std::size_t> reads;            // kernels whose results it reads

  const std::string& name() const { return launches.at(0); }
  // The rules that made its nodes or stand behind what it reads, by their first use.
  std::vector<std::string> rules() const;
  // The places of its nodes, each once.
  std::vector<std::string> places() const;
};

// Of a chosen graph and what compile_chosen() reports about it.
std::vector<ExplainedKernel> explained_kernels(const Graph& chosen, const Report& report,
                                               const compiler::Options& options);

// The one of a number, or those with launches of a name. TypeError with the nearest name.
std::vector<std::size_t> find_kernels(const std::vector<ExplainedKernel>& kernels,
                                      std::string_view name);

}  // namespace pantala::tools
