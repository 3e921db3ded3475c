// What an MPI launcher (mpirun, srun) tells the processes that it starts, in their environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pantala::distributed {

using Environment = std::function<const char*(const char*)>;

struct Launch {
  int rank = 0;
  int size = 1;
  // The plug-ins that may be the launcher's, the likeliest first.
  std::vector<std::string> plugins;
};

// None if no launcher has started this process. `environment` is getenv, or a test's.
std::optional<Launch> launch_of(const Environment& environment);
// Of a process that no launcher has started.
std::vector<std::string> all_plugins();

}  // namespace pantala::distributed
