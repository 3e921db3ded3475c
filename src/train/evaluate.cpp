// Evaluation and prediction: plans of their own over the session's parameters, or over the averages
// of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "base/text.h"
#include "pantala/error.h"
#include "train/trainer_impl.h"

namespace pantala {

namespace {

// The elements in another type, in a vector that is used again.
template <class To>
std::span<const To> converted(const data::Array& array, std::vector<To>& space) {
  return std::visit(
      [&](const auto& list) -> std::span<const To> {
        using From = typename std::decay_t<decltype(list)>::value_type;
        if constexpr (std::is_same_v<From, To>) {
          return list;
        } else {
          space.resize(list.size());
          std::transform(list.begin(), list.end(), space.begin(),
                         [](From v) { return static_cast<To>(v); });
          return space;
        }
      },
      array.values);
}

// Of one kind or the other, by the labels of the first batch.
class Metrics {
 public:
  Metrics(const TrainConfig& config, const train::Plans& plans)
      : plans_(plans), class_axis_(config.class_axis), kind_(config.measured) {}

  void add(const Type& prediction, std::span<const float> scores, const data::Batch& batch) {
    if (is_float(batch.labels.dtype())) {
      if (!regression_) regression_.emplace(prediction.shape.rank() == 2 ? prediction.shape[1] : 1);
      const std::span<const float> targets = converted(batch.labels, targets_);
      if (targets.size() == scores.size()) regression_->add(scores, targets);
    } else {
      sequences_ = !kind_ && batch.labels.shape.rank() == 2;
      add_classes(prediction, scores, converted(batch.labels, labels_));
    }
  }

  void finish(Evaluation& evaluation) const {
    if (classification_ && is_language()) {
      evaluation.values = language_values(evaluation.loss);
    } else if (classification_) {
      evaluation.values = classification_->values();
      evaluation.confusion = classification_->confusion();
      if (sequences_) evaluation.values.emplace_back("perplexity", std::exp(evaluation.loss));
    } else if (regression_) {
      evaluation.values = regression_->values();
    }
  }

 private:
  bool is_language() const {
    return kind_ == metrics::Kind::tokens || kind_ == metrics::Kind::bytes;
  }
  // The loss is in nats a token. What matters most is first: a line of progress shows that.
  std::vector<std::pair<std::string, double>> language_values(double loss) const {
    return {{kind_ == metrics::Kind::bytes ? "bits_per_byte" : "bits_per_token",
             loss / std::numbers::ln2},
            {"perplexity", std::exp(loss)},
            {"accuracy", classification_->confusion().accuracy()}};
  }

  void add_classes(const Type& prediction, std::span<const float> scores,
                   std::span<const std::int64_t> labels) {
    const Shape& shape = prediction.shape;
    if (shape.rank() < 2) return;
    const int axis = class_axis_ < 0 ? shape.rank() - 1 : 1;
    const std::int64_t classes = shape[axis];
    std::int64_t inner = 1, outer = 1;
    for (int k = 0; k < axis; ++k) outer *= shape[k];
    for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
    if (std::ssize(labels) != outer * inner) return;
    if (!classification_) classification_.emplace(classes);
    row_.resize(static_cast<std::size_t>(classes));
    for (std::int64_t k = 0; k < std::ssize(labels); ++k) {
      const std::int64_t label = labels[static_cast<std::size_t>(k)];
      if (!plans_.counts(label)) continue;
      const std::int64_t first = k / inner * classes * inner + k % inner;
      for (std::int64_t c = 0; c < classes; ++c)
        row_[static_cast<std::size_t>(c)] = scores[static_cast<std::size_t>(first + c * inner)];
      classification_->add(row_, std::span(&label, 1));
    }
  }

  const train::Plans& plans_;
  const int class_axis_;
  const std::optional<metrics::Kind> kind_;
  bool sequences_ = false;  // of what nobody has told what it is
  std::optional<metrics::Classification> classification_;
  std::optional<metrics::Regression> regression_;
  std::vector<float> row_, targets_;
  std::vector<std::int64_t> labels_;
};

// The plan's prediction as floats.
std::span<const float> prediction_of(const train::Plans::Evaluator& evaluator,
                                     const std::string& name, std::vector<float>& space) {
  space.resize(static_cast<std::size_t>(evaluator.prediction->shape.numel()));
  if (evaluator.prediction->dtype == f32) {
    evaluator.plan.output(name, HostBuffer(std::span<float>(space)));
  } else {
    const std::vector<double> values = evaluator.plan.output(name).to_doubles();
    std::transform(values.begin(), values.end(), space.begin(),
                   [](double v) { return static_cast<float>(v); });
  }
  return space;
}

// Items [first, first + count) of an array.
data::Array slice_of(const data::Array& array, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> sizes = array.shape.vec();
  const std::int64_t item = array.shape.numel() / array.items();
  sizes[0] = count;
  data::Array part{Shape(sizes), {}};
  std::visit(
      [&](const auto& list) {
        const auto begin = list.begin() + first * item;
        part.values = std::decay_t<decltype(list)>(begin, begin + count * item);
      },
      array.values);
  return part;
}

}  // namespace

// Before the first step the averages have no values yet.
bool Trainer::Impl::uses_averages() const {
  if (!config.evaluate_average) return false;
  const std::vector<std::string> states = session().states();
  return std::find(states.begin(), states.end(), "optim.step") != states.end() &&
         session().state("optim.step").at(0) > 0;
}

Evaluation Trainer::Impl::evaluate(data::Loader& loader) {
  plans.check_evaluates();
  Evaluation evaluation;
  Metrics metrics(config, plans);
  std::vector<float> space;
  {
    const train::AveragesInUse averages(session(), uses_averages());
    double sum = 0;
    std::int64_t labels = 0;
    Activity activity{.kind = Activity::Kind::validating, .batches = loader.batches()};
    tell(activity);
    loader.reset();
    while (const std::optional<data::Batch> batch = loader.next_batch()) {
      bring_plan({Phase::evaluation, batch->items()});
      const train::Plans::Evaluator& evaluator = plans.evaluator(batch->items());
      plans.set_inputs(evaluator.plan, *batch);
      evaluator.plan.run();
      if (const std::int64_t count = plans.labels_that_count(*batch); count > 0) {
        sum += evaluator.plan.output_scalar(config.loss_output) * static_cast<double>(count);
        labels += count;
      }
      evaluation.items += batch->items();
      if (evaluator.prediction)
        metrics.add(*evaluator.prediction,
                    prediction_of(evaluator, config.prediction_output, space), *batch);
      ++activity.batch;
      tell(activity);
    }
    if (labels > 0)
      evaluation.loss = sum / static_cast<double>(labels);
    else if (evaluation.items > 0)
      evaluation.loss = std::numeric_limits<double>::quiet_NaN();
  }
  tell({});
  metrics.finish(evaluation);
  last_evaluation = evaluation;
  return evaluation;
}

data::Array Trainer::Impl::predict(const data::Array& data) {
  if (data.items() < 1) throw TypeError("predict: there are no items");
  const train::AveragesInUse averages(session(), uses_averages());
  std::vector<float> predictions, space;
  std::vector<std::int64_t> sizes;
  for (std::int64_t first = 0; first < data.items(); first += plans.batch_size()) {
    const std::int64_t count = std::min(plans.batch_size(), data.items() - first);
    const train::Plans::Evaluator& evaluator = plans.evaluator(count);
    if (!evaluator.prediction || evaluator.prediction->shape.rank() == 0)
      throw TypeError(
          fmt::format("predict: the model's graph for evaluation has no output '{}' with a value "
                      "for each item{}; TrainConfig::prediction_output names it",
                      config.prediction_output,
                      did_you_mean(config.prediction_output, evaluator.plan.outputs())));
    // The loss of the same plan reads labels; any will do.
    evaluator.plan.set_input(config.label_input, Literal(evaluator.labels));
    evaluator.plan.set_input(config.data_input, slice_of(data, first, count).elements());
    evaluator.plan.run();
    const std::span<const float> part = prediction_of(evaluator, config.prediction_output, space);
    predictions.insert(predictions.end(), part.begin(), part.end());
    sizes = evaluator.prediction->shape.vec();
  }
  sizes[0] = data.items();
  return {Shape(sizes), std::move(predictions)};
}

void Trainer::Impl::save_model(const std::filesystem::path& path) {
  check_values();
  const train::AveragesInUse averages(session(), uses_averages());
  session().save(path, Saved::model);
}

}  // namespace pantala
