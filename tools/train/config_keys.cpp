// The table of keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "pantala/error.h"
#include "tools/train/config.h"
#include "tools/train/model.h"
#include "tools/train/source.h"

namespace pantala::tools {

namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 53;  // a double holds all of them exactly
constexpr double kAny = std::numeric_limits<double>::infinity();

// Beside the loss, what is measured of each task.
const std::vector<std::string> kClassMetrics = {"accuracy", "top5", "precision", "recall", "f1"};
const std::vector<std::string> kNumberMetrics = {"mae", "rmse", "r2"};

std::vector<std::string> with_loss(const std::vector<std::string>& metrics) {
  std::vector<std::string> names = {"loss"};
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

[[noreturn]] void refuse(const std::string& name, const std::string& rule, const ConfigValue& got,
                         const std::string& hint = "") {
  throw TypeError(fmt::format("{} must be {}, got {}{}", name, rule, value_text(got), hint));
}

// "lenet or mlp", "a, b or c"
std::string one_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// A value that was given for a key, and how to refuse it.
struct Given {
  const std::string& name;
  const std::string& rule;
  const ConfigValue& value;
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  template <class T>
  const T& must_be() const {
    if (const T* found = as<T>()) return *found;
    refuse();
  }
  [[noreturn]] void refuse(const std::string& hint = "") const {
    tools::refuse(name, rule, value, hint);
  }
};

// The key of a field; `read` makes the field's value from a Given, or refuses it.
Key field_key(std::string name, auto field, std::string rule, std::string help, Effect effect,
              auto read) {
  return {.name = name,
          .rule = rule,
          .help = std::move(help),
          .effect = effect,
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                field(config) = read(Given{name, rule, value});
              },
          .get = [=](const RunConfig& config) { return field(config); }};
}

Key whole(std::string name, auto field, std::int64_t low, std::int64_t high, std::string help,
          Effect effect = Effect::numbers) {
  const std::string range = fmt::format("a whole number from {} to {}", low, high);
  // A limit that hardly anybody meets is only named to those who do.
  std::string rule = high == kMany ? fmt::format("a whole number from {}", low) : range;
  return field_key(std::move(name), field, std::move(rule), std::move(help), effect,
                   [=](const Given& given) {
                     const auto* real = given.as<double>();  // 1e6 is a whole number too
                     const bool in_range = real && std::abs(*real) <= static_cast<double>(kMany);
                     const bool integral = in_range && *real == std::floor(*real);
                     const std::int64_t converted = integral ? static_cast<std::int64_t>(*real) : 0;
                     const auto* number = integral ? &converted : given.as<std::int64_t>();
                     if (number && *number > high) refuse(given.name, range, given.value);
                     if (!number || *number < low) given.refuse();
                     return *number;
                   });
}

Key number(std::string name, auto field, double low, double high, std::string help,
           Effect effect = Effect::numbers) {
  std::string rule = high == kAny
                         ? fmt::format("a number from {}", exact(low))
                         : fmt::format("a number from {} to below {}", exact(low), exact(high));
  return field_key(
      std::move(name), field, std::move(rule), std::move(help), effect, [=](const Given& given) {
        const auto* integer = given.as<std::int64_t>();
        const double found = integer ? static_cast<double>(*integer) : given.must_be<double>();
        if (!(found >= low && found < high)) given.refuse();
        return found;
      });
}

Key choice(std::string name, auto field, std::vector<std::string> choices, std::string help,
           Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, one_of(choices), std::move(help), effect,
                   [=](const Given& given) {
                     const auto& chosen = given.must_be<std::string>();
                     if (std::find(choices.begin(), choices.end(), chosen) == choices.end())
                       given.refuse(did_you_mean(chosen, choices));
                     return chosen;
                   });
}

Key text(std::string name, auto field, std::string rule, std::string help,
         Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, std::move(rule), std::move(help), effect,
                   [](const Given& given) { return given.must_be<std::string>(); });
}

// A name, or a number that is kept as text.
Key name_or_number(std::string name, auto field, std::string help) {
  Key key = text(name, field, "a text or a whole number", std::move(help));
  key.set = [field, set = key.set](RunConfig& config, const ConfigValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      field(config) = std::to_string(*number);
    else
      set(config, value);
  };
  return key;
}

Key yes_no(std::string name, auto field, std::string help, Effect effect = Effect::numbers) {
  return field_key(std::move(name), field, "true or false", std::move(help), effect,
                   [](const Given& given) { return given.must_be<bool>(); });
}

Key sizes(std::string name, auto field, std::string help) {
  return field_key(std::move(name), field, "a list of at most 64 whole numbers from 1 to 1048576",
                   std::move(help), Effect::numbers, [](const Given& given) {
                     const auto fits = [](double size) {
                       return size >= 1 && size <= 1048576 && size == std::floor(size);
                     };
                     const auto& list = given.must_be<std::vector<double>>();
                     if (list.size() > 64 || !std::all_of(list.begin(), list.end(), fits))
                       given.refuse();
                     return list;
                   });
}

Key options(std::string name, auto field, std::string rule, std::string help) {
  return {.name = std::move(name),
          .rule = std::move(rule),
          .help = std::move(help),
          .options = [=](RunConfig& config) -> NamedOptions& { return field(config); }};
}

Key validation() {
  const std::string name = "data.validation";
  const std::string rule = "auto, test, none or a share above 0 and below 1";
  return {.name = name,
          .rule = rule,
          .help =
              "What is evaluated after every epoch: the test set, a share of the training set "
              "that is kept back, or nothing. auto: the test set if the data have one, else "
              "0.1",
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                const std::vector<std::string> words = {"auto", "test", "none"};
                if (const auto* share = std::get_if<double>(&value);
                    share && *share > 0 && *share < 1) {
                  config.data.validation = *share;
                  return;
                }
                const auto* word = std::get_if<std::string>(&value);
                if (!word) refuse(name, rule, value);
                if (std::find(words.begin(), words.end(), *word) == words.end())
                  refuse(name, rule, value, did_you_mean(*word, words));
                config.data.validation = *word;
              },
          .get =
              [](const RunConfig& config) {
                return std::visit([](const auto& held) { return ConfigValue(held); },
                                  config.data.validation);
              }};
}

// What stands before the colon of data.source.
const std::vector<std::string> kSourceKinds = {"idx", "csv", "npz", "images", "tokens", "text"};

Key source() {
  const std::string name = "data.source";
  const std::string rule =
      "fashion-mnist, idx:DIR, csv:FILE, npz:FILE, images:DIR, tokens:FILE or text:FILE";
  return {.name = name,
          .rule = rule,
          .help =
              "The data set. idx: the four files of the MNIST family. csv: a row per item. "
              "npz: arrays x and y, or x_train, y_train, x_test and y_test. images: PNG and JPEG "
              "files, a folder per class, or these in train and val. tokens: numbers one after the "
              "other (data.token_type). text: any file, byte by byte",
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                const auto* given = std::get_if<std::string>(&value);
                if (!given) refuse(name, rule, value);
                const std::size_t colon = given->find(':');
                const std::string kind = given->substr(0, colon);
                for (const char* type : {"csv", "npz"})
                  if (colon == std::string::npos && given->ends_with(fmt::format(".{}", type)))
                    refuse(name, rule, value, fmt::format("; did you mean '{}:{}'?", type, *given));
                const bool known =
                    std::find(kSourceKinds.begin(), kSourceKinds.end(), kind) != kSourceKinds.end();
                if (colon == std::string::npos ? kind != "fashion-mnist" : !known) {
                  std::vector<std::string> all = kSourceKinds;
                  all.insert(all.begin(), "fashion-mnist");
                  refuse(name, rule, value, did_you_mean(kind, all));
                }
                if (colon != std::string::npos && colon + 1 == given->size())
                  refuse(name, rule, value);
                config.data.source = *given;
              },
          .get = [](const RunConfig& config) { return config.data.source; }};
}

Key prefix() {
  const std::string name = "model.prefix", rule = "a text OLD=NEW";
  return {.name = name,
          .rule = rule,
          .help =
              "Of model.weights: names that begin with OLD begin with NEW in the model; "
              "\"module.=\" takes a prefix away, \"=model.\" puts one in front",
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                const auto* given = std::get_if<std::string>(&value);
                if (!given || (!given->empty() && given->find('=') == std::string::npos))
                  refuse(name, rule, value);
                config.model.prefix = *given;
              },
          .get = [](const RunConfig& config) { return config.model.prefix; }};
}

std::string optimizer_names() {
  std::vector<std::string> names;
  for (const optim::OptimizerDescription& one : optim::descriptions()) names.push_back(one.name);
  return one_of(names);
}

// NOLINTNEXTLINE: a member of the config, as a function of a const or a mutable one.
#define FIELD(member) \
  [](auto& config) -> auto& { return config.member; }

std::vector<Key> top_keys() {
  return {
      whole("seed", FIELD(seed), 0, kMany,
            "Of the first weights, the order of the data and all other random numbers"),
      whole("epochs", FIELD(epochs), 1, kMany, "Passes over the training set", Effect::length),
      whole("max_steps", FIELD(max_steps), 0, kMany,
            "Stop after so many updates of the weights; 0: no limit", Effect::length),
      whole("batch_size", FIELD(batch_size), 1, 1048576, "Items a step"),
      whole("accumulate", FIELD(accumulate), 1, 1048576,
            "Batches whose gradients make one update of the weights"),
      choice("device", FIELD(device), {"cpu", "kir"},
             "What computes; kir is the slow interpreter of kernels that checks everything",
             Effect::running),
      whole("threads", FIELD(threads), 0, 1024,
            "Threads that compute; 0: one per CPU. The numbers do not depend on it",
            Effect::running),
      choice("non_finite", FIELD(non_finite), {"error", "skip", "propagate"},
             "When the loss or a gradient is not finite: stop before the weights change, leave the "
             "step out, or go on"),
  };
}

std::vector<Key> model_keys() {
  return {
      choice("model.name", FIELD(model.name), trainable_models(),
             "mlp takes anything but tokens. For images: lenet is two convolutions and two linear "
             "layers, resnet18 and resnet50 are torchvision's (_folded: without batch norm). For "
             "spectrograms [mels, frames] with a class for every other frame: whisper, the encoder "
             "of Hugging Face's. For tokens: llama-bytes is a small language model, smollm2 is "
             "Hugging Face's"),
      text("model.from", FIELD(model.from), "a text",
           "An ONNX file that is trained further instead of a model of the zoo; \"\": none"),
      choice("model.loss", FIELD(model.loss), {"auto", "cross_entropy", "mse"},
             "Of model.from: what is learnt from the labels; auto: cross_entropy for classes, mse "
             "for numbers"),
      text("model.weights", FIELD(model.weights), "a text",
           "Weights to begin with: a safetensors file, an index of several, or a folder with "
           "either; \"\": random ones"),
      prefix(),
      text("model.fresh", FIELD(model.fresh), "a text",
           "Of model.weights: what begins with random values all the same, such as a new last "
           "layer: \"fc.*\"; several with commas between"),
      text("model.unused", FIELD(model.unused), "a text",
           "Of model.weights: what the model has no place for, such as \"model.decoder.*\""),
      sizes("model.hidden", FIELD(model.hidden), "Of mlp: the sizes of the layers in between"),
      choice("model.activation", FIELD(model.activation), activation_names(),
             "Of mlp: the function between the layers"),
      choice("model.task", FIELD(model.task), {"auto", "classification", "regression"},
             "What is learnt: classes, or (mlp) numbers. auto: classes if the labels are names or "
             "whole numbers, one per item"),
  };
}

std::vector<Key> data_keys() {
  return {
      source(),
      validation(),
      choice("data.normalize", FIELD(data.normalize), {"auto", "imagenet", "none"},
             "auto: bytes are scaled to [0, 1], then everything to mean 0 and deviation 1 of the "
             "training set (by channel, or by column; of images that are resized by 512 of them); "
             "the labels of regression too. imagenet: by the numbers that torchvision's models "
             "were trained with"),
      whole("data.resize", FIELD(data.resize), 0, 4096,
            "Images: resize them to a square of this side or, with data.crop, the shorter side; 0: "
            "leave them alone (images: 256, with data.crop 224, if neither is said)"),
      whole("data.crop", FIELD(data.crop), 0, 4096,
            "Images: a square window of this side, at random in training, else in the middle; 0: "
            "none"),
      number("data.random_area", FIELD(data.random_area), 0, 1,
             "Images, in training: a random window of at least this share of the image, brought to "
             "the size that they are to have, instead of resize and crop; 0: no. 0.08 is usual"),
      whole("data.channels", FIELD(data.channels), 0, 3,
            "Images: 1 makes them gray, 3 gives gray ones three channels; 0: as they are, of files "
            "3"),
      yes_no("data.flip", FIELD(data.flip),
             "Images: turn half of them over, left to right, in training"),
      whole("data.crop_pad", FIELD(data.crop_pad), 0, 64,
            "Images: pad by so many pixels and cut a random window of the old size, in training"),
      whole("data.sequence", FIELD(data.sequence), 1, 1048576, "Of tokens: so many are an item"),
      whole("data.stride", FIELD(data.stride), 0, 1048576,
            "Of tokens: from the beginning of an item to that of the next; 0: data.sequence"),
      choice("data.token_type", FIELD(data.token_type), {"u8", "u16", "i32"},
             "Of tokens: the numbers in the file, the lowest byte first"),
      whole("data.vocabulary", FIELD(data.vocabulary), 0, DataProfile::kMaxClasses,
            "Of tokens: they lie below this; 0: the model's own vocabulary, of text 256"),
      yes_no("data.drop_last", FIELD(data.drop_last), "Leave out the short last batch of an epoch"),
      whole("data.threads", FIELD(data.threads), 0, 64,
            "Threads that make batches; 0: the training thread does it", Effect::running),
      whole("data.prefetch", FIELD(data.prefetch), 1, 4096, "Batches that wait at most",
            Effect::running),
      name_or_number(
          "data.label", FIELD(data.label),
          "Of csv: the column of the label, by name or by number from 0; \"\": the last one"),
      whole("data.subset", FIELD(data.subset), 0, kMany,
            "Train with the first so many items only; 0: all"),
  };
}

std::vector<Key> rate_keys() {
  return {
      text("optimizer.name", FIELD(optimizer.name), optimizer_names(), "How weights are updated"),
      options("optimizer.*", FIELD(optimizer.options), "an option of the optimizer",
              "lr and what else the optimizer has, with PyTorch's names and defaults: "
              "weight_decay, betas, momentum, ..."),
      text("schedule.name", FIELD(schedule.name),
           "constant, step, multistep, exponential, cosine, cosine_restarts, linear, polynomial, "
           "one_cycle, cyclic or plateau",
           "How the learning rate changes"),
      options("schedule.*", FIELD(schedule.options), "an option of the schedule",
              "warmup_steps and what else the schedule has, with PyTorch's names and defaults. "
              "T_max, total_steps and total_iters follow from the length of the run, max_lr of "
              "one_cycle from the optimizer; plateau also takes metric"),
      number("clip.norm", FIELD(clip.norm), 0, kAny,
             "Limit of the norm of all gradients together; 0: none"),
      number("clip.value", FIELD(clip.value), 0, kAny, "Limit of each gradient; 0: none"),
      number("ema.decay", FIELD(ema.decay), 0, 1,
             "Averages of the weights with this decay, which are what is evaluated; 0: none"),
  };
}

std::vector<Key> end_keys() {
  return {
      whole("early_stopping.patience", FIELD(early_stopping.patience), 0, kMany,
            "Epochs without improvement that are allowed; 0: no early stopping"),
      choice("early_stopping.metric", FIELD(early_stopping.metric), metric_names(),
             "Of the validation"),
      number("early_stopping.min_delta", FIELD(early_stopping.min_delta), 0, kAny,
             "An improvement is larger than this"),
      yes_no("early_stopping.restore_best", FIELD(early_stopping.restore_best),
             "End with the weights of the best epoch"),
      whole("checkpoint.every_steps", FIELD(checkpoint.every_steps), 0, kMany,
            "Save after so many updates; 0: not by updates", Effect::running),
      whole("checkpoint.every_epochs", FIELD(checkpoint.every_epochs), 0, kMany,
            "Save after so many epochs; 0: not by epochs. The end is always saved",
            Effect::running),
      whole("checkpoint.keep", FIELD(checkpoint.keep), 1, 1048576,
            "Newest checkpoints that are kept, beside the best one", Effect::running),
      choice("checkpoint.metric", FIELD(checkpoint.metric), metric_names(),
             "Of the validation, that says which checkpoint is the best", Effect::running),
      text("output.folder", FIELD(output.folder), "a text", "The run folder; \"\": runs/MODEL-DATA",
           Effect::running),
      choice("output.progress", FIELD(output.progress), {"auto", "plain", "json", "none"},
             "Progress on stderr; auto: a live line on a terminal, plain lines elsewhere",
             Effect::running),
      whole("output.log_interval", FIELD(output.log_interval), 1, kMany,
            "Updates between two lines of metrics.jsonl, metrics.csv and plain progress",
            Effect::running),
      yes_no("output.tensorboard", FIELD(output.tensorboard), "Write TensorBoard event files",
             Effect::running),
      yes_no("output.plots", FIELD(output.plots), "Draw plots of the loss and of accuracy or r2",
             Effect::running),
  };
}
#undef FIELD

}  // namespace

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = with_loss(kClassMetrics);
    all.insert(all.end(), kNumberMetrics.begin(), kNumberMetrics.end());
    return all;
  }();
  return names;
}

std::string_view task_name(zoo::Task task) {
  return task == zoo::Task::regression ? "regression" : "classification";
}

bool larger_is_better(std::string_view metric) {
  return metric != "loss" && metric != "mae" && metric != "rmse";
}

void check_metrics(const RunConfig& config, zoo::Task task, std::int64_t classes,
                   const std::string& data) {
  const bool numbers = task == zoo::Task::regression;
  const std::vector<std::string>& foreign = numbers ? kClassMetrics : kNumberMetrics;
  const auto check = [&](const char* key, const std::string& metric) {
    if (metric == "top5" && !numbers && classes <= 5)
      throw TypeError(
          fmt::format("{} is \"top5\", but {} has {} classes: the right one is always "
                      "among five; take accuracy",
                      key, data, classes));
    if (std::find(foreign.begin(), foreign.end(), metric) == foreign.end()) return;
    throw TypeError(fmt::format("{} is {}, which is of {}, but the labels of {} are {}; take {}",
                                key, value_text(metric), numbers ? "classes" : "numbers", data,
                                numbers ? "numbers" : "classes",
                                one_of(with_loss(numbers ? kNumberMetrics : kClassMetrics))));
  };
  check("early_stopping.metric", config.early_stopping.metric);
  check("checkpoint.metric", config.checkpoint.metric);
  if (config.schedule.name == "plateau")
    check("schedule.metric", rate_of(config, 1).plateau_metric);
}

std::string Key::section() const {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

ConfigValue Key::default_value() const { return get(RunConfig{}); }

const std::vector<Key>& config_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = top_keys();
    for (std::vector<Key> more : {model_keys(), data_keys(), rate_keys(), end_keys()})
      std::move(more.begin(), more.end(), std::back_inserter(all));
    return all;
  }();
  return keys;
}

const std::vector<KeyFlag>& key_flags() {
  static const std::vector<KeyFlag> flags = {
      {"--model", "model.name"},
      {"--from", "model.from"},
      {"--loss", "model.loss"},
      {"--weights", "model.weights"},
      {"--fresh", "model.fresh"},
      {"--data", "data.source"},
      {"--labels", "data.label"},
      {"--epochs", "epochs"},
      {"--max-steps", "max_steps"},
      {"--batch-size", "batch_size"},
      {"--lr", "optimizer.lr"},
      {"--optimizer", "optimizer.name"},
      {"--schedule", "schedule.name"},
      {"--accumulate", "accumulate"},
      {"--clip", "clip.norm"},
      {"--ema", "ema.decay"},
      {"--seed", "seed"},
      {"--threads", "threads"},
      {"--device", "device"},
      {"--out", "output.folder"},
      {"--progress", "output.progress"},
  };
  return flags;
}

}  // namespace pantala::tools
