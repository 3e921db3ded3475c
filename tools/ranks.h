// Verbs that several processes run together, as an MPI launcher starts them (docs/cluster.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pantala/distributed.h"
#include "run/core/config.h"
#include "run/ranks.h"
#include "run/trained.h"
#include "tools/options.h"

namespace pantala::tools {

// Calls `body` with the ranks of the job that this process belongs to, or null if it is none, and
// ends with all of them: returns the exit code when all have come to the end. `mode`: "auto", which
// is MPI if a launcher has started this process; "mpi"; "none". What is thrown on one rank ends the
// others, and one of them says it.
int in_ranks(const std::string& mode, const run::RunConfig& config,
             const std::function<int(const std::shared_ptr<distributed::Communicator>&)>& body);

// The option that says which `mode` it is; `what` the ranks do together: "train".
void add_distributed_option(VerbOptions& verb, std::string& mode, const std::string& what);

// The model of a run folder on all ranks, which compile one after the other and share their CPUs.
run::Trained open_on_ranks(const std::string& folder, run::OpenOptions options,
                           const run::RunRanks& ranks);
// TypeError where a rank has another model or other items.
void agree_on_items(const run::RunRanks& ranks, const run::Trained& trained,
                    const data::Dataset& items);

// The batches of a data set that a rank evaluates, as one rank would have them.
class OwnBatches : public data::Loader {
 public:
  OwnBatches(const run::RunRanks& ranks, std::unique_ptr<data::Loader> all);
  void shuffle(std::uint64_t epoch) override;
  void reset() override;
  std::optional<data::Batch> next_batch() override;
  std::optional<std::int64_t> batches() const override { return own_.size(); }
  // Of the first batch, among those of the data set.
  std::int64_t first_item() const;

 private:
  std::unique_ptr<data::Loader> all_;
  distributed::Range own_;
  std::int64_t next_ = 0;
};

// A callback of `pantala train`, which fails where a test asks for it by PANTALA_MPI_FAULT.
void meet_planned_fault(const distributed::Communicator* ranks, std::int64_t steps);

}  // namespace pantala::tools
