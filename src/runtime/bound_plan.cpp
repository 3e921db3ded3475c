#include "runtime/bound_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/error.h"
#include "plan/step_names.h"
#include "runtime/convert.h"
#include "runtime/runs_ahead.h"

namespace pantala::runtime {

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

}  // namespace

PortBlock::PortBlock(device::Device& device, const plan::Plan& plan, plan::Storage storage,
                     std::span<const plan::Port> ports)
    : device_(device) {
  for (std::uint32_t region = 0; region < plan.regions.size(); ++region) {
    if (plan.regions[region].storage != storage) continue;
    regions_.emplace_back(region, device::Slice{{}, bytes_, plan.regions[region].bytes});
    bytes_ += aligned(plan.regions[region].bytes);
  }
  if (bytes_ > 0) memory_ = device_.allocate(bytes_);
  for (auto& [region, slice] : regions_) slice.memory = memory_;
  std::byte* view = bytes_ > 0 ? device_.host_view(memory_) : nullptr;
  for (const plan::Port& port : ports) {
    const plan::Buffer& buffer = plan.buffers[port.buffer];
    device::Slice slice = slice_of_region(buffer.region);
    slice.offset += buffer.offset;
    slice.bytes = buffer.bytes();
    items_.push_back({.name = port.name,
                      .type = {buffer.dtype, port.shape},
                      .bounds = {port.limit, port.exempt},
                      .slice = slice,
                      .view = view ? view + slice.offset : nullptr,
                      .is_set = false});
  }
}

PortBlock::~PortBlock() {
  if (bytes_ > 0) device_.free(memory_);
}

const device::Slice& PortBlock::slice_of_region(std::uint32_t region) const {
  for (const auto& [index, slice] : regions_)
    if (index == region) return slice;
  throw InternalError(fmt::format("session: region {} of the plan is not bound", region));
}

BoundPlan::BoundPlan(std::string name, std::shared_ptr<const plan::CompiledStep> compiled,
                     device::Device& device, Store& store, const RunsAhead* ahead)
    : name_(std::move(name)),
      compiled_(std::move(compiled)),
      device_(device),
      store_(store),
      host_(compiled_->host),
      inputs_(device, compiled_->plan, plan::Storage::input, compiled_->plan.inputs),
      outputs_(device, compiled_->plan, plan::Storage::output, compiled_->plan.outputs),
      prepared_(device, compiled_->plan, plan::Storage::prepared, {}),
      inputs_missing_(inputs_.items().size()),
      ahead_(ahead),
      launch_times_(compiled_->plan.launches.size()) {
  std::int64_t staged = 0;
  for (const PortBlock::Item& item : inputs_.items())
    if (!item.view) staged = std::max(staged, item.slice.bytes);
  staging_.resize(static_cast<std::size_t>(staged));
  bind_regions(store);
  bind_numbers(store);
  slots_.resize(host_.uniforms());
  writes_store_ = plan::writes_store(compiled_->plan);
  for (const PortBlock::Item& item : outputs_.items()) {
    if (item.name == plan::kFiniteOutput && item.type == Type{boolean, {}}) finite_ = &item;
    if (item.name == plan::kLossOutput && item.type.shape.numel() == 1) loss_ = &item;
  }
  plan::Plan loaded = compiled_->plan;
  loaded.name = name_;  // what messages and traces call it
  profile_.emplace(loaded, compiled_->report.launches);
  id_ = device_.load(std::move(loaded));
  moves_.reserve(inputs_.items().size());
}

BoundPlan::~BoundPlan() {
  device_.unload(id_);
  if (staged_.bytes > 0) device_.free(staged_.memory);
}

void BoundPlan::bind_regions(Store& store) {
  const plan::Plan& plan = compiled_->plan;
  for (std::uint32_t k = 0; k < plan.regions.size(); ++k) {
    const plan::Region& region = plan.regions[k];
    if (region.storage == plan::Storage::input) {
      regions_.push_back(inputs_.slice_of_region(k));
    } else if (region.storage == plan::Storage::output) {
      regions_.push_back(outputs_.slice_of_region(k));
    } else if (region.storage == plan::Storage::prepared) {
      regions_.push_back(prepared_.slice_of_region(k));
    } else {
      const Store::Entry* entry = store.find(region.name);
      if (!entry || entry->leaf.on_host || entry->slice.bytes != region.bytes)
        throw InternalError(fmt::format("session: plan '{}' reads '{}', which the store {}", name_,
                                        region.name, entry ? "keeps otherwise" : "does not have"));
      regions_.push_back(entry->slice);
    }
  }
}

void BoundPlan::bind_numbers(Store& store) {
  for (const plan::HostPart::Leaf& leaf : host_.leaves()) {
    const Store::Entry* entry = store.find(leaf.name);
    if (!entry)
      throw InternalError(
          fmt::format("session: plan '{}' needs the number '{}', which the store does not have",
                      name_, leaf.name));
    number_of_.push_back(store.index_of(*entry));
  }
  numbers_.resize(number_of_.size());
  start_.numbers.resize(number_of_.size());
  advanced_ = host_.updated_leaves();
  followed_ = advanced_;
}

std::vector<std::string> BoundPlan::input_names() const {
  std::vector<std::string> names;
  for (const PortBlock::Item& item : inputs_.items()) names.push_back(item.name);
  return names;
}

std::vector<std::string> BoundPlan::output_names() const {
  std::vector<std::string> names;
  for (const PortBlock::Item& item : outputs_.items()) names.push_back(item.name);
  for (const std::string& name : host_.output_names()) names.push_back(name);
  return names;
}

// Inputs are few and names short: looking through them costs less than a hash.
const PortBlock::Item* BoundPlan::find_input(std::string_view name) const {
  for (const PortBlock::Item& item : inputs_.items())
    if (item.name == name) return &item;
  return nullptr;
}
PortBlock::Item* BoundPlan::find_input(std::string_view name) {
  return const_cast<PortBlock::Item*>(std::as_const(*this).find_input(name));
}

const Type& BoundPlan::input_type(std::string_view name) const {
  const PortBlock::Item* item = find_input(name);
  return item ? item->type : unread_input(name).type;
}

const plan::CompiledLeaf& BoundPlan::unread_input(std::string_view name) const {
  for (const plan::CompiledLeaf& leaf : compiled_->leaves)
    if (leaf.kind == LeafKind::input && leaf.name == name) return leaf;
  throw TypeError(fmt::format("plan '{}' has no input named '{}'{}", name_, name,
                              did_you_mean(name, input_names())));
}

template <class Values, class Check>
void BoundPlan::write_input(std::string_view name, const Values& values, const Check& check) {
  PortBlock::Item* const found = find_input(name);
  if (!found) {
    const plan::CompiledLeaf& leaf = unread_input(name);
    return check(Receiver{"input", leaf.name}, values, leaf.type, {});
  }
  PortBlock::Item& item = *found;
  check(Receiver{"input", item.name}, values, item.type, item.bounds);
  item.is_staged = ahead_ && ahead_->size() > 0 && item.slice.bytes > 0;
  if (item.is_staged) {
    encode(values, item.type.dtype, staged_place(item));
  } else if (item.view) {
    device_.wait();
    encode(values, item.type.dtype, item.view);
  } else if (item.slice.bytes > 0) {  // an empty tensor has no memory
    encode(values, item.type.dtype, staging_.data());
    device_.write(item.slice,
                  std::span(staging_).first(static_cast<std::size_t>(item.slice.bytes)));
  }
  if (!item.is_set) --inputs_missing_;
  item.is_set = true;
}

void BoundPlan::set_input(std::string_view name, const HostElements& values) {
  write_input(name, values, check_elements);
}

void BoundPlan::set_input(std::string_view name, const Literal& value) {
  write_input(name, value, check_literal);
}

namespace {

// "'a', 'b' and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> quoted;
  for (std::size_t k = 0; k < std::min(names.size(), kMost); ++k)
    quoted.push_back(fmt::format("'{}'", names[k]));
  const std::string text = fmt::format("{}", fmt::join(quoted, ", "));
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

// " (for 'loss' and the updates)".
std::string needed_for(const plan::CompiledLeaf& input) {
  std::vector<std::string> parts;
  if (!input.needed_by.empty()) parts.push_back(some_of(input.needed_by));
  if (input.feeds_updates) parts.emplace_back("the updates");
  return parts.empty() ? "" : fmt::format(" (for {})", fmt::join(parts, " and "));
}

}  // namespace

void BoundPlan::refuse_run() const {
  std::vector<std::string> missing, others = output_names();
  std::erase(others, plan::kFiniteOutput);
  for (const PortBlock::Item& item : inputs_.items()) {
    if (item.is_set) continue;
    const auto leaf = std::ranges::find(compiled_->leaves, item.name, &plan::CompiledLeaf::name);
    const bool known = leaf != compiled_->leaves.end() && leaf->is_needed();
    missing.push_back(
        fmt::format("'{}' {}{}", item.name, item.type.str(), known ? needed_for(*leaf) : ""));
    std::erase_if(others, [&](const std::string& output) {
      return !known || std::ranges::count(leaf->needed_by, output) > 0;
    });
  }
  const std::string rest =
      others.empty()
          ? ""
          : fmt::format("; {} can be had without (CompileOptions::outputs)", some_of(others));
  throw TypeError(fmt::format("plan '{}' cannot run: {} without a value: {}{}", name_,
                              counted(missing.size(), "input"), fmt::join(missing, ", "), rest));
}

void BoundPlan::report_status(std::int32_t code, std::size_t left_out) const {
  const std::string behind =
      left_out == 0 ? ""
                    : fmt::format(" (in a step with {} behind it, which changed nothing)",
                                  counted(left_out, "step"));
  for (const kir::StatusMessage& message : compiled_->messages)
    if (message.code == code) throw ValueError(message.text + behind);
  if (code == kir::kLoopEnded)
    throw UnsupportedError(
        fmt::format("plan '{}': a kernel has a longer loop than the device's driver goes through "
                    "to its end, so what this step has made is wrong: use the CPU, or smaller "
                    "sizes{}",
                    name_, behind));
  throw InternalError(
      fmt::format("plan '{}': a kernel reports {}, which has no message", name_, code));
}

BoundPlan::Outcome BoundPlan::judge(std::int32_t status, bool finite, std::size_t left_out) const {
  if (status != 0 && status != kir::kNotFinite) report_status(status, left_out);
  if (!finite) return Outcome::refused;  // whatever was watched has not been stored
  return status == kir::kNotFinite ? Outcome::spoilt : Outcome::done;
}

BoundPlan::Outcome BoundPlan::run(const device::Slice& arena, Timing* timing,
                                  std::atomic<std::int64_t>* finished) {
  begin(start_, true);
  moves_.clear();
  move_inputs(start_, moves_);
  device::RunArguments arguments{.arena = arena,
                                 .regions = {},
                                 .uniforms = {},
                                 .times = timing ? &times_ : nullptr,
                                 .finished = finished,
                                 .before = moves_};
  hand_over(start_, arguments);
  if (timing) note_times(*timing);
  const std::int32_t status = device_.take_status();
  const Outcome outcome = judge(status, is_finite());
  if (outcome != Outcome::done) return outcome;
  advance_numbers();
  prepared_at_ = store_.writes();
  return outcome;
}

device::Ticket BoundPlan::hand_over(const Start& start, device::RunArguments& arguments) {
  std::ranges::copy(start.numbers, numbers_.begin());
  host_.evaluate(numbers_, slots_);
  arguments.regions = regions_;
  arguments.uniforms = slots_;
  arguments.is_prepared = prepared_at_ == store_.writes();
  prepared_at_.reset();  // until the run has gone well
  if (writes_store_) store_.note_write();
  const device::Ticket ticket = device_.run(id_, arguments);
  has_run_ = true;
  return ticket;
}

// Of the run that was handed over last.
void BoundPlan::advance_numbers() {
  host_.advance(numbers_);
  for (const std::size_t k : advanced_) store_.set_number(number_of_[k], numbers_[k]);
}

void BoundPlan::note_times(Timing& timing) {
  ++timed_runs_;
  run_time_ += times_.duration;
  for (std::size_t k = 0; k < launch_times_.size(); ++k)
    launch_times_[k] += times_.launches[k].longest;
  if (timing.recorder == nullptr) return;
  times_.begin += timing.shift;
  profile_->record(times_, *timing.recorder, timing.tracks);
}

std::vector<KernelInfo> BoundPlan::kernels() const {
  std::vector<KernelInfo> kernels;
  const plan::Plan& plan = compiled_->plan;
  for (std::size_t k = 0; k < plan.launches.size(); ++k) {
    const plan::Launch& launch = plan.launches[k];
    kernels.push_back({.plan = name_,
                       .name = launch.name,
                       .unit = plan.units[launch.unit].entry,
                       .argument_sets = std::ssize(launch.sets),
                       .items = launch.items(),
                       .runs = timed_runs_,
                       .milliseconds = static_cast<double>(launch_times_[k]) * 1e-6});
    if (compiled_->report.launches.size() != plan.launches.size()) continue;
    const Report::Launch& described = compiled_->report.launches[k];
    kernels.back().layers = described.layers;
    kernels.back().ops = described.ops;
    kernels.back().flops = described.flops;
    kernels.back().read_bytes = described.read_bytes;
    kernels.back().written_bytes = described.written_bytes;
    kernels.back().predicted_us = described.predicted_us;
  }
  return kernels;
}

bool BoundPlan::is_finite() const {
  if (!finite_) return true;
  if (finite_->view) return *finite_->view != std::byte{0};
  std::byte flag{0};
  device_.read(finite_->slice, std::span(&flag, 1));
  return flag != std::byte{0};
}

const PortBlock::Item* BoundPlan::find_output(std::string_view name) const {
  for (const PortBlock::Item& item : outputs_.items())
    if (item.name == name) return &item;
  return nullptr;
}

std::optional<std::size_t> BoundPlan::find_host_output(std::string_view name) const {
  const std::vector<std::string>& names = host_.output_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

bool BoundPlan::has_output(std::string_view name) const {
  return find_output(name) != nullptr || find_host_output(name).has_value();
}

void BoundPlan::check_has_run(std::string_view output) const {
  if (!has_run_)
    throw TypeError(
        fmt::format("output '{}' of plan '{}' has no value before the first run", output, name_));
}

void BoundPlan::refuse_output(std::string_view name) const {
  throw TypeError(fmt::format("plan '{}' has no output named '{}'{}", name_, name,
                              did_you_mean(name, output_names())));
}

std::span<const std::byte> BoundPlan::bytes(const PortBlock::Item& item,
                                            std::vector<std::byte>& space) const {
  device_.wait();
  const auto count = static_cast<std::size_t>(item.slice.bytes);
  if (count == 0) return {};
  if (item.view) return {item.view, count};
  space.resize(count);
  device_.read(item.slice, space);
  return space;
}

Literal BoundPlan::output(std::string_view name) const {
  std::vector<std::byte> space;
  if (const PortBlock::Item* item = find_output(name)) {
    check_has_run(name);
    return decode(item->type, bytes(*item, space).data());
  }
  if (const auto index = find_host_output(name)) {
    check_has_run(name);
    const ir::Number number = host_.output(*index);
    const DType dtype = host_.output_dtype(*index);
    return number.integral ? Literal::integer(number.i, dtype) : Literal::scalar(number.f, dtype);
  }
  refuse_output(name);
}

void BoundPlan::output(std::string_view name, const HostBuffer& into) const {
  const PortBlock::Item* item = find_output(name);
  if (!item && !find_host_output(name)) refuse_output(name);
  std::vector<std::byte> space;
  if (item) {
    check_has_run(name);
    decode_into({"output", name}, item->type, bytes(*item, space).data(), into);
  } else {
    const Literal value = output(name);
    space.resize(8);
    encode(value, value.dtype(), space.data());
    decode_into({"output", name}, value.type(), space.data(), into);
  }
}

Type BoundPlan::output_type(std::string_view name) const {
  if (const PortBlock::Item* item = find_output(name)) return item->type;
  if (const auto index = find_host_output(name)) return {host_.output_dtype(*index), {}};
  refuse_output(name);
}

std::span<const std::byte> BoundPlan::output_memory(std::string_view name) const {
  const PortBlock::Item* item = find_output(name);
  if (!item && !find_host_output(name)) refuse_output(name);
  check_has_run(name);
  if (!item || !item->view) return {};
  return {item->view, static_cast<std::size_t>(item->slice.bytes)};
}

double BoundPlan::output_scalar(std::string_view name) const {
  const PortBlock::Item* item = find_output(name);
  if (item && item->type.shape.numel() != 1)
    throw TypeError(fmt::format("output '{}' is {}, not a scalar", name, item->type.str()));
  return output(name).at(0);
}

double BoundPlan::loss() const {
  if (!loss_) throw TypeError(fmt::format("plan '{}' has no loss", name_));
  check_has_run(plan::kLossOutput);
  std::vector<std::byte> space;
  double value = 0;
  decode_into({"output", plan::kLossOutput}, loss_->type, bytes(*loss_, space).data(),
              std::span(&value, 1));
  return value;
}

}  // namespace pantala::runtime
