#include "runtime/session_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "base/text.h"
#include "base/user_folder.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/optim.h"
#include "plan/step_names.h"
#include "runtime/placement.h"
#include "runtime/qualification.h"
#include "runtime/step_differences.h"

namespace pantala::runtime {

namespace {

int threads_of(const CompiledPlan::Data& data, const SessionOptions& options) {
  if (options.threads < 0)
    throw TypeError(
        fmt::format("session: threads must be 0 (as compiled) or more, got {}", options.threads));
  return options.threads > 0 ? options.threads : data.threads;
}

// What a driver has made of kernels is kept beside compiled plans.
std::filesystem::path driver_cache(const std::string& device) {
  if (!device::has_driver(device)) return {};
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / "vulkan-pipelines";
}

std::unique_ptr<device::Device> open_device(const std::string& name, const CompiledPlan::Data& data,
                                            const SessionOptions& options) {
  return device::make_device(name, {.workers = threads_of(data, options),
                                    .sentinels = options.sentinels,
                                    .cache_file = driver_cache(name)});
}

}  // namespace

SessionData::SessionData(const CompileResult& compiled, const SessionOptions& options)
    : main_data_(compiled.plan.data()),
      device_name_(options.device.empty() ? main_data_->device : options.device),
      device_(open_device(device_name_, *main_data_, options)),
      store_(*device_, options.seed, threads_of(*main_data_, options)),
      ahead_(*device_),
      report_(compiled.report),
      accumulation_steps_(main_data_->accumulation_steps) {
  const auto begin = std::chrono::steady_clock::now();
  store_.extend(store_leaves(*main_data_), siblings(main_data_->steps.front().plan));
  const auto applies = [](const plan::CompiledStep& step) { return step.role == plan::kApply; };
  if (std::ranges::any_of(main_data_->steps, applies))
    first_micro_batch_ =
        store_.index_of(store_.get(plan::kFirstMicroBatch, LeafKind::scalar, "scalar"));
  for (std::size_t k = 0; k < main_data_->steps.size(); ++k) {
    const bool is_last = applies(main_data_->steps[k]);
    if (is_last) apply_ = k;
    add(main_data_->steps[k].role, step_of(main_data_, k), is_last ? Part::apply : Part::step);
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  report_.stages.push_back({"device", taken.count()});
  record_stages();
}

// The stages were run before there was a recorder: they take the beginning of the time line, one
// after the other, and what follows is shifted by as much.
void SessionData::record_stages() {
  const trace::Clock::time_point opened = trace::Clock::now();
  const trace::Track track = recorder_.add_track("compiler");
  trace::Clock::duration shift{};
  for (const Report::Stage& stage : report_.stages) {
    const auto duration = std::chrono::duration_cast<trace::Clock::duration>(
        std::chrono::duration<double, std::milli>(stage.milliseconds));
    recorder_.add({.name = stage.name,
                   .category = "compile",
                   .begin = opened + shift,
                   .duration = duration,
                   .track = track});
    shift += duration;
  }
  timing_ = {.recorder = nullptr, .tracks = {recorder_.add_track("steps")}, .shift = shift};
}

void SessionData::add_span(std::string_view name, std::string_view category,
                           trace::Clock::time_point begin, bool lasts) {
  if (!is_timed_ || timing_.recorder == nullptr) return;
  const trace::Clock::duration duration = trace::Clock::now() - begin;
  try {
    timing_.recorder->add({.name = std::string(name),
                           .category = std::string(category),
                           .begin = begin + timing_.shift,
                           .duration = duration,
                           .track = timing_.tracks.runs,
                           .lasting = lasts});
  } catch (const std::bad_alloc&) {
    // A trace is an extra: the work that it describes goes on without it.
  }
}

void SessionData::write_trace(const std::filesystem::path& path) const {
  io::write_file(path, recorder_.json());
}

SessionData::~SessionData() {
  plans_.clear();
  if (arena_.bytes > 0) device_->free(arena_.memory);
}

// What can fail comes first: the session has the plan or is as it was.
void SessionData::add(std::string name, std::shared_ptr<const plan::CompiledStep> step, Part part) {
  check_qualified(device_name_, step->plan);
  auto plan = std::make_unique<BoundPlan>(std::move(name), std::move(step), *device_, store_,
                                          part == Part::other ? nullptr : &ahead_);
  if (first_micro_batch_) plan->follow(*first_micro_batch_);
  fit_arena(plan->arena_bytes());
  parts_.push_back(part);
  plans_.push_back(std::move(plan));
}

// Temporaries live within a run, so the arena may be given up for a larger one.
void SessionData::fit_arena(std::int64_t needed) {
  const std::int64_t old = arena_.bytes;
  if (needed <= old) return;
  if (old > 0) device_->free(arena_.memory);
  arena_ = {};
  try {
    arena_ = {device_->allocate(needed), 0, needed};
  } catch (const DeviceError&) {
    if (old > 0) arena_ = {device_->allocate(old), 0, old};
    throw;
  }
}

void SessionData::check_new_name(std::string_view name) const {
  if (std::any_of(plans_.begin(), plans_.end(), [&](const auto& p) { return p->name() == name; }))
    throw TypeError(fmt::format("the session has a plan named '{}' already", name));
}

// The first step of the plan: the only one, or `accumulate`.
std::size_t SessionData::add_attached(std::string_view name, const PlanData& data, Part part) {
  store_.extend(store_leaves(*data), siblings(data->steps.front().plan));
  add(std::string(name), step_of(data, 0), part);
  return plans_.size() - 1;
}

std::size_t SessionData::attach(std::string_view name, const CompiledPlan& plan) {
  check_new_name(name);
  const PlanData& data = plan.data();
  if (data->steps.size() != 1)
    throw TypeError(fmt::format("'{}': only a plan of one step can be attached, this one has {}",
                                name, counted(data->steps.size(), "step")));
  return add_attached(name, data, Part::other);
}

std::size_t SessionData::attach_step(std::string_view name, const CompiledPlan& plan) {
  check_new_name(name);
  const std::vector<std::string> differences = step_differences(*main_data_, *plan.data());
  if (!differences.empty())
    throw TypeError(
        fmt::format("'{}' is no step of this session: {}", name, fmt::join(differences, "; ")));
  return add_attached(name, plan.data(), Part::step);
}

std::size_t SessionData::find_plan(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < plans_.size(); ++k) {
    if (plans_[k]->name() == name) return k;
    names.push_back(plans_[k]->name());
  }
  throw TypeError(
      fmt::format("the session has no plan named '{}'{}", name, did_you_mean(name, names)));
}

BoundPlan& SessionData::step_with(std::string_view output) {
  if (apply_ && !last_step().has_output(output) && plans_[*apply_]->has_output(output))
    return *plans_[*apply_];
  return last_step();
}

bool SessionData::runs_ahead(std::size_t index) const {
  return parts_[index] == Part::step && !is_timed_ && plans_[index]->can_run_ahead() &&
         (!apply_ || plans_[*apply_]->can_run_ahead());
}

void SessionData::start(std::size_t index, RunsAhead::Purpose purpose) {
  if (ahead() > 0 && !plans_[index]->fits_behind()) settle();
  if (!has_room_ahead(1)) look_and_go_on();
  begin_micro_batch();
  ahead_.start(*plans_[index], purpose, accumulated_, arena_);
  if (purpose == RunsAhead::Purpose::step_in_window)
    plans_[*apply_]->take_numbers(ahead_.last().update);
  if (splits_update()) ++accumulated_;
  last_step_ = index;
}

// An update comes again with the step that completes the window now, at the rate of that step.
void SessionData::start_again(const RunsAhead::Run& run) {
  if (run.purpose == RunsAhead::Purpose::update) return;
  begin_micro_batch();
  ahead_.start_again(run, accumulated_, arena_);
  if (splits_update()) ++accumulated_;
  if (run.purpose != RunsAhead::Purpose::step_in_window || accumulated_ < accumulation_steps_)
    return;
  ahead_.start_again({.plan = plans_[*apply_].get(),
                      .purpose = RunsAhead::Purpose::update,
                      .start = {.numbers = run.update}},
                     accumulated_, arena_);
  accumulated_ = 0;
}

void SessionData::look_and_go_on() {
  look();
  for (const RunsAhead::Run& run : ahead_.take_left_out()) start_again(run);
}

void SessionData::settle() {
  while (ahead() > 0) look_and_go_on();
}

BoundPlan::Outcome SessionData::look() {
  const bool is_update = ahead_.first().purpose == RunsAhead::Purpose::update;
  const std::int64_t accumulated = ahead_.first().accumulated;
  try {
    outcome_ = ahead_.look();
  } catch (...) {
    ahead_.take_left_out();
    accumulated_ = accumulated;
    throw;
  }
  if (!finite()) accumulated_ = is_update ? 0 : accumulated;  // an update drops its window
  return outcome_;
}

void SessionData::run(std::size_t index) {
  if (parts_[index] == Part::other) {
    settle();
    run_plan(index);
  } else if (parts_[index] == Part::apply) {
    apply();
  } else if (splits_update()) {
    take_micro_batch(index, true);
  } else if (runs_ahead(index)) {
    start(index, RunsAhead::Purpose::step);
  } else {
    settle();
    last_step_ = index;
    outcome_ = run_plan(index);
  }
}

void SessionData::need_split(std::string_view what) const {
  if (!splits_update())
    throw TypeError(
        fmt::format("{}: this session does not accumulate; build it with accumulation_steps above "
                    "1, or with split_update",
                    what));
}

void SessionData::accumulate(std::size_t index) {
  need_split("accumulate");
  if (parts_[index] != Part::step)
    throw TypeError(fmt::format(
        "accumulate: plan '{}' is no step of the session; attach_step() makes such plans",
        plans_[index]->name()));
  take_micro_batch(index, false);
}

// `completes`: the update is a part of the last step of a window.
void SessionData::take_micro_batch(std::size_t index, bool completes) {
  if (runs_ahead(index)) {
    start(index, completes ? RunsAhead::Purpose::step_in_window : RunsAhead::Purpose::micro_batch);
    if (completes) complete_window();
    return;
  }
  settle();
  begin_micro_batch();
  last_step_ = index;
  outcome_ = run_plan(index);
  if (!finite()) return;
  ++accumulated_;
  if (completes && accumulated_ >= accumulation_steps_) apply();
}

// The sums begin with the first one of a window.
void SessionData::begin_micro_batch() {
  if (first_micro_batch_) store_.set_number(*first_micro_batch_, accumulated_ == 0 ? 1.0 : 0.0);
}

// Making room may find that there is a micro-batch less.
void SessionData::complete_window() {
  if (accumulated_ < accumulation_steps_) return;
  if (!has_room_ahead(1)) look_and_go_on();
  if (accumulated_ >= accumulation_steps_) apply_behind();
}

void SessionData::apply_behind() {
  ahead_.start(*plans_[*apply_], RunsAhead::Purpose::update, accumulated_, arena_);
  accumulated_ = 0;
}

// Of micro-batches that all went well.
void SessionData::apply() {
  need_split("apply");
  settle();
  if (accumulated_ == 0) throw TypeError("apply: nothing was accumulated since the last update");
  if (runs_ahead(last_step_)) return apply_behind();
  outcome_ = run_plan(*apply_);
  accumulated_ = 0;
}

// Numbers on the host that steps only read can be looked at and set while steps are under way.
void SessionData::settle_for(const Store::Entry& entry) {
  if (!entry.leaf.on_host || ahead_.advance(store_.index_of(entry))) settle();
}

double SessionData::scalar(std::string_view name) {
  const Store::Entry& entry = store_.get(name, LeafKind::scalar, "scalar");
  settle_for(entry);
  return store_.read(entry).at(0);
}

void SessionData::set_scalar(std::string_view name, double value) {
  const Store::Entry& entry = store_.get(name, LeafKind::scalar, "scalar");
  // Of the optimizer: `optim.lr`, `optim.group0.lr_factor`. Those of the graph may have any value.
  if (name.starts_with("optim.")) optim::checked(name.substr(name.rfind('.') + 1), value);
  settle_for(entry);
  store_.write(entry, Literal::scalar(value));
}

void SessionData::need_optimizer(std::string_view scalar, std::string_view what) const {
  if (store_.find(scalar)) return;
  throw TypeError(fmt::format(
      "{}: the session's optimizer has no '{}'; it is chosen by the option `optimizer` when the "
      "session is built, and this one has {}",
      what, scalar, store_.find("optim.lr") ? "another kind" : "none"));
}

std::string SessionData::factor_scalar(std::string_view pattern) const {
  const std::vector<std::string>& patterns = main_data_->group_patterns;
  const auto found = std::find(patterns.begin(), patterns.end(), pattern);
  if (found == patterns.end())
    throw TypeError(
        fmt::format("no parameter group was declared as '{}'{}; groups are given by the option "
                    "`training.groups` when the session is built",
                    pattern, did_you_mean(pattern, patterns)));
  std::string name = fmt::format("optim.group{}.lr_factor", found - patterns.begin());
  if (!store_.find(name))
    throw TypeError(fmt::format("the parameter group '{}' is frozen: it has no factor", pattern));
  return name;
}

SessionMemory SessionData::memory() const {
  SessionMemory memory;
  memory.parameters = store_.device_bytes(LeafKind::parameter);
  memory.states = store_.device_bytes(LeafKind::state);
  for (const auto& plan : plans_) {
    memory.inputs += plan->input_bytes();
    memory.outputs += plan->output_bytes();
    memory.prepared += plan->prepared_bytes();
  }
  memory.temporaries = arena_.bytes;
  const device::MemorySummary device = device_->memory();
  memory.scratch = device.scratch;
  memory.constants = device.constants;
  return memory;
}

}  // namespace pantala::runtime
