// Diagnosis of a step whose numbers stopped being finite: the step is replayed on the same device,
// a kernel per op, from the values that a session holds now, with every value kept, and the op is
// named where the trouble begins. What is replayed is what ran: the user's ops in the form that was
// compiled, and if these give only finite numbers, the lowered step that the search made of them.
//
// The session must hold what it held before the step. A guard (NonFiniteGuard) leaves it so; after
// a step without one the replay starts from numbers that may be spoilt already, and says so by
// naming a parameter or a state. Nothing of the session changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pantala/compile.h"
#include "pantala/data.h"
#include "pantala/session.h"

namespace pantala::train {

enum class StepPart : std::uint8_t {
  given,  // an input, parameter, state or hyper-parameter was not finite to begin with
  forward,
  backward,
  update,  // what comes after the gradients: accumulation, clipping, optimizer, averages
  chosen,  // the step as rules have rewritten it, where what they began with is finite
};
std::string_view part_name(StepPart part);

// The numbers of one value.
struct ValueSummary {
  std::string argument;  // what the op calls it: x, weight; of a result only if there are several
  std::string source;    // "parameter 'fc1.weight'", "relu (net.cpp:12)"
  Type type;
  double smallest = 0, largest = 0;    // of the finite elements, if there are some
  std::int64_t nan = 0, infinite = 0;  // elements
  std::optional<double> here = {};     // at the same place, if the result has the same shape
  std::int64_t finite() const { return type.shape.numel() - nan - infinite; }
  std::string text() const;
};

// The first op, in the order of the graph, with a result that is not finite though its inputs are,
// among those whose numbers reach `reaches`.
struct NonFiniteOrigin {
  StepPart part = StepPart::forward;
  std::string op;     // of the graph; input, parameter, ... for a given value
  std::string label;  // of the named block around it, if there is one
  std::string place;  // "net.cpp:12": where the user wrote it or, backward, what it belongs to
  ValueSummary result;
  std::vector<std::int64_t> index;  // of the first element that is not finite
  double value = 0;                 // of this element
  std::vector<ValueSummary> inputs;
  std::vector<std::string> rules = {};  // that made the op
  std::string reaches;  // "the loss", "the (norm of the) gradient of 'w'", "the new value of 'w'"
};

struct Diagnosis {
  // None if the replay met only finite numbers on its way to loss, gradients, their norms and new
  // values.
  std::optional<NonFiniteOrigin> origin;
  std::string device;
  std::string text() const;  // lines
};

// The names of a batch's arrays among the graph's inputs. An array whose name the graph does not
// have is left out.
struct BatchInputs {
  std::string data = "x", labels = "labels";
};

// `graph`, `loss` and `options` are what the step was compiled from. A session that splits its
// update is taken to have met the batch in `accumulate`, at the place of the window where it
// stands; if that is finite, then in the `apply` after it. TypeError for a graph that has other
// leaves than the session, and for inputs that the batch does not give.
Diagnosis diagnose(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                   const Session& session, const data::Batch& batch, const BatchInputs& names = {});

}  // namespace pantala::train
