// The ranks of a job that are processes of this machine, and which of them have ended: the kernel
// says so at once, of processes that were killed, too.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pantala/distributed.h"

namespace pantala::distributed {

class Neighbours {
 public:
  // All ranks call it. None are known where the kernel has no process descriptors (before Linux
  // 5.3).
  explicit Neighbours(Communicator& ranks);
  ~Neighbours();
  Neighbours(Neighbours&& other) noexcept;
  Neighbours& operator=(Neighbours&&) = delete;

  // Ranks that have ended, at the latest after this time.
  std::vector<int> wait_for_end(std::chrono::milliseconds most) const;
  // The lowest rank of this machine, itself included, that is none of these.
  int first_but(const std::vector<int>& ended) const;
  int process_of(int rank) const;

 private:
  struct Neighbour {
    int rank, process;
    int descriptor;  // -1 of this rank itself
  };
  std::vector<Neighbour> list_;  // in order
};

}  // namespace pantala::distributed
