// Verbs that several processes run together, as an MPI launcher starts them (docs/cluster.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pantala/distributed.h"
#include "run/core/config.h"

namespace pantala::tools {

// Calls `body` with the ranks of the job that this process belongs to, or null if it is none, and
// ends with all of them: returns the exit code when all have come to the end. `mode`: "auto", which
// is MPI if a launcher has started this process; "mpi"; "none". What is thrown on one rank ends the
// others, and one of them says it.
int in_ranks(const std::string& mode, const run::RunConfig& config,
             const std::function<int(const std::shared_ptr<distributed::Communicator>&)>& body);

}  // namespace pantala::tools
