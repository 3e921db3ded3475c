// Compilation: a graph becomes a plan, which a Session (pantala/session.h) runs. Nothing here opens
// a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pantala/graph.h"
#include "pantala/optim.h"
#include "pantala/training_step.h"

namespace pantala {

namespace trace {
class Recorder;
}

// What is done when numbers stop being finite.
enum class NonFiniteGuard : std::uint8_t {
  none,       // updates happen whatever the numbers are
  loss,       // a step whose loss is not finite changes nothing
  gradients,  // nor does one with a gradient whose norm is not finite
};

struct CompileOptions {
  std::string device = "cpu";  // or "kir", the interpreter of kernels: slow, checks everything
  int threads = 0;             // 0: as many as the process may use
  bool optimize = true;        // false: a kernel per op and no rewriting, for debugging
  NonFiniteGuard non_finite = NonFiniteGuard::loss;
  // Values that can be read after a step beside the outputs.
  std::vector<std::pair<std::string, Tensor>> observe = {};
  bool observe_gradients = false;  // all gradients, as Session::gradient()
  // Training: micro-batches per update; more than 1 makes an `accumulate` and an `apply` plan.
  std::int64_t accumulation_steps = 1;
  // The two plans also for one micro-batch per update, so that gradients can be read and changed
  // between them.
  bool split_update = false;
  std::optional<optim::Optimizer> optimizer = {};  // of training; none: gradients only
  TrainingStepOptions training = {};
  trace::Recorder* trace = nullptr;  // that gets a span per stage
};

// How a compilation went.
struct Report {
  struct Stage {
    // canonicalise, differentiate, optimizer, saturate, schedule, codegen, plan, device
    std::string name;
    double milliseconds = 0;
  };
  struct Kernel {
    std::string name;
    std::int64_t launches = 0;
    std::string unit;
    double flops = 0, bytes = 0;
  };
  struct Unit {
    std::string name;
    double milliseconds = 0;  // 0 if it came from a cache
    std::int64_t code_bytes = 0;
  };
  struct Rule {
    std::string name;
    std::int64_t count = 0;
    double milliseconds = 0;
  };
  std::vector<Stage> stages;
  std::int64_t nodes_before = 0;    // of the user's graph with gradients and optimizer
  std::int64_t nodes_after = 0;     // after lowering
  std::int64_t kernels_before = 0;  // ops of the lowered graph: a kernel each, were nothing fused
  std::int64_t kernels_after = 0;   // launches
  double flops = 0, bytes = 0;      // of one step
  std::int64_t peak_bytes = 0;      // temporaries and scratch, exactly
  std::int64_t store_bytes = 0;     // parameters and state
  std::vector<Kernel> kernels;
  std::vector<Unit> units;
  // Of the e-graph.
  std::vector<Rule> rules;
  std::int64_t egraph_nodes = 0, egraph_classes = 0;
  std::string stop_reason;

  bool cached() const;  // loaded from a plan cache instead of compiled
  std::string text() const;
  std::string json() const;
};

// A compiled step. Copies share one plan.
class CompiledPlan {
 public:
  struct Data;
  explicit CompiledPlan(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  struct ParameterGradient {
    std::string parameter, gradient;
  };
  std::int64_t launches() const;
  std::int64_t buffers() const;
  std::vector<std::string> inputs() const;
  std::vector<std::string> parameters() const;
  std::vector<std::string> states() const;
  std::vector<std::string> outputs() const;
  std::vector<ParameterGradient> parameter_gradients() const;
  bool has_loss() const;
  std::int64_t peak_bytes() const;

  // A file that load_plan() reads. Written to a temporary name, synced and renamed.
  void save(const std::string& path) const;

  const std::shared_ptr<const Data>& data() const { return data_; }

 private:
  std::shared_ptr<const Data> data_;
};
// IoError if the file cannot be read, ParseError if it is not a plan that this version wrote.
CompiledPlan load_plan(const std::string& path);

struct CompileResult {
  CompiledPlan plan;
  Report report;
};

// Any graph with outputs and updates, as it is.
CompileResult compile(const Graph& graph, const CompileOptions& options = {});
// Differentiates the loss, appends the optimizer and compiles the step.
CompileResult compile_training_graph(const Graph& graph, const Tensor& loss,
                                     const CompileOptions& options = {});

// The same with a plan cache in one file: a plan that was made from the same graph, options,
// processor and version is taken from there (the report then has the one stage `load`), otherwise
// it is compiled and written, into a folder that is made for the user alone if it is missing. A
// damaged file or one that cannot be written is a warning, never an error. Hyper-parameters of the
// optimizer, of clipping, averaging and parameter groups are those of the options, not the file's.
CompileResult load_or_compile(const std::string& path, const Graph& graph,
                              const CompileOptions& options = {});
CompileResult load_or_compile_training(const std::string& path, const Graph& graph,
                                       const Tensor& loss, const CompileOptions& options = {});

}  // namespace pantala
