// Evaluation and prediction: plans of their own over the session's parameters, or over the averages
// of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "base/text.h"
#include "distributed/collectives.h"
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
  // Where ranks measure parts of the batches numbers are kept until all have theirs: sums of them
  // depend on the order.
  Metrics(const TrainConfig& config, const train::Plans& plans, bool of_parts)
      : plans_(plans),
        class_axis_(config.class_axis),
        kind_(config.measured),
        keeps_numbers_(of_parts) {}

  void add(const Type& prediction, std::span<const float> scores, const data::Batch& batch) {
    if (is_float(batch.labels.dtype())) {
      columns_ = prediction.shape.rank() == 2 ? prediction.shape[1] : 1;
      const std::span<const float> targets = converted(batch.labels, targets_);
      if (targets.size() == scores.size()) add_numbers(scores, targets);
    } else {
      sequences_ = !kind_ && batch.labels.shape.rank() == 2;
      add_classes(prediction, scores, converted(batch.labels, labels_));
    }
  }

  // What all ranks have measured in so many batches.
  void merge(distributed::Communicator& ranks, std::int64_t batches) {
    const std::vector<std::int64_t> own =
        classification_ ? classification_->counts() : std::vector<std::int64_t>();
    const std::vector<std::int64_t> sequences =
        distributed::gather_all<std::int64_t>(ranks, sequences_ ? 1 : 0);
    sequences_ = std::ranges::max(sequences) > 0;
    const std::vector<std::vector<std::int64_t>> counts =
        distributed::gather_parts<std::int64_t>(ranks, own);
    classification_.reset();
    for (const std::vector<std::int64_t>& part : counts) {
      if (part.empty()) continue;
      if (!classification_) classification_.emplace(part[0]);
      classification_->add_counts(part);
    }
    merge_numbers(ranks, batches);
  }

  // A batch ends here, on every rank.
  void end_batch() { ends_.push_back(predictions_.size()); }

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

  void add_numbers(std::span<const float> predictions, std::span<const float> targets) {
    if (keeps_numbers_) {
      predictions_.insert(predictions_.end(), predictions.begin(), predictions.end());
      all_targets_.insert(all_targets_.end(), targets.begin(), targets.end());
      return;
    }
    if (!regression_) regression_.emplace(columns_);
    regression_->add(predictions, targets);
  }

  // Batch by batch, and in each in the order of the ranks: as one rank meets its items.
  void merge_numbers(distributed::Communicator& ranks, std::int64_t batches) {
    columns_ = std::ranges::max(distributed::gather_all(ranks, columns_));
    if (columns_ == 0) return;
    keeps_numbers_ = false;
    const auto predictions = distributed::gather_parts<float>(ranks, predictions_);
    const auto targets = distributed::gather_parts<float>(ranks, all_targets_);
    const auto ends = distributed::gather_parts<std::size_t>(ranks, ends_);
    for (std::size_t batch = 0; batch < static_cast<std::size_t>(batches); ++batch)
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        const std::size_t begin = batch == 0 ? 0 : ends[rank][batch - 1];
        const std::size_t count = ends[rank][batch] - begin;
        if (count > 0)
          add_numbers(std::span(predictions[rank]).subspan(begin, count),
                      std::span(targets[rank]).subspan(begin, count));
      }
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
  bool keeps_numbers_;
  bool sequences_ = false;  // of what nobody has told what it is
  std::optional<metrics::Classification> classification_;
  std::optional<metrics::Regression> regression_;
  std::int64_t columns_ = 0;                      // of numbers
  std::vector<float> predictions_, all_targets_;  // that were kept
  std::vector<std::size_t> ends_;                 // of batches, among them
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

namespace {

// Of a part of the items.
struct PartLoss {
  double sum = 0;  // loss times labels
  std::int64_t labels = 0;
};

// The parts of all ranks in the order in which one rank would have them: those of a batch one after
// the other.
std::vector<PartLoss> in_order(const std::vector<std::vector<PartLoss>>& of_ranks,
                               std::int64_t batches) {
  std::vector<PartLoss> losses;
  for (std::int64_t batch = 0; batch < batches; ++batch)
    for (const std::vector<PartLoss>& own : of_ranks) {
      const std::ptrdiff_t each = std::ssize(own) / batches;
      const auto first = own.begin() + batch * each;
      losses.insert(losses.end(), first, first + each);
    }
  return losses;
}

std::int64_t sum_over(distributed::Communicator& ranks, std::int64_t own) {
  const std::vector<std::int64_t> all = distributed::gather_all(ranks, own);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

double mean_loss(const std::vector<PartLoss>& parts, std::int64_t items) {
  PartLoss all;
  for (const PartLoss& part : parts) {
    all.sum += part.sum;
    all.labels += part.labels;
  }
  if (all.labels > 0) return all.sum / static_cast<double>(all.labels);
  return items > 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
}

}  // namespace

Evaluation Trainer::Impl::evaluate(data::Loader& loader, distributed::Communicator* ranks) {
  plans.check_evaluates();
  Evaluation evaluation;
  Metrics metrics(config, plans, sharded_ || ranks);
  std::vector<float> space;
  std::vector<PartLoss> losses;
  Activity activity{.kind = Activity::Kind::validating, .batches = loader.batches()};
  const auto run = [&](const data::Batch& batch) {
    bring_plan({Phase::evaluation, batch.items()});
    const train::Plans::Evaluator& evaluator = plans.evaluator(batch.items());
    plans.set_inputs(evaluator.plan, batch);
    evaluator.plan.run();
    PartLoss loss{.labels = plans.labels_that_count(batch)};
    if (loss.labels > 0)
      loss.sum =
          evaluator.plan.output_scalar(config.loss_output) * static_cast<double>(loss.labels);
    losses.push_back(loss);
    if (evaluator.prediction)
      metrics.add(*evaluator.prediction, prediction_of(evaluator, config.prediction_output, space),
                  batch);
  };
  {
    const train::AveragesInUse averages(session(), uses_averages());
    tell(activity);
    loader.reset();
    while (const std::optional<data::Batch> batch = loader.next_batch()) {
      if (!sharded_) run(*batch);
      for (const auto& part : sharded_ ? sharded_->parts_of(*batch) : train::ShardedStep::Parts()) {
        if (part)
          run(*part);
        else
          losses.emplace_back();
      }
      evaluation.items += batch->whole_items();
      if (!ranks) metrics.end_batch();
      ++activity.batch;
      tell(activity);
    }
  }
  if (ranks) {
    metrics.end_batch();  // what a rank has is one piece
    metrics.merge(*ranks, 1);
    losses = distributed::gather_lists<PartLoss>(*ranks, losses);
    evaluation.items = sum_over(*ranks, evaluation.items);
  } else if (sharded_) {
    metrics.merge(sharded_->ranks(), activity.batch);
    losses =
        in_order(distributed::gather_parts<PartLoss>(sharded_->ranks(), losses), activity.batch);
  }
  evaluation.loss = mean_loss(losses, evaluation.items);
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
