// What a compilation gives: the plan, which a Session (pantala/session.h) runs and a file can keep,
// and a report of how it was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pantala {

// What is done when numbers stop being finite.
enum class NonFiniteGuard : std::uint8_t {
  none,       // updates happen whatever the numbers are
  loss,       // a step whose loss is not finite changes nothing
  gradients,  // nor does one with a gradient whose norm is not finite
  // As `loss`; other numbers are only told: where the square of a gradient or a new value is not
  // finite, the step has changed parameters and states, and says so (Session::last_step_spoilt). No
  // update waits for another gradient than its own, so that it is a part of the kernel that makes
  // it. Where updates wait for all gradients anyway (accumulation, split_update, clip.norm) this
  // is `gradients`.
  watched,
};
const std::vector<std::string>& guard_names();  // by value
const std::string& guard_name(NonFiniteGuard guard);

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
  // What a launch is a part of, computes and is expected to cost.
  struct Launch {
    std::string name;         // as in the plan
    std::string kernel;       // its code
    std::string layers, ops;  // "fc1", "contract, add, relu"; "" where no layer has a name
    double flops = 0;         // in additions
    // That move between memory and the cores, if every element moves once.
    double read_bytes = 0, written_bytes = 0;
    double predicted_us = 0;  // by the cost table, on its nominal processor
    std::int64_t group = 0;   // launches with the same number compute the same nodes together
  };
  struct Unit {
    std::string name;
    double milliseconds = 0;  // 0 if it came from a cache
    std::int64_t code_bytes = 0;
  };
  // A rule that fit somewhere.
  struct Rule {
    std::string name;
    std::int64_t matches = 0;  // places where it fit
    std::int64_t count = 0;    // times that it said something new
    std::int64_t reached = 0;  // nodes of the chosen graph that it made
    double milliseconds = 0;
  };
  // A graph that was weighed, by the cost table.
  struct Candidate {
    std::string name;
    bool chosen = false;
    double predicted_us = 0, flops = 0, bytes = 0;
    std::int64_t nodes = 0, launches = 0, peak_bytes = 0;
  };
  // Values of one kind that are computed a second time instead of being kept, or stored instead of
  // being computed by all who read them.
  struct Recomputed {
    std::string values;  // op and type
    std::int64_t count = 0, bytes = 0;
  };
  std::vector<Stage> stages;
  std::int64_t nodes_before = 0;    // of the user's graph with gradients and optimizer
  std::int64_t nodes_after = 0;     // after lowering
  std::int64_t kernels_before = 0;  // ops of the lowered graph: a kernel each, were nothing fused
  std::int64_t kernels_after = 0;   // launches
  double flops = 0, bytes = 0;      // of one step
  double predicted_us = 0;          // by the cost table
  std::string cost_table;           // its name
  std::int64_t peak_bytes = 0;      // temporaries and scratch, exactly
  std::int64_t store_bytes = 0;     // parameters and state
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;  // in their order
  std::vector<Unit> units;
  // Of the e-graph.
  std::vector<Rule> rules;
  std::vector<Candidate> candidates;  // of every step, the one that was given first
  std::vector<Recomputed> recomputed, stored;
  std::vector<std::string> by_planes;  // convolutions whose images have channels first
  std::int64_t egraph_nodes = 0, egraph_classes = 0, egraph_rounds = 0;
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

}  // namespace pantala
