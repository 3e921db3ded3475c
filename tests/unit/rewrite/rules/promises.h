// Whether two graphs are equal as a rule promises.
#pragma once

#include <optional>
#include <string>

#include "pantala/interpreter.h"
#include "rewrite/rule.h"
#include "support/random_graph.h"

namespace pantala::rewrite::samples {

// What the rule makes of the graph; nothing if it does not fire.
std::optional<Graph> rewritten(const Graph& graph, const Rule& rule);

enum class Numbers : std::uint8_t {
  integers,  // small ones
  special,   // zeros of both signs, infinities, NaN, subnormals, the largest numbers
};
// Values of all leaves but the scalars; those of "i" are indices, which stay small.
ref::Bindings bindings_of(const Graph& graph, tests::Random& r, Numbers numbers);
// Outputs by the interpreter, with the bindings of those leaves that the graph has.
std::vector<Literal> exactly(const Graph& graph, ref::Bindings bindings);

// The same graph with another type in the place of f32.
Graph in_type(const Graph& graph, DType dtype);
// The same graph with every value as an output.
Graph with_all_values(const Graph& graph);

// What differs between the two on small integers in double, or "".
std::string differing_numbers(const Graph& given, const Graph& made, tests::Random& r,
                              double tolerance);
// What differs when they are compiled for a device, or "": in bits, or only in the sign of zeros,
// where that is promised; else made is as near to the numbers of the interpreter as given is.
std::string differing_results(const Graph& given, const Graph& made, tests::Random& r,
                              Promise promise, const std::string& device);

}  // namespace pantala::rewrite::samples
