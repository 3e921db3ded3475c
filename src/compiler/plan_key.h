// The key of a plan: a hash of everything that can change what the compiler makes. It is taken from
// the user's graph, before anything is done to it, so that a cached plan costs no compilation.
#pragma once

#include <string>

#include "base/sha256.h"
#include "pantala/compile.h"

namespace pantala::compiler {

// What is hashed, as text. Values of the optimizer's scalars are no part of it: they can be set
// without recompiling. `loss` is empty for a plain graph.
std::string key_text(const Graph& graph, const Tensor& loss, const CompileOptions& options);
Digest plan_key(const Graph& graph, const Tensor& loss, const CompileOptions& options);

}  // namespace pantala::compiler
