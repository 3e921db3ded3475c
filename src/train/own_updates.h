// Optimizer states that are shared out over ranks: each parameter is updated by one rank, which
// alone keeps its states, and then given to the others. Gradients, their norms and clipping are
// those of all parameters on every rank, so that the bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/safetensors_write.h"
#include "pantala/distributed.h"
#include "pantala/session.h"
#include "pantala/training_step.h"

namespace pantala::train {

// The parameters that this rank updates: largest first, each goes to the rank that has least so
// far. UnsupportedError with averages of the weights, which are kept whole.
std::vector<std::string> own_parameters(const Graph& graph, const TrainingStepOptions& options,
                                        const distributed::Communicator& ranks);

class OwnUpdates {
 public:
  // The session was compiled with own_parameters().
  explicit OwnUpdates(std::shared_ptr<distributed::Communicator> ranks);

  // After an update: every rank has all parameters.
  void share(Session& session);

  // States of other ranks, on rank 0; every rank calls it.
  class States {
   public:
    std::int64_t bytes() const;
    std::vector<io::TensorBytes> tensors() const;

   private:
    friend class OwnUpdates;
    struct State {
      std::string name;
      Type type;
      std::vector<std::byte> bytes;
    };
    std::vector<State> states_;
  };
  States gather_states(const Session& session) const;

 private:
  void find_parts(Session& session);
  // The store's entries of the parameters that a rank updates, and their bytes.
  struct Part {
    std::vector<std::size_t> entries;
    std::vector<std::byte> bytes;
  };

  std::shared_ptr<distributed::Communicator> ranks_;
  std::vector<Part> parts_;  // by rank
};

}  // namespace pantala::train
