// Runs of a plan that nobody waits for: what each is given, and what it leaves.
#include <algorithm>

#include "runtime/bound_plan.h"
#include "runtime/convert.h"
#include "runtime/runs_ahead.h"

namespace pantala::runtime {

// The numbers of a run are known when it is started only if no kernel makes them, also not one of a
// plan that came later.
bool BoundPlan::can_run_ahead() const {
  return ahead_ && ahead_->are_possible() &&
         std::ranges::all_of(
             number_of_, [&](std::size_t number) { return store_.entries()[number].leaf.on_host; });
}

bool BoundPlan::advances(std::size_t number) const {
  return std::ranges::any_of(advanced_, [&](std::size_t k) { return number_of_[k] == number; });
}

void BoundPlan::follow(std::size_t number) {
  const auto found = std::ranges::find(number_of_, number);
  if (found != number_of_.end())
    followed_.push_back(static_cast<std::size_t>(found - number_of_.begin()));
}

bool BoundPlan::fits_behind() const {
  return last_was_first_ || std::ranges::all_of(inputs_.items(), [](const PortBlock::Item& item) {
           return item.is_staged == item.was_staged;
         });
}

// Where the host writes an input of the run at hand while others are ahead.
std::byte* BoundPlan::staged_place(const PortBlock::Item& item) {
  if (staged_.bytes == 0) {
    const std::int64_t bytes = inputs_.bytes() * static_cast<std::int64_t>(RunsAhead::kMost + 1);
    staged_ = {device_.allocate_staging(bytes), 0, bytes};
  }
  return device_.host_view(staged_.memory) + static_cast<std::int64_t>(filling_) * inputs_.bytes() +
         item.slice.offset;
}

void BoundPlan::take_numbers(std::vector<ir::Number>& numbers) const {
  numbers.resize(number_of_.size());
  for (std::size_t k = 0; k < number_of_.size(); ++k) numbers[k] = store_.number(number_of_[k]);
}

void BoundPlan::begin(Start& start, bool is_first) {
  if (inputs_missing_ > 0) refuse_run();
  store_.settle();
  take_numbers(start.numbers);
  start.inputs.reset();
  bool has_staged = false;
  for (PortBlock::Item& item : inputs_.items()) {
    item.was_staged = item.is_staged;
    has_staged |= item.is_staged;
    item.is_staged = false;
  }
  if (has_staged) {
    start.inputs = filling_;
    filling_ = (filling_ + 1) % (RunsAhead::kMost + 1);
  }
  last_was_first_ = is_first;
}

void BoundPlan::begin_again(Start& start) const {
  for (const std::size_t k : followed_) start.numbers[k] = store_.number(number_of_[k]);
}

void BoundPlan::move_inputs(const Start& start, std::vector<device::Move>& moves) const {
  if (!start.inputs) return;
  const std::int64_t part = static_cast<std::int64_t>(*start.inputs) * inputs_.bytes();
  const auto& items = inputs_.items();
  const auto was_staged = [](const PortBlock::Item& item) {
    return item.was_staged || item.slice.bytes == 0;
  };
  if (std::ranges::all_of(items, was_staged)) {
    moves.push_back({{staged_.memory, part, inputs_.bytes()}, inputs_.whole()});
    return;
  }
  for (const PortBlock::Item& item : items)
    if (item.was_staged)
      moves.push_back({{staged_.memory, part + item.slice.offset, item.slice.bytes}, item.slice});
}

device::Ticket BoundPlan::submit(const Start& start, device::RunArguments& arguments) {
  const device::Ticket ticket = hand_over(start, arguments);
  advance_numbers();
  return ticket;
}

void BoundPlan::put_back(const Start& start) {
  for (const std::size_t k : advanced_) store_.set_number(number_of_[k], start.numbers[k]);
}

double BoundPlan::loss_in(const std::byte* memory) const {
  if (!loss_) return loss();
  double value = 0;
  decode_into({"output", loss_->name}, loss_->type, memory, std::span(&value, 1));
  return value;
}

}  // namespace pantala::runtime
