#include "pantala/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/error.h"
#include "pantala/optim.h"
#include "runtime/session_data.h"

namespace pantala {

using runtime::BoundPlan;
using runtime::SessionData;

const std::string& SessionPlan::name() const { return session_->plan(index_).name(); }
std::vector<std::string> SessionPlan::inputs() const {
  return session_->plan(index_).input_names();
}
std::vector<std::string> SessionPlan::outputs() const {
  return session_->plan(index_).output_names();
}
Type SessionPlan::input_type(std::string_view name) const {
  return session_->plan(index_).input_type(name);
}
Type SessionPlan::output_type(std::string_view name) const {
  return session_->plan(index_).output_type(name);
}
void SessionPlan::set_input(std::string_view name, const HostElements& values) const {
  session_->plan(index_).set_input(name, values);
}
void SessionPlan::set_input(std::string_view name, const Literal& value) const {
  session_->plan(index_).set_input(name, value);
}
void SessionPlan::run() const { session_->run(index_); }
bool SessionPlan::runs_ahead() const { return session_->runs_ahead(index_); }
void SessionPlan::accumulate() const { session_->accumulate(index_); }
double SessionPlan::loss() const { return session_->settled().plan(index_).loss(); }
Literal SessionPlan::output(std::string_view name) const {
  return session_->settled().plan(index_).output(name);
}
void SessionPlan::output(std::string_view name, const HostBuffer& into) const {
  session_->settled().plan(index_).output(name, into);
}
double SessionPlan::output_scalar(std::string_view name) const {
  return session_->settled().plan(index_).output_scalar(name);
}

std::span<const std::byte> SessionPlan::output_memory(std::string_view name) const {
  return session_->settled().plan(index_).output_memory(name);
}

Session::Session(const CompiledPlan& plan, const SessionOptions& options)
    : Session(CompileResult{plan, plan::combined_report(plan.data()->steps)}, options) {}
Session::Session(const CompileResult& compiled, const SessionOptions& options)
    : data_(std::make_unique<SessionData>(compiled, options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

SessionPlan Session::attach(std::string_view name, const CompiledPlan& plan) {
  return {*data_, data_->settled().attach(name, plan)};
}
SessionPlan Session::attach_step(std::string_view name, const CompiledPlan& training_plan) {
  return {*data_, data_->settled().attach_step(name, training_plan)};
}
SessionPlan Session::plan(std::string_view name) const { return {*data_, data_->find_plan(name)}; }
std::vector<std::string> Session::plans() const {
  std::vector<std::string> names;
  for (const auto& plan : data_->plans()) names.push_back(plan->name());
  return names;
}

std::vector<std::string> Session::inputs() const { return data_->main().input_names(); }
std::vector<std::string> Session::outputs() const { return data_->main().output_names(); }
Type Session::input_type(std::string_view name) const { return data_->main().input_type(name); }
Type Session::output_type(std::string_view name) const { return data_->main().output_type(name); }
void Session::set_input(std::string_view name, const HostElements& values) {
  data_->main().set_input(name, values);
}
void Session::set_input(std::string_view name, const Literal& value) {
  data_->main().set_input(name, value);
}
Literal Session::output(std::string_view name) const {
  return data_->settled().main().output(name);
}
void Session::output(std::string_view name, const HostBuffer& into) const {
  data_->settled().main().output(name, into);
}
double Session::output_scalar(std::string_view name) const {
  return data_->settled().main().output_scalar(name);
}
std::span<const std::byte> Session::output_memory(std::string_view name) const {
  return data_->settled().main().output_memory(name);
}

void Session::step() { data_->run(0); }
void Session::accumulate() { data_->accumulate(0); }
void Session::wait() { data_->settled().device().wait(); }
double Session::loss() const { return data_->settled().last_step().loss(); }
bool Session::last_step_finite() const { return data_->settled().finite(); }
bool Session::last_step_spoilt() const { return data_->settled().spoilt(); }
std::int64_t Session::accumulated() const { return data_->settled().accumulated(); }
std::int64_t Session::accumulation_steps() const { return data_->accumulation_steps(); }
bool Session::splits_update() const { return data_->splits_update(); }
void Session::apply() { data_->apply(); }

std::vector<std::string> Session::parameters() const {
  return data_->store().names(LeafKind::parameter);
}
Literal Session::parameter(std::string_view name) const {
  return data_->settled().store().read(data_->store().get(name, LeafKind::parameter, "parameter"));
}
void Session::parameter(std::string_view name, const HostBuffer& into) const {
  data_->settled().store().read(data_->store().get(name, LeafKind::parameter, "parameter"), into);
}
void Session::set_parameter(std::string_view name, const Literal& value) {
  data_->settled().store().write(data_->store().get(name, LeafKind::parameter, "parameter"), value);
}
void Session::set_parameter(std::string_view name, const HostElements& values) {
  data_->settled().store().write(data_->store().get(name, LeafKind::parameter, "parameter"),
                                 values);
}
std::vector<std::string> Session::states() const { return data_->store().names(LeafKind::state); }
Literal Session::state(std::string_view name) const {
  return data_->settled().store().read(data_->store().get(name, LeafKind::state, "state"));
}
void Session::set_state(std::string_view name, const Literal& value) {
  data_->settled().store().write(data_->store().get(name, LeafKind::state, "state"), value);
}
void Session::set_state(std::string_view name, const HostElements& values) {
  data_->settled().store().write(data_->store().get(name, LeafKind::state, "state"), values);
}
void Session::state(std::string_view name, const HostBuffer& into) const {
  data_->settled().store().read(data_->store().get(name, LeafKind::state, "state"), into);
}

namespace {
const runtime::Store::Entry& stored(SessionData& data, std::string_view name) {
  const runtime::Store::Entry* entry = data.store().find(name);
  return entry && entry->leaf.kind == LeafKind::state
             ? *entry
             : data.store().get(name, LeafKind::parameter, "parameter or state");
}
}  // namespace
Type Session::stored_type(std::string_view name) const { return stored(*data_, name).leaf.type; }
std::span<const std::byte> Session::stored_memory(std::string_view name) const {
  const runtime::Store::Entry& entry = stored(data_->settled(), name);
  return data_->store().memory(entry);
}

Literal Session::gradient(std::string_view parameter) const {
  return data_->settled().gradient(parameter);
}
void Session::set_gradient(std::string_view parameter, const Literal& value) {
  data_->settled().set_gradient(parameter, value);
}

Literal Session::observed(std::string_view name) const {
  constexpr std::string_view kPrefix = "observe.";
  const std::string output = fmt::format("{}{}", kPrefix, name);
  const BoundPlan& plan = data_->settled().step_with(output);
  if (!plan.has_output(output)) {
    std::vector<std::string> names;
    for (const std::string& other : plan.output_names())
      if (other.starts_with(kPrefix)) names.push_back(other.substr(kPrefix.size()));
    throw TypeError(
        fmt::format("'{}' is not observed{}; name the values to keep in the option `observe` when "
                    "the session is built",
                    name, did_you_mean(name, names)));
  }
  return plan.output(output);
}

std::vector<std::string> Session::scalars() const { return data_->store().names(LeafKind::scalar); }
double Session::scalar(std::string_view name) const { return data_->scalar(name); }
void Session::set_scalar(std::string_view name, double value) { data_->set_scalar(name, value); }

double Session::learning_rate() const {
  data_->need_optimizer("optim.lr", "learning_rate");
  return data_->scalar("optim.lr");
}

void Session::set_learning_rate(double value) {
  data_->need_optimizer("optim.lr", "set_learning_rate");
  data_->set_scalar("optim.lr", value);
}

void Session::set_adam(double lr, double beta1, double beta2, double epsilon) {
  for (const std::string_view scalar : {"optim.beta1", "optim.beta2", "optim.eps", "optim.lr"})
    data_->need_optimizer(scalar, "set_adam");
  // All are checked before one is set.
  const std::pair<std::string_view, double> values[] = {
      {"optim.lr", optim::checked("lr", lr)},
      {"optim.beta1", optim::checked("beta1", beta1)},
      {"optim.beta2", optim::checked("beta2", beta2)},
      {"optim.eps", optim::checked("eps", epsilon)}};
  for (const auto& [name, value] : values) data_->set_scalar(name, value);
}

double Session::learning_rate_factor(std::string_view pattern) const {
  return data_->scalar(data_->factor_scalar(pattern));
}

void Session::set_learning_rate_factor(std::string_view pattern, double factor) {
  data_->set_scalar(data_->factor_scalar(pattern), factor);
}

void Session::save(const std::filesystem::path& path, Saved what) const {
  data_->settled().save(path, what);
}
void Session::load(const std::filesystem::path& path, Saved what) {
  data_->settled().load(path, what);
}
LoadWeightsReport Session::load_weights(const Weights& weights, const LoadWeightsOptions& options) {
  return data_->settled().load_weights(weights, options);
}
Weights Session::weights() const { return data_->settled().weights(); }

CompiledPlan Session::compiled() const { return CompiledPlan(data_->main_data()); }
const Report& Session::report() const { return data_->report(); }
SessionMemory Session::memory_summary() const { return data_->memory(); }
std::vector<KernelInfo> Session::kernels() const {
  std::vector<KernelInfo> kernels;
  for (const auto& plan : data_->plans())
    for (KernelInfo& kernel : plan->kernels()) kernels.push_back(std::move(kernel));
  return kernels;
}
void Session::set_timing(bool on, bool spans) { data_->settled().set_timing(on, spans); }
SessionProfile Session::profile() const {
  SessionProfile profile;
  for (const auto& plan : data_->plans()) {
    if (plan->timed_runs() == 0) continue;
    profile.plans.push_back({plan->name(), plan->timed_runs(), plan->timed_milliseconds()});
    for (KernelInfo& kernel : plan->kernels()) profile.kernels.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(profile.kernels, std::ranges::greater{}, &KernelInfo::milliseconds);
  return profile;
}
void Session::add_span(std::string_view name, std::string_view category,
                       std::chrono::steady_clock::time_point begin, bool lasts) {
  data_->add_span(name, category, begin, lasts);
}
void Session::write_trace(const std::filesystem::path& path) const { data_->write_trace(path); }

std::int64_t SessionMemory::total() const {
  return parameters + states + inputs + outputs + temporaries + scratch + constants + prepared;
}

std::string SessionMemory::text() const {
  const std::pair<std::string_view, std::int64_t> rows[] = {
      {"parameters", parameters}, {"states", states},           {"inputs", inputs},
      {"outputs", outputs},       {"temporaries", temporaries}, {"scratch", scratch},
      {"constants", constants},   {"prepared", prepared},       {"total", total()}};
  std::string text;
  for (const auto& [name, bytes] : rows)
    text += fmt::format("{:<12}{:>12.3f} MiB\n", name, static_cast<double>(bytes) / 1048576.0);
  return text;
}

}  // namespace pantala
