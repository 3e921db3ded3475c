// Ranks of an MPI job, through a plug-in (mpi_plugin.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pantala/distributed.h"

namespace pantala::distributed {

struct MpiOptions {
  std::vector<std::filesystem::path> folders;  // where plug-ins are looked for, in this order
  std::vector<std::string> plugins;            // their names, in this order
  // A rank that is not heard of for so long is lost.
  std::chrono::milliseconds timeout{8000};
  // For tests of slow networks: every message waits so long before it is sent.
  std::chrono::microseconds delay{0};
  // Tells people why the run ends, where the rank that it is about cannot.
  std::function<void(const std::string&)> tell;
};

class MpiCommunicator : public Communicator {
 public:
  // Ends this rank's part: returns when all have come here, or when the run has failed and the
  // others know. Nothing is sent afterwards.
  virtual void close() = 0;
  // What MPI it is.
  virtual const std::string& library() const = 0;
};

// Opens the plug-in and starts MPI. UnsupportedError saying where it was looked for if there is
// none, or what the MPI said. One for each process.
std::shared_ptr<MpiCommunicator> open_mpi(const MpiOptions& options);

}  // namespace pantala::distributed
