// The kernels of a reduction on a GPU, and what they share.
#pragma once

#include <functional>
#include <vector>

#include "schedule/common/elementwise.h"
#include "schedule/common/reduce/traced.h"
#include "schedule/gpu/elements.h"

namespace pantala::schedule::gpu {

constexpr std::int64_t kSumBlock = 2048;

// How the threads of a workgroup share the rows out.
struct RowSharing {
  bool by_group = true;  // a row for all threads, else a row for each
  int threads = 64;
};

// The passes over a row.
class RowReducer {
 public:
  RowReducer(kir::Builder& b, const Context& context, const TracedReduce& traced,
             const RowSharing& sharing, Arguments& arguments);
  Emitter& emitter() { return emitter_; }
  kir::Var count() const { return count_; }

  // The results of the reductions of a level over elements [begin, end) of a row, known to all of
  // its threads. `beside` is emitted at each element as well.
  std::vector<kir::Var> reduce(const Site& row, kir::Var begin, kir::Var end, int level,
                               const std::function<void(const Site&)>& beside = {});
  // Makes the results of a level known to the emitter.
  void provide(int level, const std::vector<kir::Var>& results);
  // What is made of whole results at the elements of a row.
  void make(const Site& row, const std::function<void(const Site&)>& body);

 private:
  kir::Builder& b_;
  const TracedReduce& traced_;
  const RowSharing sharing_;
  kir::Var count_;
  LoopNest elements_, made_;
  Emitter emitter_;
};

// The outputs of a group at one place of a kernel.
class ReduceStores {
 public:
  ReduceStores(kir::Builder& b, const TracedReduce& traced, Arguments& arguments);
  // Computes and then stores those that the condition holds for: a kernel may overwrite what it
  // reads.
  void run(Emitter& emitter, const Site& site,
           const std::function<bool(const ReduceOutput&)>& which);

 private:
  kir::Builder& b_;
  const TracedReduce& traced_;
  std::vector<DeclaredAccess> writes_;
};

KernelDraft build_rows(Building& building, const TracedReduce& traced, const RowSharing& sharing);
// Partial results of blocks go to buffers [blocks, rows], which the second kernel combines.
std::vector<KernelDraft> build_split(Building& building, const TracedReduce& traced,
                                     const RowSharing& sharing);

}  // namespace pantala::schedule::gpu
