// What kernels that work element by element share: values computed by an emitter, stored to several
// buffers. The epilogues of other archetypes are made of the same parts.
#pragma once

#include <vector>

#include "schedule/arguments.h"
#include "schedule/context.h"
#include "schedule/loops.h"
#include "schedule/work.h"

namespace pantala::schedule {

// Values to be computed at one element of a domain, and where they go.
struct ElementwiseBody {
  ValueInfo info;
  Domain domain;
  Indices at;  // of all outputs
  std::vector<GroupOutput> outputs;
  Footprint footprint;
  std::vector<Affine> writes;      // per output
  std::int64_t window_stride = 0;  // of a window: elements from one of its places to the next
};

// Traces the outputs. `provided` are values that the kernel computes otherwise. The axes of the
// outputs are the domain's loops from 0 on; `more` further loops may follow.
ElementwiseBody make_body(const Context& context, std::vector<GroupOutput> outputs,
                          const Domain& domain, const std::function<bool(ValueId)>& provided = {});

// The same for an update_slice that is written over its own operand: the domain is that of the
// update, nothing else is touched.
ElementwiseBody make_window_body(const Context& context, const GroupOutput& output);

// Reads and writes of the body, for collapse().
std::vector<Affine> all_walks(const ElementwiseBody& body);

// What the body computes, reads and writes; `kernel` as in MemoryUse.
Work work_of(const Context& context, const ElementwiseBody& body, int kernel = kEveryKernel);

// Announces the body's buffers.
void announce(const Context& context, const ElementwiseBody& body, Arguments& arguments);

// Stores the lanes of a site at the declared place, moved by so many elements (invalid: none).
void store_output(kir::Builder& b, const DeclaredAccess& write, const Site& site, kir::Var value,
                  kir::Var moved = {});

// The body in a kernel: an emitter, and stores.
class BodyEmitter {
 public:
  // After the buffers have been declared.
  BodyEmitter(kir::Builder& b, const Context& context, const ElementwiseBody& body,
              Arguments& arguments);
  Emitter& emitter() { return emitter_; }
  // Computes all outputs, then stores them: a kernel may overwrite what it reads.
  void run(const Site& site);
  // Stores one value for an output.
  void store(std::size_t output, const Site& site, kir::Var value);

 private:
  kir::Builder& b_;
  const ElementwiseBody& body_;
  std::vector<DeclaredAccess> writes_;
  Emitter emitter_;
};

}  // namespace pantala::schedule
