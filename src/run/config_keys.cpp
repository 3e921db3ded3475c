// The table of keys.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "device/device.h"
#include "pantala/compile.h"
#include "pantala/error.h"
#include "pantala/metrics.h"
#include "pantala/nn.h"
#include "run/core/key_types.h"
#include "run/models/model.h"
#include "run/sources/source.h"

namespace pantala::run {

namespace {

constexpr std::int64_t kMostWidth = std::int64_t{1} << 20;

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

Key source() {
  const std::string name = "data.source", rule = source_rule();
  return {.name = name,
          .rule = rule,
          .help = source_help(),
          .set =
              [=](RunConfig& config, const ConfigValue& value) {
                const auto* given = std::get_if<std::string>(&value);
                if (!given) refuse(name, rule, value);
                named_source(*given);  // refuses what is none
                config.data.source = *given;
              },
          .get = [](const RunConfig& config) { return config.data.source; }};
}

// Keys of some of the sources.
std::vector<Key> source_keys(bool of_tokens) {
  std::vector<Key> keys;
  for (const Source& source : sources())
    if (source.tokens.has_value() == of_tokens)
      keys.insert(keys.end(), source.keys.begin(), source.keys.end());
  return keys;
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

std::string rate_schedule_names() {
  std::vector<std::string> names = RateSchedule::names();
  names.emplace_back("plateau");
  return one_of(names);
}

// From 0 to a limit that is allowed too.
Key number_to(std::string name, auto field, double most, std::string help) {
  return field_key(std::move(name), field, fmt::format("a number from 0 to {}", exact(most)),
                   std::move(help), Effect::numbers, [=](const Given& given) {
                     const double found = read_number(given, 0, kAny);
                     if (found > most) given.refuse();
                     return found;
                   });
}

// One of the devices, or which of several: vulkan:1.
Key device_key() {
  const std::vector<std::string> names = device::device_names();
  return field_key("device", RUN_FIELD(device), one_of(names),
                   "What computes; vulkan is the first GPU, vulkan:1 one by its number, "
                   "vulkan:radeon by a part of its name; auto the first GPU or, without one, the "
                   "cpu; kir is the slow interpreter of kernels that checks everything",
                   Effect::running, [names](const Given& given) {
                     const auto* named = std::get_if<std::string>(&given.value);
                     return named && device::is_device_name(*named) ? *named
                                                                    : read_choice(given, names);
                   });
}

std::vector<Key> top_keys() {
  return {
      whole("seed", RUN_FIELD(seed), 0, kMany,
            "Of the first weights, the order of the data and all other random numbers"),
      whole("epochs", RUN_FIELD(epochs), 1, kMany, "Passes over the training set", Effect::length),
      whole("max_steps", RUN_FIELD(max_steps), 0, kMany,
            "Stop after this many updates of the weights; 0: no limit", Effect::length),
      whole("batch_size", RUN_FIELD(batch_size), 1, 1048576, "Items a step"),
      whole("accumulate", RUN_FIELD(accumulate), 1, 1048576,
            "Batches whose gradients make one update of the weights"),
      yes_no("accumulate_normalize", RUN_FIELD(accumulate_normalize),
             "An update takes the mean of the gradients over all items; false: their sum"),
      device_key(),
      whole("threads", RUN_FIELD(threads), 0, 1024,
            "Threads that compute; 0: one per CPU. The numbers do not depend on it",
            Effect::running),
      choice("non_finite", RUN_FIELD(non_finite), {"error", "skip", "propagate"},
             "When the loss or a gradient is not finite: stop before the weights change, leave the "
             "step out, or go on"),
      choice("compile.rewrite", RUN_FIELD(compile.rewrite), rewrite_names(),
             "How the compiler looks for something equal that takes less time: not at all, rule by "
             "rule, or with the e-graph"),
      choice("compile.numerics", RUN_FIELD(compile.numerics), numerics_names(),
             "What it may take for equal: the same bits, the same real numbers, or the same where "
             "everything is finite"),
      field_key("compile.memory_limit", RUN_FIELD(compile.memory_limit),
                "a size such as 500M or 2G, or nothing",
                "The most that temporaries and scratch of a step may take: what does not fit is "
                "computed again",
                Effect::running,
                [](const Given& given) {
                  const auto* size = std::get_if<std::string>(&given.value);
                  if (!size || (!size->empty() && byte_size(*size).value_or(0) == 0))
                    given.refuse();
                  return *size;
                }),
      text("compile.cost_table", RUN_FIELD(compile.cost_table), "a text",
           "The file of a cost table by which the compiler chooses (pantala tune writes one); "
           "\"\": the one that the run began with, or the shipped one",
           Effect::running),
      patterns("compile.rules_off", RUN_FIELD(compile.rules_off),
               "Rules that are switched off, by name (docs/rewriting.md lists them)"),
  };
}

std::vector<Key> model_keys() {
  return {
      choice("model.name", RUN_FIELD(model.name), trainable_models(), model_help()),
      text("model.from", RUN_FIELD(model.from), "a text",
           "An ONNX file that is trained further instead of a model of the zoo; \"\": none"),
      choice("model.loss", RUN_FIELD(model.loss), {"auto", "cross_entropy", "mse"},
             "Of model.from: what is learnt from the labels; auto: cross_entropy for classes, mse "
             "for numbers"),
      text("model.weights", RUN_FIELD(model.weights), "a text",
           "Weights to begin with: a safetensors file, an index of several, or a folder with "
           "either; \"\": random ones"),
      prefix(),
      patterns("model.fresh", RUN_FIELD(model.fresh),
               "Of model.weights: what begins with random values all the same, such as a new last "
               "layer: \"fc.*\""),
      patterns("model.unused", RUN_FIELD(model.unused),
               "Of model.weights: what the model has no place for, such as \"model.decoder.*\""),
      patterns("model.freeze", RUN_FIELD(model.freeze),
               "Parameters that stay as they are, by name: \"layer1.*\". They have no gradient and "
               "no state of the optimizer"),
      choice("model.batch_norm", RUN_FIELD(model.batch_norm), {"auto", "frozen", "training"},
             "Which batch norms keep their running statistics and normalise with them in training "
             "too. auto: those whose weight and bias are frozen; frozen: all; training: none"),
      sizes("model.hidden", RUN_FIELD(model.hidden), "Of mlp: the sizes of the layers in between"),
      choice("model.activation", RUN_FIELD(model.activation), nn::activation_names(),
             "Of mlp: the function between the layers"),
      choice("model.task", RUN_FIELD(model.task), {"auto", "classification", "regression"},
             "What is learnt: classes, or (mlp) numbers. auto: classes if the labels are names or "
             "whole numbers, one per item"),
      whole("model.width", RUN_FIELD(model.width), 0, kMostWidth,
            "Of language models: numbers per token between the layers; 0: the model's own"),
      whole("model.layers", RUN_FIELD(model.layers), 0, 4096,
            "Of language models: how many there are; 0: the model's own"),
      whole("model.heads", RUN_FIELD(model.heads), 0, kMostWidth,
            "Of language models: heads of attention, which share the width; 0: as many as have the "
            "size of the model's own"),
      whole("model.kv_heads", RUN_FIELD(model.kv_heads), 0, kMostWidth,
            "Of language models: heads of keys and values, which divide the heads; 0: the most, up "
            "to the model's own"),
      whole("model.feed_forward", RUN_FIELD(model.feed_forward), 0, kMostWidth,
            "Of language models: the width of the feed-forward layers; 0: in the model's own "
            "proportion"),
  };
}

std::vector<Key> item_keys() {
  return {
      source(),
      validation(),
      choice("data.normalize", RUN_FIELD(data.normalize), {"auto", "imagenet", "none"},
             "auto: bytes are scaled to [0, 1], then everything to mean 0 and deviation 1 of the "
             "training set (by channel, or by column; of images that are resized by 512 of them); "
             "the labels of regression too. imagenet: by the numbers that torchvision's models "
             "were trained with"),
      whole("data.resize", RUN_FIELD(data.resize), 0, 4096,
            "Images: resize them to a square of this side or, with data.crop, the shorter side; 0: "
            "leave them alone (images: 256, with data.crop 224, if neither is said)"),
      whole("data.crop", RUN_FIELD(data.crop), 0, 4096,
            "Images: a square window of this side, at random in training, else in the middle; 0: "
            "none"),
      number("data.random_area", RUN_FIELD(data.random_area), 0, 1,
             "Images, in training: a random window of at least this share of the image, brought to "
             "the size that they are to have, instead of resize and crop; 0: no. 0.08 is usual"),
      whole("data.channels", RUN_FIELD(data.channels), 0, 3,
            "Images: 1 makes them gray, 3 gives gray ones three channels; 0: as they are, of files "
            "3"),
      yes_no("data.flip", RUN_FIELD(data.flip),
             "Images: turn half of them over, left to right, in training"),
      whole("data.crop_pad", RUN_FIELD(data.crop_pad), 0, 64,
            "Images: pad by this many pixels and cut a random window of the old size, in training"),
      number_to("data.rotate", RUN_FIELD(data.rotate), 180,
                "Images, in training: turn them by a random angle of up to so many degrees to "
                "either side; what comes from outside is 0"),
      number_to("data.jitter_brightness", RUN_FIELD(data.jitter_brightness), 16,
                "Images, in training: a random factor of the brightness from 1 - x to 1 + x, as in "
                "torchvision's ColorJitter; pixels must be bytes, or f32 from 0 to 1"),
      number_to("data.jitter_contrast", RUN_FIELD(data.jitter_contrast), 16,
                "The same of the contrast"),
      number_to("data.jitter_saturation", RUN_FIELD(data.jitter_saturation), 16,
                "The same of the saturation, of images with 3 channels"),
      number_to("data.jitter_hue", RUN_FIELD(data.jitter_hue), 0.5,
                "A random turn of the hue by up to this share of the circle to either side"),
  };
}

std::vector<Key> loader_keys() {
  return {
      yes_no("data.drop_last", RUN_FIELD(data.drop_last),
             "Leave out the short last batch of an epoch"),
      whole("data.threads", RUN_FIELD(data.threads), 0, 64,
            "Threads that make batches; 0: the training thread does it", Effect::running),
      whole("data.prefetch", RUN_FIELD(data.prefetch), 1, 4096, "Batches that wait at most",
            Effect::running),
  };
}

std::vector<Key> subset_keys() {
  return {
      whole("data.subset", RUN_FIELD(data.subset), 0, kMany,
            "How many items to train with, the first ones; 0: all"),
  };
}

std::vector<Key> rate_keys() {
  return {
      text("optimizer.name", RUN_FIELD(optimizer.name), optimizer_names(),
           "How weights are updated"),
      options("optimizer.*", RUN_FIELD(optimizer.options), "an option of the optimizer",
              "lr and what else the optimizer has, with PyTorch's names and defaults: "
              "weight_decay, betas, momentum, ..."),
      text("schedule.name", RUN_FIELD(rate_schedule.name), rate_schedule_names(),
           "How the learning rate changes"),
      options("schedule.*", RUN_FIELD(rate_schedule.options), "an option of the rate schedule",
              "warmup_steps and what else it has, with PyTorch's names and defaults. "
              "T_max, total_steps and total_iters follow from the length of the run, max_lr of "
              "one_cycle from the optimizer; plateau also takes metric"),
      number("clip.norm", RUN_FIELD(clip.norm), 0, kAny,
             "Limit of the norm of all gradients together; 0: none"),
      number("clip.value", RUN_FIELD(clip.value), 0, kAny, "Limit of each gradient; 0: none"),
      number("ema.decay", RUN_FIELD(ema.decay), 0, 1,
             "Averages of the weights with this decay, which are what is evaluated; 0: none"),
  };
}

// What ParameterGroup has; the first group that fits a parameter counts.
std::vector<Key> group_keys() {
  const auto list = RUN_FIELD(groups);
  return {
      entry_key("groups.N.pattern", list, RUN_FIELD(pattern), "a text that is not empty",
                "[[groups]]: which parameters, by name: \"fc.*\". Of several groups the first one "
                "that fits counts, and model.freeze before all",
                [](const Given& given) {
                  if (given.must_be<std::string>().empty()) given.refuse();
                  return given.must_be<std::string>();
                }),
      entry_key("groups.N.lr_factor", list, RUN_FIELD(lr_factor), number_rule(0, kAny),
                "[[groups]]: their learning rate is the optimizer's times this; 1 if not given",
                [](const Given& given) { return read_number(given, 0, kAny); }),
      entry_key("groups.N.weight_decay", list, RUN_FIELD(weight_decay), number_rule(0, kAny),
                "[[groups]]: their weight_decay instead of the optimizer's",
                [](const Given& given) { return read_number(given, 0, kAny); }),
      entry_key("groups.N.frozen", list, RUN_FIELD(frozen), "true or false",
                "[[groups]]: true: as model.freeze",
                [](const Given& given) { return given.must_be<bool>(); }),
  };
}

std::vector<Key> end_keys() {
  return {
      whole("early_stopping.patience", RUN_FIELD(early_stopping.patience), 0, kMany,
            "Epochs without improvement that are allowed; 0: no early stopping"),
      choice("early_stopping.metric", RUN_FIELD(early_stopping.metric), metrics::names(),
             "Of the validation"),
      number("early_stopping.min_delta", RUN_FIELD(early_stopping.min_delta), 0, kAny,
             "An improvement is larger than this"),
      yes_no("early_stopping.restore_best", RUN_FIELD(early_stopping.restore_best),
             "End with the weights of the best epoch"),
      whole("checkpoint.every_steps", RUN_FIELD(checkpoint.every_steps), 0, kMany,
            "Save after this many updates; 0: not by updates", Effect::running),
      whole("checkpoint.every_epochs", RUN_FIELD(checkpoint.every_epochs), 0, kMany,
            "Save after this many epochs; 0: not by epochs. The end is always saved",
            Effect::running),
      whole("checkpoint.keep", RUN_FIELD(checkpoint.keep), 1, 1048576,
            "Newest checkpoints that are kept, beside the best one", Effect::running),
      choice("checkpoint.metric", RUN_FIELD(checkpoint.metric), metrics::names(),
             "Of the validation, that says which checkpoint is the best; with early stopping "
             "early_stopping.metric says it",
             Effect::running),
      whole("distributed.shards", RUN_FIELD(distributed.shards), 0, 65536,
            "Parts that a batch is cut into; the bits of a run depend on it and not on the number "
            "of ranks. 0: as the run began, or one for each rank"),
      yes_no("distributed.shard_optimizer", RUN_FIELD(distributed.shard_optimizer),
             "Each state of the optimizer is kept on one rank only; of the same bits",
             Effect::running),
      yes_no(
          "distributed.overlap", RUN_FIELD(distributed.overlap),
          "Gradients travel between ranks on several machines while the backward pass still runs; "
          "of the same bits",
          Effect::running),
      whole("distributed.check_every", RUN_FIELD(distributed.check_every), 0, kMany,
            "Updates between two comparisons of the weights of all ranks; 0: none",
            Effect::running),
      number("distributed.timeout", RUN_FIELD(distributed.timeout), 1, 3600,
             "Seconds after which a rank that is not heard of is lost", Effect::running),
      text("output.folder", RUN_FIELD(output.folder), "a text",
           "The run folder; \"\": runs/MODEL-DATA", Effect::running),
      choice("output.progress", RUN_FIELD(output.progress), {"auto", "plain", "json", "none"},
             "Progress on stderr; auto: a live line on a terminal, plain lines elsewhere",
             Effect::running),
      whole_or_auto("output.log_interval", RUN_FIELD(output.log_interval), 1,
                    "Updates between two lines of metrics.jsonl and metrics.csv; auto: each of the "
                    "first 100, then fewer and fewer, every 100th from the 5000th on",
                    Effect::running),
      yes_no("output.gradient_norm", RUN_FIELD(output.gradient_norm),
             "Show and log the norm of all gradients, which keeps them until it is known; with "
             "clip.norm it is there in any case",
             Effect::running),
      yes_no("output.tensorboard", RUN_FIELD(output.tensorboard), "Write TensorBoard event files",
             Effect::running),
      yes_no("output.plots", RUN_FIELD(output.plots),
             "Draw plots of the loss and of accuracy or r2", Effect::running),
  };
}

}  // namespace

std::string Key::section() const {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

ConfigValue Key::default_value() const { return get(RunConfig{}); }

const std::vector<Key>& config_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = top_keys();
    for (std::vector<Key> more :
         {model_keys(), item_keys(), source_keys(true), loader_keys(), source_keys(false),
          subset_keys(), rate_keys(), group_keys(), end_keys()})
      std::move(more.begin(), more.end(), std::back_inserter(all));
    return all;
  }();
  return keys;
}

const std::vector<KeyFlag>& key_flags() {
  static const std::vector<KeyFlag> flags = {
      {"--model", "model.name", "The model, such as lenet, mlp or resnet18"},
      {"--from", "model.from", "An ONNX file to train further instead"},
      {"--loss", "model.loss", "Of --from: cross_entropy or mse"},
      {"--weights", "model.weights", "Safetensors to begin with: a file or a folder"},
      {"--fresh", "model.fresh", "Of --weights: what begins anew, such as \"fc.*\"", true},
      {"--freeze", "model.freeze", "What is not trained, such as \"layer1.*\"", true},
      {"--data", "data.source", source_rule()},
      {"--labels", "data.label", "Of csv: the column of the label, by name or number"},
      {"--epochs", "epochs", "Passes over the training set"},
      {"--max-steps", "max_steps", "Stop after so many updates; 0: no limit"},
      {"--batch-size", "batch_size", "Items a step"},
      {"--lr", "optimizer.lr", "The learning rate; the optimizer's own if not given"},
      {"--optimizer", "optimizer.name", "sgd, adam, adamw, ... (train --keys lists them)"},
      {"--schedule", "schedule.name", "constant, cosine, ... (train --keys lists them)"},
      {"--accumulate", "accumulate", "Batches whose gradients make one update"},
      {"--clip", "clip.norm", "Limit of the norm of all gradients; 0: none"},
      {"--ema", "ema.decay", "Averages of the weights with this decay; 0: none"},
      {"--seed", "seed", "Of all random numbers"},
      {"--threads", "threads", "Threads that compute; 0: one per CPU"},
      {"--device", "device", "What computes"},
      {"--rewrite", "compile.rewrite", "Rewriting of the graph: none, greedy or egraph"},
      {"--numerics", "compile.numerics", "What counts as equal: strict, relaxed or fast"},
      {"--cost-table", "compile.cost_table", "A cost table, as pantala tune writes it"},
      {"--memory-limit", "compile.memory_limit",
       "The most that temporaries of a step may take, such as 500M"},
      {"--out", "output.folder", "The run folder; not given: runs/MODEL-DATA"},
      {"--progress", "output.progress", "Progress on stderr: auto, plain, json or none"},
  };
  return flags;
}

}  // namespace pantala::run
