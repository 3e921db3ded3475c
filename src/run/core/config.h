// The one table of the keys of a config (RunConfig, pantala/run.h). Reading TOML, --set and flags,
// writing the resolved config, help and the reference in docs/training.md all go through that
// table. Values come from the defaults, a file, --set and flags; the later ones win, and each keeps
// where it was given, for messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pantala/metrics.h"
#include "pantala/optim.h"
#include "pantala/rate_schedule.h"
#include "pantala/run.h"
#include "pantala/zoo.h"

namespace pantala::run {

// A value as TOML has it.
using ConfigValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>,
                                 std::vector<std::string>>;
std::string value_text(const ConfigValue& value);  // as TOML
bool is_utf8(const std::string& text);             // what TOML and JSON can hold

// What a key changes. A run can be continued with other values of all but `numbers`; another
// `length` is only the same run if no rate schedule is stretched over the whole of it.
enum class Effect : std::uint8_t { numbers, length, running };

struct Key {
  // "data.source"; "optimizer.*": the options of what `optimizer.name` names; "groups.N.pattern":
  // of each entry of a list of tables, [[groups]].
  std::string name;
  std::string rule;  // what a value must be: "a whole number from 1"
  std::string help;
  Effect effect = Effect::numbers;
  // For one key. TypeError, starting with the key's name, for a value of another kind or out of
  // range.
  std::function<void(RunConfig&, const ConfigValue&)> set = {};
  std::function<ConfigValue(const RunConfig&)> get = {};
  // For "section.*".
  std::function<NamedOptions&(RunConfig&)> options = {};
  // For "section.N.name".
  struct Entries {
    std::function<std::size_t(const RunConfig&)> count;
    // Of the entry of this number, the next one included, which is made. TypeError as `set`.
    std::function<void(RunConfig&, std::size_t entry, const ConfigValue&)> set;
    std::function<std::optional<ConfigValue>(const RunConfig&, std::size_t entry)> get;
  };
  std::optional<Entries> entries = {};

  bool open() const { return static_cast<bool>(options); }
  bool single() const { return !open() && !entries; }  // one key with one value
  std::string section() const;                         // "" for keys at the top
  ConfigValue default_value() const;                   // of single ones
};
const std::vector<Key>& config_keys();

// The flags that stand for a key each, for people who do not want to write --set.
struct KeyFlag {
  std::string flag, key;
  std::string help = {};    // in few words; "": that of the key
  bool repeatable = false;  // what is given again is added, with a comma between
};
const std::vector<KeyFlag>& key_flags();

// One value that somebody gave.
struct Assignment {
  std::string key;
  ConfigValue value;
  std::string where;  // "run.toml:3:1", "--set", "--epochs"
};

// The parts of a key: section, number of the entry ("groups.0.pattern"), name.
struct KeyParts {
  std::string section;
  std::optional<std::size_t> entry;
  std::string name;
};
KeyParts key_parts(std::string_view key);

// All values of a TOML text; `file` is its name in messages. ParseError with line and column.
// Only syntax is checked: what the keys mean is assign()'s business.
std::vector<Assignment> read_toml(std::string_view text, std::string_view file);
std::vector<Assignment> read_toml_file(const std::filesystem::path& path);
// "a.b=c": what stands behind '=' is read as the key's kind wants it.
Assignment parse_set(std::string_view text);
Assignment parse_flag(const KeyFlag& flag, std::string_view text);

// The config that follows from the values, in their order, checked and complete: the optimizer's
// options all have values, the folder has a name. TypeError that starts with where the value was
// given, names what was wrong and the nearest name.
RunConfig make_config(const std::vector<Assignment>& assignments);

// A config that a program has filled in, checked and completed in the same way.
RunConfig completed(const RunConfig& config);

// All keys, in the order of the table; reads back to an equal config.
std::string write_toml(const RunConfig& config);
std::vector<Assignment> values_of(const RunConfig& config);

// Keys that differ in a way that makes it another run, one line each: "optimizer.lr: 0.001 there,
// 0.01 here".
std::vector<std::string> differences(const RunConfig& there, const RunConfig& here);

// Whether a run is the same one with any value of this key.
bool changes_nothing(std::string_view key);

// --- what the config means
optim::Optimizer optimizer_of(const RunConfig& config);
// How the rate changes over a run of `total_steps` optimizer steps.
struct RateRule {
  RateSchedule rate_schedule;
  std::optional<PlateauOptions> plateau;
  std::string plateau_metric = "loss";
};
RateRule rate_of(const RunConfig& config, std::int64_t total_steps);
// Whether an option of the rate schedule follows from the length of the run.
bool rate_schedule_spans_run(const RunConfig& config);
std::string_view task_name(zoo::Task task);  // as model.task has it
// TypeError naming the first key whose metric is not measured of such labels, of so many classes;
// `data` is the name of the data, for the message.
void check_metrics(const RunConfig& config, metrics::Kind kind, std::int64_t classes,
                   const std::string& data);

// The table as the reference in docs/training.md has it.
std::string config_reference();

}  // namespace pantala::run
