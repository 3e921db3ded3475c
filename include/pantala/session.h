// Session: runs compiled plans (pantala/compile.h) on a device, step after step. It owns the
// parameters, optimizer states, running statistics, counters and hyper-parameters of all its plans;
// each is there once, whatever number of plans reads it, and the plans share one arena for
// temporaries. After its first step a plan allocates nothing. A session may be used from any
// thread, but from one at a time; different sessions are independent.
//
// Names, counts, shapes and dtypes are checked by every function: TypeError. Only exact conversions
// are done: a dtype pair is taken if every value of the one is a value of the other, and a wider
// integer type is taken as long as every number fits.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/compile.h"
#include "pantala/host_elements.h"
#include "pantala/literal.h"
#include "pantala/weights.h"

namespace pantala {

struct SessionOptions {
  std::string device = "";  // "": the one that the plan was compiled for
  int threads = 0;          // 0: as many as the plan was compiled for
  std::uint64_t seed = 0;   // of the first values and of the random ops
  // For tests: bytes around all memory that must not change; every run checks them.
  bool sentinels = false;
};

// What a session holds in device memory, in bytes.
struct SessionMemory {
  std::int64_t parameters = 0;
  std::int64_t states = 0;  // moments, running statistics, accumulators, averages
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t temporaries = 0;  // the arena: the largest peak of the plans
  std::int64_t scratch = 0;      // of all threads
  std::int64_t constants = 0;
  std::int64_t prepared = 0;  // of plans that leave the store as it is: what follows from it alone
  std::int64_t total() const;
  std::string text() const;
};

struct KernelInfo {
  std::string plan;                           // the name of the plan in its session
  std::string name;                           // of the launch
  std::string unit;                           // its code
  std::int64_t argument_sets = 0, items = 0;  // of one run
  // Since set_timing(true); the time is that of the thread that took longest.
  std::int64_t runs = 0;
  double milliseconds = 0;
  // As in Report::Launch.
  std::string layers = {}, ops = {};
  double flops = 0, read_bytes = 0, written_bytes = 0;  // of one run
  double predicted_us = 0;                              // for one run

  double bytes() const { return read_bytes + written_bytes; }
  double flops_per_second() const { return milliseconds > 0 ? flops * rate() : 0; }
  double bytes_per_second() const { return milliseconds > 0 ? bytes() * rate() : 0; }

 private:
  double rate() const { return 1000 * static_cast<double>(runs) / milliseconds; }
};

// What a machine can do at most in a second, as `pantala devices --probe` measures it; 0: not
// known.
struct MachineLimits {
  double flops = 0, bytes = 0;
};

// Where the time of a session's plans went since set_timing(true).
struct SessionProfile {
  struct Plan {
    std::string name;
    std::int64_t runs = 0;
    double milliseconds = 0;  // of all runs
  };
  std::vector<Plan> plans;          // that were run
  std::vector<KernelInfo> kernels;  // of these; what took longest comes first

  double milliseconds() const;  // of all plans
  // The part of what the machine's limits allow, 1 for all of it: the time that the numbers or the
  // bytes need at least, whichever is longer, by the time that was taken. More than 1 where bytes
  // come from a cache instead of memory. 0 without limits or times.
  static double share_of_limit(const KernelInfo& kernel, const MachineLimits& limits);
  // A table, with at most so many kernels (0: all) and a line for the rest.
  std::string text(const MachineLimits& limits = {}, std::size_t most = 0) const;
  std::string json(const MachineLimits& limits = {}) const;
};

// What save() writes and load() takes. States `cache.*` are in none of them.
enum class Saved : std::uint8_t {
  model,      // parameters and the states of the graph itself, such as running statistics
  optimizer,  // the rest: optimizer states, averages, accumulators, counters, hyper-parameters
  training,   // both
};

namespace runtime {
class SessionData;
}

// One of a session's plans, with inputs and outputs of its own. Valid as long as the session is,
// also when that is moved.
class SessionPlan {
 public:
  const std::string& name() const;
  std::vector<std::string> inputs() const;  // those that its results depend on
  std::vector<std::string> outputs() const;
  // TypeError with the nearest name.
  Type input_type(std::string_view name) const;
  Type output_type(std::string_view name) const;
  // An input of the graph that nothing here depends on is checked and left out. The values stay
  // until they are set again. ValueError naming input, position and value for an index that the
  // readers of an integer input cannot take.
  void set_input(std::string_view name, const HostElements& values) const;
  void set_input(std::string_view name, const Literal& value) const;
  // As Session::step(), for this plan. Of a session that splits its update the main plans are its
  // step() and its apply(); a plan of attach_step() is a step, too. ValueError as step().
  void run() const;
  // Whether run() only starts the step (Session::step).
  bool runs_ahead() const;
  // As Session::accumulate(). TypeError for a plan that is no step of the session.
  void accumulate() const;
  // Of the last run; TypeError before the first one.
  Literal output(std::string_view name) const;
  void output(std::string_view name, const HostBuffer& into) const;
  double output_scalar(std::string_view name) const;
  // The memory of an output, in its own type, where the host can reach it, else nothing: what the
  // last run has left. The next one writes over it; it is there as long as the session is.
  std::span<const std::byte> output_memory(std::string_view name) const;
  // Before the update, if there is one. TypeError without a loss, and before the first run.
  double loss() const;

 private:
  friend class Session;
  SessionPlan(runtime::SessionData& session, std::size_t index)
      : session_(&session), index_(index) {}
  runtime::SessionData* session_;
  std::size_t index_;
};

class Session {
 public:
  // The plan's roles are the main ones: `step`, or `accumulate` and `apply`.
  explicit Session(const CompiledPlan& plan, const SessionOptions& options = {});
  // With the report of the compilation, to which the stage `device` is added.
  explicit Session(const CompileResult& compiled, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // --- further plans

  // Over the same parameters and states: evaluation, other batch sizes. What the plan needs and the
  // session does not have yet is added with its first value. TypeError, listing all of them, for
  // leaves that both have with different types, and for a name that is taken.
  SessionPlan attach(std::string_view name, const CompiledPlan& plan);
  // The main plan for another batch size, compiled from the same model with the same options.
  // Running it is a step of the session: it counts in the window, and loss(), last_step_finite(),
  // gradient() and observed() are those of the step that ran last. Of a split update only its
  // `accumulate` is taken; `apply` does not depend on the batch and is shared. TypeError, listing
  // all differences, for a plan that is not the main one up to the shapes of inputs and outputs.
  SessionPlan attach_step(std::string_view name, const CompiledPlan& training_plan);
  SessionPlan plan(std::string_view name) const;
  std::vector<std::string> plans() const;
  void run(std::string_view plan) { this->plan(plan).run(); }

  // --- the main plan

  // Inputs and outputs as those of SessionPlan, of `step` (or `accumulate`).
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;
  Type input_type(std::string_view name) const;
  Type output_type(std::string_view name) const;
  void set_input(std::string_view name, const HostElements& values);
  void set_input(std::string_view name, const Literal& value);
  Literal output(std::string_view name) const;
  void output(std::string_view name, const HostBuffer& into) const;
  double output_scalar(std::string_view name) const;
  std::span<const std::byte> output_memory(std::string_view name) const;

  // Computes loss and outputs and moves parameters, states and counters on. With accumulation a
  // step is one micro-batch, and the last one of a window applies the update.
  //
  // ValueError if a kernel met an index out of range. Nothing outside of a tensor was read: the
  // index was taken as the nearest one that is in range. What the step computed from it has been
  // stored in parameters and states; counters have not advanced.
  //
  // On a device that computes by itself (a GPU) a step is only started, and inputs of the next one
  // can be set while it runs; at most three are under way. Whatever asks for a result waits, and
  // has what this function would throw: of the first step that went wrong, and those that were
  // started behind it have changed nothing. A step behind one that the guard has rejected is run
  // when that is known. So results are those of a session that waits for every step.
  void step();
  // One micro-batch without the update, however many the window has already. One that the guard
  // rejects does not count. TypeError if the update is not split.
  void accumulate();
  // Returns when everything that was started has finished; throws as step().
  void wait();
  // Of the last step, before its update.
  double loss() const;
  // False if the last step met a number that its guard looks at and that is not finite: then no
  // parameter, state or counter has changed, unless last_step_spoilt(). True before the first step.
  // Plans of attach() do not count.
  bool last_step_finite() const;
  // A guard that only watches has met such a number after the loss: parameters and states have
  // changed, and may hold numbers that are not finite. Whoever wants to go on must load what was
  // saved before; a Trainer does so by itself. False until the next step if values are set.
  bool last_step_spoilt() const;

  // Micro-batches since the last update.
  std::int64_t accumulated() const;
  std::int64_t accumulation_steps() const;
  // There are the plans `accumulate` and `apply`: by accumulation_steps or by split_update.
  bool splits_update() const;
  // Ends a window early: the update from what was accumulated. TypeError if the update is not
  // split, or if nothing was accumulated.
  void apply();

  // --- values that live from step to step
  std::vector<std::string> parameters() const;
  Literal parameter(std::string_view name) const;
  void parameter(std::string_view name, const HostBuffer& into) const;
  void set_parameter(std::string_view name, const Literal& value);
  void set_parameter(std::string_view name, const HostElements& values);
  std::vector<std::string> states() const;
  Literal state(std::string_view name) const;
  void set_state(std::string_view name, const Literal& value);
  void set_state(std::string_view name, const HostElements& values);
  // Of a parameter or a state. As output_memory(); nothing also for numbers that are kept apart,
  // such as counters.
  Type stored_type(std::string_view name) const;
  std::span<const std::byte> stored_memory(std::string_view name) const;
  // Into memory of the caller, as parameter().
  void state(std::string_view name, const HostBuffer& into) const;

  // Of the last step; TypeError naming the option that keeps it. As long as a split update has not
  // been applied the gradient is the mean over what was accumulated, and needs no option; the sum
  // for a session compiled with normalize = false.
  Literal gradient(std::string_view parameter) const;
  // Sets this gradient, before clipping and update; it is kept as a sum over the items, so what is
  // read back is rounded once. Floats of any dtype are taken. TypeError if nothing is accumulated,
  // ValueError if its weight is 0.
  void set_gradient(std::string_view parameter, const Literal& value);
  Literal observed(std::string_view name) const;

  // --- hyper-parameters: a change acts at the next step, nothing is compiled
  std::vector<std::string> scalars() const;
  double scalar(std::string_view name) const;
  // TypeError for a value that the optimizer's scalar of this name cannot have.
  void set_scalar(std::string_view name, double value);
  double learning_rate() const;
  void set_learning_rate(double value);
  // TypeError if the optimizer is not of Adam's family.
  void set_adam(double lr, double beta1, double beta2, double epsilon);
  // The factor of the parameter group that was declared with this pattern.
  double learning_rate_factor(std::string_view pattern) const;
  void set_learning_rate_factor(std::string_view pattern, double factor);

  // --- files (safetensors)
  void save(const std::filesystem::path& path, Saved what = Saved::model) const;
  // Strict: TypeError listing everything that is missing, unknown or of another type; then nothing
  // has changed.
  void load(const std::filesystem::path& path, Saved what = Saved::model);
  // Weights from anywhere into the parameters and the states of the graph itself. Floats of other
  // types are taken, too: f16 and bf16 exactly, f64 rounded to the nearest f32; integers if every
  // one fits (ValueError). TypeError as the options say, and then nothing has changed.
  LoadWeightsReport load_weights(const Weights& weights, const LoadWeightsOptions& options = {});
  // Copies of what load_weights() takes.
  Weights weights() const;

  // --- looking inside

  // The plan that the session was made from.
  CompiledPlan compiled() const;
  const Report& report() const;
  SessionMemory memory_summary() const;
  std::vector<KernelInfo> kernels() const;
  // Times every launch from now on, which costs a little and, with spans for write_trace(),
  // allocates. What is computed stays the same.
  void set_timing(bool on, bool spans = true);
  SessionProfile profile() const;
  // Adds something else to the trace, from `begin` until now, on the row of the steps; nothing
  // while no spans are recorded. What `lasts` is kept when the trace has no room for steps any
  // more.
  void add_span(std::string_view name, std::string_view category,
                std::chrono::steady_clock::time_point begin, bool lasts = false);
  // Spans of the compilation, of the steps since set_timing(true) and of their launches, a row for
  // each thread, as a file that Perfetto and chrome://tracing open. After a quarter of a million
  // spans only those are kept that last; the file says how many were left out.
  void write_trace(const std::filesystem::path& path) const;
  // What stands behind it; nothing for users.
  runtime::SessionData& data() const { return *data_; }

 private:
  std::unique_ptr<runtime::SessionData> data_;
};

// A span of a session's trace that lasts, from its construction to its destruction: an epoch, an
// evaluation.
class SessionSpan {
 public:
  // The name must outlive the span.
  SessionSpan(Session& session, std::string_view name)
      : session_(session), name_(name), begin_(std::chrono::steady_clock::now()) {}
  ~SessionSpan() { session_.add_span(name_, name_, begin_, true); }
  SessionSpan(const SessionSpan&) = delete;
  SessionSpan& operator=(const SessionSpan&) = delete;

 private:
  Session& session_;
  std::string_view name_;
  std::chrono::steady_clock::time_point begin_;
};

struct SessionWithReport {
  Session session;
  Report report;
};

// Compiles and opens a session; logs the report at info level. `options` says how to compile and
// where to run; `session` what is left to say (its device and threads, if given, count).
Session build_session(const Graph& graph, const Tensor& loss, const CompileOptions& options = {},
                      const SessionOptions& session = {});
SessionWithReport build_session_with_report(const Graph& graph, const Tensor& loss,
                                            const CompileOptions& options = {},
                                            const SessionOptions& session = {});
// With CompileOptions::optimize off, for debugging: slower, the same numbers.
Session build_session_unoptimized(const Graph& graph, const Tensor& loss,
                                  const CompileOptions& options = {},
                                  const SessionOptions& session = {});
// Takes the plan from the file if it was made for the same graph, options, machine and version;
// otherwise compiles and writes it. A file that is damaged or cannot be written is logged as a
// warning.
Session build_session_cached(const Graph& graph, const Tensor& loss, const CompileOptions& options,
                             const std::filesystem::path& path, const SessionOptions& session = {});
// The graph's outputs alone: no gradient, no optimizer, and updates of the graph are left out, also
// that of the random ops' counter: they give the same numbers at every step.
Session build_inference_session(const Graph& graph, const CompileOptions& options = {},
                                const SessionOptions& session = {});
// The same with the file of build_session_cached().
Session build_inference_session_cached(const Graph& graph, const CompileOptions& options,
                                       const std::filesystem::path& path,
                                       const SessionOptions& session = {});

}  // namespace pantala
