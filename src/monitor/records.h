// What a run tells about itself, as plain numbers: one record per step and one per epoch. All that
// a run shows (progress_line.h) and leaves behind (run_log.h, run_series.h) is made of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace pantala::monitor {

using Metrics = std::vector<std::pair<std::string, double>>;  // by name: "accuracy"

struct StepRecord {
  std::int64_t epoch = 0, step = 0;  // from 0; the step within its epoch
  std::int64_t global_step = 0;      // optimizer steps of the run so far, this one included
  double loss = 0;
  double learning_rate = 0;
  std::optional<double> gradient_norm = {};
  std::optional<double> items_per_second = {};  // of late; in a log since the row before
  std::optional<double> wait_share = {};        // of the time: waiting for data, 0 to 1
  std::optional<std::int64_t> memory_bytes = {};
  // Of the time: waiting for other ranks, 0 to 1. It is shown, and no number of the files.
  std::optional<double> network_share = {};
  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

struct EpochRecord {
  std::int64_t epoch = 0, steps = 0;
  std::int64_t global_step = 0;  // after the epoch
  double avg_loss = 0;
  std::optional<double> learning_rate = {};
  std::optional<double> seconds = {};  // of training alone
  std::optional<double> items_per_second = {};
  std::optional<double> validation_loss = {};
  Metrics metrics = {};  // of the validation
  friend bool operator==(const EpochRecord&, const EpochRecord&) = default;
};

// --- the names of the numbers, which are the columns and keys of all files
inline constexpr std::string_view kValidationPrefix = "validation_";
// Calls visit(name, number) for every number of a record, except the metrics of an epoch; whoever
// writes records and whoever reads them goes through here.
template <class Record, class Visit>
  requires std::same_as<std::remove_const_t<Record>, StepRecord>
void each_number(Record& record, Visit&& visit) {
  visit("epoch", record.epoch);
  visit("step", record.step);
  visit("global_step", record.global_step);
  visit("loss", record.loss);
  visit("learning_rate", record.learning_rate);
  visit("gradient_norm", record.gradient_norm);
  visit("items_per_second", record.items_per_second);
  visit("wait_share", record.wait_share);
  visit("memory_bytes", record.memory_bytes);
}
template <class Record, class Visit>
  requires std::same_as<std::remove_const_t<Record>, EpochRecord>
void each_number(Record& record, Visit&& visit) {
  visit("epoch", record.epoch);
  visit("steps", record.steps);
  visit("global_step", record.global_step);
  visit("loss", record.avg_loss);
  visit("learning_rate", record.learning_rate);
  visit("items_per_second", record.items_per_second);
  visit("seconds", record.seconds);
  visit("validation_loss", record.validation_loss);
}

using FieldValue = std::variant<std::int64_t, double>;
struct Field {
  std::string name;
  FieldValue value;
};
// What is missing is left out. An epoch's average is its "loss", its metrics are
// "validation_accuracy" and so on.
std::vector<Field> fields_of(const StepRecord& record);
std::vector<Field> fields_of(const EpochRecord& record);
// Whether a field says where its record is (its step, its epoch) and not how the run does there.
bool is_place(std::string_view field);

// The text of the fields as the inside of a JSON object: "\"epoch\":0,\"loss\":0.5". Doubles read
// back to the same bits; those that JSON has no number for are the strings "nan", "inf", "-inf".
std::string json_members(const std::vector<Field>& fields);
std::string number_text(const FieldValue& value);

// The text with control characters and bytes that are no UTF-8 replaced by '?': for lines and
// labels that are made of foreign names.
std::string printable(std::string_view text);

}  // namespace pantala::monitor
