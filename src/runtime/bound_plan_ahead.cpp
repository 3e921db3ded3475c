// Runs of a plan that nobody waits for.
#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/bound_plan.h"
#include "runtime/convert.h"

namespace pantala::runtime {

namespace {

// A kept result: the status, the guard's flag, the loss.
constexpr std::int64_t kResultBytes = 64, kFlagAt = 4, kLossAt = 8;

}  // namespace

// The numbers of a run are known when it is started only if no kernel makes them, also not one of a
// plan that came later.
bool BoundPlan::can_run_ahead() const {
  return results_.bytes > 0 && std::ranges::all_of(number_of_, [&](std::size_t number) {
           return store_.entries()[number].leaf.on_host;
         });
}

void BoundPlan::open_ahead() {
  if (!device_.runs_ahead()) return;
  constexpr auto kBytes = kResultBytes * static_cast<std::int64_t>(kMostAhead);
  results_ = {device_.allocate_staging(kBytes), 0, kBytes};
  for (Started& run : started_) run.numbers.resize(number_of_.size());
  moves_.reserve(inputs_.items().size() + 2);
}

bool BoundPlan::advances(std::size_t number) const {
  return std::ranges::any_of(advanced_, [&](std::size_t k) { return number_of_[k] == number; });
}

bool BoundPlan::fits_behind() const {
  return last_was_first_ || std::ranges::all_of(inputs_.items(), [](const PortBlock::Item& item) {
           return item.is_staged == item.was_staged;
         });
}

// Where the host writes an input of the run at hand while others are ahead.
std::byte* BoundPlan::staged_place(const PortBlock::Item& item) {
  if (staged_.bytes == 0) {
    const std::int64_t bytes = inputs_.bytes() * static_cast<std::int64_t>(kMostAhead + 1);
    staged_ = {device_.allocate_staging(bytes), 0, bytes};
  }
  return device_.host_view(staged_.memory) + static_cast<std::int64_t>(filling_) * inputs_.bytes() +
         item.slice.offset;
}

device::Slice BoundPlan::kept_result(std::size_t k, std::int64_t offset, std::int64_t bytes) const {
  const auto place = static_cast<std::int64_t>((first_ + k) % kMostAhead);
  return {results_.memory, place * kResultBytes + offset, bytes};
}

const std::byte* BoundPlan::result_of(std::size_t k) const {
  return device_.host_view(results_.memory) + kept_result(k, 0, 0).offset;
}

void BoundPlan::start(const device::Slice& arena) {
  if (inputs_missing_ > 0) refuse_run();
  store_.settle();
  Started& run = started(ahead_);
  for (std::size_t k = 0; k < number_of_.size(); ++k) run.numbers[k] = store_.number(number_of_[k]);
  run.inputs.reset();
  bool has_staged = false;
  for (PortBlock::Item& item : inputs_.items()) {
    item.was_staged = item.is_staged;
    has_staged |= item.is_staged;
    item.is_staged = false;
  }
  if (has_staged) {
    run.inputs = filling_;
    filling_ = (filling_ + 1) % (kMostAhead + 1);
  }
  last_was_first_ = ahead_ == 0;
  submit(run, arena);
}

// The next run overwrites what the one before it has left.
void BoundPlan::keep_results_before() {
  if (finite_) moves_.push_back({finite_->slice, kept_result(ahead_ - 1, kFlagAt, 1)});
  if (loss_) moves_.push_back({loss_->slice, kept_result(ahead_ - 1, kLossAt, loss_->slice.bytes)});
}

void BoundPlan::move_inputs(const Started& run) {
  if (!run.inputs) return;
  const std::int64_t part = static_cast<std::int64_t>(*run.inputs) * inputs_.bytes();
  const auto& items = inputs_.items();
  const auto was_staged = [](const PortBlock::Item& item) {
    return item.was_staged || item.slice.bytes == 0;
  };
  if (std::ranges::all_of(items, was_staged)) {
    moves_.push_back({{staged_.memory, part, inputs_.bytes()}, inputs_.whole()});
    return;
  }
  for (const PortBlock::Item& item : items)
    if (item.was_staged)
      moves_.push_back({{staged_.memory, part + item.slice.offset, item.slice.bytes}, item.slice});
}

void BoundPlan::submit(Started& run, const device::Slice& arena) {
  std::ranges::copy(run.numbers, numbers_.begin());
  host_.evaluate(numbers_, slots_);
  moves_.clear();
  const bool is_behind = ahead_ > 0;
  if (is_behind) keep_results_before();
  move_inputs(run);
  run.ticket = device_.run(
      id_, {.arena = arena,
            .regions = regions_,
            .uniforms = slots_,
            .before = moves_,
            .is_behind = is_behind,
            .guard = finite_ ? finite_->slice : device::Slice{},
            .status_before = is_behind ? kept_result(ahead_ - 1, 0, 4) : device::Slice{}});
  has_run_ = true;
  ++ahead_;
  host_.advance(numbers_);
  for (const std::size_t k : advanced_) store_.set_number(number_of_[k], numbers_[k]);
}

BoundPlan::Outcome BoundPlan::look() {
  std::int32_t status = 0;
  bool finite = true;
  looked_.reset();
  if (ahead_ > 1) {
    looked_ = first_;
    device_.wait(started(1).ticket);  // which has kept the result
    const std::byte* result = result_of(0);
    std::memcpy(&status, result, sizeof(status));
    finite = !finite_ || result[kFlagAt] != std::byte{0};
  } else {
    status = device_.take_status();
    finite = is_finite();
  }
  const Started& run = started(0);
  first_ = (first_ + 1) % kMostAhead;
  --ahead_;
  if (status == 0 && finite) return Outcome::done;
  left_out_ = std::exchange(ahead_, 0);
  if (left_out_ > 0) device_.take_status();  // waits for those, too
  for (const std::size_t k : advanced_) store_.set_number(number_of_[k], run.numbers[k]);
  if (status != 0 && status != kir::kNotFinite) report_status(status, std::exchange(left_out_, 0));
  return finite ? Outcome::spoilt : Outcome::refused;
}

double BoundPlan::looked_loss() const {
  if (!looked_ || !loss_) return loss();
  double value = 0;
  decode_into({"output", loss_->name}, loss_->type,
              device_.host_view(results_.memory) +
                  static_cast<std::int64_t>(*looked_) * kResultBytes + kLossAt,
              std::span(&value, 1));
  return value;
}

// What users have set in between stays; counters go on from where they are.
void BoundPlan::start_again(const device::Slice& arena) {
  for (std::size_t left = std::exchange(left_out_, 0); left > 0; --left) {
    Started& run = started(ahead_);
    for (const std::size_t k : advanced_) run.numbers[k] = store_.number(number_of_[k]);
    submit(run, arena);
  }
}

}  // namespace pantala::runtime
