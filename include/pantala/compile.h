// Compilation: a graph becomes a plan, which a Session (pantala/session.h) runs. Nothing here opens
// a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pantala/cancelled.h"
#include "pantala/compiled_plan.h"
#include "pantala/graph.h"
#include "pantala/optim.h"
#include "pantala/training_step.h"

namespace pantala {

namespace trace {
class Recorder;
}

// How the compiler looks for something equal that takes less time (docs/rewriting.md).
enum class Rewrite : std::uint8_t {
  none,    // the graph as it is given
  greedy,  // the rules in their order, each wherever it fits
  egraph,  // the best of all that the rules say is equal
};
// What it may take for equal.
enum class Numerics : std::uint8_t {
  strict,   // what has the same bits
  relaxed,  // what is equal over the real numbers
  fast,     // what is equal where all numbers are finite and nothing overflows
};

// By the names of the values; TypeError with the nearest for another name.
Rewrite rewrite_named(std::string_view name);
Numerics numerics_named(std::string_view name);
// "500M", "2G", "1.5GiB" (G is 10^9, Gi is 2^30), or nothing, which is no limit: 0. TypeError for a
// text that is no size above 0.
std::int64_t memory_limit_named(std::string_view text);
// The text of a CompileOptions::cost_table, checked: what a file that is changed later does not
// change. "" stays "".
std::string cost_table_text(const std::string& cost_table);
const std::vector<std::string>& rewrite_names();
const std::vector<std::string>& numerics_names();

struct CompileOptions {
  // What computes: "cpu"; "vulkan", the first GPU, "vulkan:1" one by its number, "vulkan:radeon" by
  // a part of its name; "auto", the first GPU or else the CPU; "kir", the interpreter of kernels:
  // slow, checks everything.
  std::string device = "cpu";
  int threads = 0;  // 0: as many as the process may use
  // A class of processors that code is made for: x86-64-v3 (AVX2), x86-64-v4 (AVX-512), ...; "":
  // the one that this is. UnsupportedError for a name that is none.
  std::string target = {};
  bool optimize = true;  // false: a kernel per op and no rewriting, for debugging
  Rewrite rewrite = Rewrite::egraph;
  Numerics numerics = Numerics::relaxed;
  // Of Rewrite::greedy: the rules in an order that is drawn by this number; 0: as they are listed.
  int greedy_order = 0;
  // Rules that are switched off, by name; TypeError with the nearest name for one that is none.
  std::vector<std::string> rules_off = {};
  // The most bytes that temporaries and scratch of a step may take (Report::peak_bytes; parameters,
  // states and inputs come on top); 0: no limit. What does not fit is computed again instead of
  // kept, with the same bits, and what follows from parameters alone is kept from run to run
  // (SessionMemory::prepared) only where there is room for it, too. UnsupportedError that names the
  // smallest peak where that is not enough.
  std::int64_t memory_limit = 0;
  // The cost table by which the compiler chooses: a file that holds one (`pantala tune` writes such
  // files), or the text of one, which has several lines; "": the one that is shipped for vectors of
  // the processor's width. IoError for a file that cannot be read, ParseError with its line for one
  // that holds none.
  std::string cost_table = {};
  NonFiniteGuard non_finite = NonFiniteGuard::loss;
  // The outputs of the graph that are wanted, by name; empty: all. Inputs that nothing wanted needs
  // are none of the plan's, so that a graph with a loss gives its other outputs without labels. A
  // training step has its loss in any case. TypeError with the nearest name for one that is none.
  std::vector<std::string> outputs = {};
  // Values that can be read after a step beside the outputs.
  std::vector<std::pair<std::string, Tensor>> observe = {};
  bool observe_gradients = false;  // all gradients, as Session::gradient()
  // Training: micro-batches per update; more than 1 makes an `accumulate` and an `apply` plan.
  std::int64_t accumulation_steps = 1;
  // What the update takes of the micro-batches: the mean of their gradients, weighted by the
  // weights of the losses (their items), or without division by the sum of the weights, the
  // weighted sum: the gradient of the sum of the losses of all items, as GradientAccumulator gives
  // it. Clipping comes after it. The loss that is reported is the mean in any case.
  bool normalize = true;
  // The two plans also for one micro-batch per update, so that gradients can be read and changed
  // between them.
  bool split_update = false;
  // Of a split update: a micro-batch whose numbers are not finite is left out. False: it is summed
  // like any other, sums can be read while the backward pass still runs, and the update is refused.
  bool guard_micro_batches = true;
  std::optional<optim::Optimizer> optimizer = {};  // of training; none: gradients only
  TrainingStepOptions training = {};
  trace::Recorder* trace = nullptr;  // that gets a span per stage
  // Asked before every stage and every kernel, by several threads; true ends it with a
  // CancelledError.
  std::function<bool()> cancelled = {};
};

// Any graph with outputs and updates, as it is.
CompileResult compile(const Graph& graph, const CompileOptions& options = {});
// Differentiates the loss, appends the optimizer and compiles the step.
CompileResult compile_training_graph(const Graph& graph, const Tensor& loss,
                                     const CompileOptions& options = {});

// The same with a plan cache in one file: a plan that was made from the same graph, options,
// processor and version is taken from there (the report then has the one stage `load`), otherwise
// it is compiled and written, into a folder that is made for the user alone if it is missing. A
// damaged file or one that cannot be written is a warning, never an error. `{key}` in the file's
// name stands for 16 digits that are those of this plan alone, so that plans can share a folder.
// Hyper-parameters of the optimizer, of clipping, averaging and parameter groups are those of the
// options, not the file's.
CompileResult load_or_compile(const std::string& path, const Graph& graph,
                              const CompileOptions& options = {});
CompileResult load_or_compile_training(const std::string& path, const Graph& graph,
                                       const Tensor& loss, const CompileOptions& options = {});

}  // namespace pantala
