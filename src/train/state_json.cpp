#include "train/state_json.h"

#include <cmath>
#include <limits>

namespace pantala::train {

namespace {

using io::Json;

constexpr std::int64_t kNoEpoch = -1;  // in the file

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double to_number(const Json& document) {
  if (document.is_number()) return document.get<double>();
  const std::string text = document.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw ParseError(fmt::format("expected a number, found '{}'", text));
}

std::int64_t to_count(const Json& document, const char* key, std::int64_t least = 0) {
  const Json& member = document.at(key);
  if (!member.is_number_integer() || member.get<std::int64_t>() < least)
    throw ParseError(
        fmt::format("{}: expected a whole number from {} on, found {}", key, least, member.dump()));
  return member.get<std::int64_t>();
}

Json encode_confusion(const metrics::ConfusionMatrix& matrix) {
  Json cells = Json::array(), undecided = Json::array();
  for (const auto& [truth, predicted, count] : matrix.cells())
    cells.push_back({truth, predicted, count});
  for (std::int64_t truth = 0; truth < matrix.classes(); ++truth)
    if (const std::int64_t count = matrix.undecided(truth); count > 0)
      undecided.push_back({truth, count});
  return {{"classes", matrix.classes()}, {"cells", cells}, {"undecided", undecided}};
}

metrics::ConfusionMatrix decode_confusion(const Json& document) {
  // A wrong number must not become a huge allocation.
  constexpr std::int64_t kMaxClasses = 1 << 24;
  const std::int64_t classes = to_count(document, "classes");
  if (classes > kMaxClasses)
    throw ParseError(fmt::format("confusion: {} classes are more than {}", classes, kMaxClasses));
  metrics::ConfusionMatrix matrix(classes);
  for (const Json& cell : document.at("cells"))
    matrix.add(cell.at(0).get<std::int64_t>(), cell.at(1).get<std::int64_t>(),
               cell.at(2).get<std::int64_t>());
  for (const Json& cell : document.at("undecided"))
    matrix.add_undecided(cell.at(0).get<std::int64_t>(), cell.at(1).get<std::int64_t>());
  return matrix;
}

Json encode_evaluation(const std::optional<Evaluation>& evaluation) {
  if (!evaluation) return nullptr;
  Json values = Json::array();
  for (const auto& [name, value] : evaluation->values) values.push_back({name, number(value)});
  Json document = {
      {"items", evaluation->items}, {"loss", number(evaluation->loss)}, {"values", values}};
  if (evaluation->confusion) document["confusion"] = encode_confusion(*evaluation->confusion);
  return document;
}

std::optional<Evaluation> decode_evaluation(const Json& document) {
  if (document.is_null()) return {};
  Evaluation evaluation;
  evaluation.items = to_count(document, "items");
  evaluation.loss = to_number(document.at("loss"));
  for (const Json& value : document.at("values"))
    evaluation.values.emplace_back(value.at(0).get<std::string>(), to_number(value.at(1)));
  if (document.contains("confusion"))
    evaluation.confusion = decode_confusion(document.at("confusion"));
  return evaluation;
}

Json encode_history(const TrainHistory& history) {
  Json epochs = Json::array();
  for (std::size_t k = 0; k < history.epochs.size(); ++k) {
    const EpochStats& stats = history.epochs[k];
    epochs.push_back({{"epoch", stats.epoch},
                      {"avg_loss", number(stats.avg_loss)},
                      {"steps", stats.steps},
                      {"evaluation", encode_evaluation(history.evaluations[k])}});
  }
  return epochs;
}

TrainHistory decode_history(const Json& document) {
  TrainHistory history;
  for (const Json& epoch : document) {
    history.epochs.push_back(
        {to_count(epoch, "epoch"), to_number(epoch.at("avg_loss")), to_count(epoch, "steps")});
    history.evaluations.push_back(decode_evaluation(epoch.at("evaluation")));
  }
  return history;
}

TrainerState decode(const Json& document) {
  TrainerState state;
  state.epoch = to_count(document, "epoch");
  state.batches = to_count(document, "batches");
  state.epoch_steps = to_count(document, "epoch_steps");
  state.global_steps = to_count(document, "global_steps");
  state.skipped = to_count(document, "skipped");
  state.loss_sum = to_number(document.at("loss_sum"));
  state.labels = to_count(document, "items");
  state.window_loss = to_number(document.at("window_loss"));
  state.window_labels = to_count(document, "window_items");
  state.window_batches = to_count(document, "window_batches");
  state.history = decode_history(document.at("history"));
  if (const Json& plateau = document.at("plateau"); !plateau.is_null())
    state.plateau =
        Plateau::State{to_number(plateau.at("lr")), to_number(plateau.at("best")),
                       to_count(plateau, "bad_reports"), to_count(plateau, "cooldown_left")};
  if (const Json& best = document.at("best"); !best.is_null()) state.best = to_number(best);
  if (const std::int64_t epoch = to_count(document, "best_epoch", kNoEpoch); epoch != kNoEpoch)
    state.best_epoch = epoch;
  state.bad_epochs = to_count(document, "bad_epochs");
  state.stopped_early = document.at("stopped_early").get<bool>();
  return state;
}

}  // namespace

Json encode_state(const TrainerState& state) {
  Json plateau, best;
  if (state.plateau)
    plateau = {{"lr", number(state.plateau->lr)},
               {"best", number(state.plateau->best)},
               {"bad_reports", state.plateau->bad_reports},
               {"cooldown_left", state.plateau->cooldown_left}};
  if (state.best) best = number(*state.best);
  return {{"epoch", state.epoch},
          {"batches", state.batches},
          {"epoch_steps", state.epoch_steps},
          {"global_steps", state.global_steps},
          {"skipped", state.skipped},
          {"loss_sum", number(state.loss_sum)},
          {"items", state.labels},  // the names are those of the file's format
          {"window_loss", number(state.window_loss)},
          {"window_items", state.window_labels},
          {"window_batches", state.window_batches},
          {"history", encode_history(state.history)},
          {"plateau", plateau},
          {"best", best},
          {"best_epoch", state.best_epoch.value_or(kNoEpoch)},
          {"bad_epochs", state.bad_epochs},
          {"stopped_early", state.stopped_early}};
}

TrainerState decode_state(const Json& document, std::string_view where) {
  try {
    return io::extract(where, [&] { return decode(document); });
  } catch (const ParseError& error) {
    if (std::string_view(error.what()).starts_with(where)) throw;
    throw ParseError(fmt::format("{}: {}", where, error.what()));
  } catch (const TypeError& error) { throw ParseError(fmt::format("{}: {}", where, error.what())); }
}

}  // namespace pantala::train
