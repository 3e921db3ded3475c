// Jobs of the real command under the launchers of both MPIs of Debian.
#pragma once

#include <signal.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cli/training.h"

namespace pantala::tests {

struct Mpi {
  std::string name, launcher;
};
inline void PrintTo(const Mpi& mpi, std::ostream* out) { *out << mpi.name; }
std::vector<Mpi> both_mpis();

// Whether all of it is run (`make test-mpi`); a part of it is, in any case.
bool wants_all_of_mpi();

class JobTest : public TrainingTest, public testing::WithParamInterface<Mpi> {
 protected:
  JobTest();

  // A small run in the folder `out` that has a little of everything: four shards.
  std::vector<std::string> shards(const std::string& out, std::vector<std::string> more = {},
                                  int epochs = 4) const;
  // The words of a launcher.
  static std::vector<std::string> job(int ranks, const std::vector<std::string>& words);
  static Outcome run_job(int ranks, const std::vector<std::string>& words);
  // The processes of a job in this folder, by rank, once all of them are there.
  std::map<int, pid_t> processes(const std::string& out, int ranks) const;
  // Once the run has logged a step.
  void wait_for_steps(const std::string& out, Running& job) const;
  // The model and the newest checkpoint, and the log without its times.
  std::string record(const std::string& out) const;
};

// Lines of the command's own.
std::vector<std::string> messages_of(const Outcome& outcome);

}  // namespace pantala::tests
