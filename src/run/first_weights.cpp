#include "run/first_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "io/weights_report.h"
#include "pantala/error.h"
#include "pantala/weights.h"
#include "run/core/patterns.h"

namespace pantala::run {

namespace {

std::vector<std::string> names_of(const Session& session) {
  std::vector<std::string> names = session.parameters();
  const std::vector<std::string> states = session.states();
  names.insert(names.end(), states.begin(), states.end());
  return names;
}

// A pattern that fits nothing is a mistake in writing it.
void check_patterns(const std::string& key, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names, const std::string& where) {
  for (const std::string& pattern : patterns)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return glob_match(pattern, name); }))
      throw TypeError(fmt::format("{}: nothing in {} is called '{}'{}", key, where, pattern,
                                  pattern_hint(pattern, names)));
}

// What is fresh is the model's, not whatever the file has under such a name.
void check_fresh(const Weights& weights, const LoadWeightsOptions& options,
                 const std::vector<std::string>& names) {
  check_patterns("model.fresh", options.skip, names, "the model");
  if (!options.prefixes.empty()) return;
  for (const std::string& given : weights.names())
    if (matches_any(options.skip, given) && !matches_any(options.ignore, given) &&
        std::find(names.begin(), names.end(), given) == names.end())
      throw TypeError(
          fmt::format("{}: '{}' fits model.fresh, but the model has nothing of that "
                      "name{}; model.unused leaves it out",
                      weights.source(), given, did_you_mean(given, names)));
}

// "module.=" takes a prefix away, "=model." puts one in front.
std::vector<std::pair<std::string, std::string>> prefixes(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t sign = text.find('=');
  return {{text.substr(0, sign), text.substr(sign + 1)}};
}

// The layers that have another size are most often the last ones, of a model for other classes.
std::string fresh_hint(const LoadWeightsReport& report, const std::string& fresh) {
  constexpr std::size_t kMost = 4;  // with more it is another model
  std::vector<std::string> layers;
  if (!fresh.empty()) layers.push_back(fresh);
  const std::size_t before = layers.size();
  for (const std::string& line : report.mismatched) {
    const std::string name = line.substr(0, line.find(':'));
    const std::size_t dot = name.find_last_of('.');
    const std::string layer = dot == std::string::npos ? name : name.substr(0, dot) + ".*";
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  if (layers.size() == before || layers.size() > before + kMost) return "";
  return fmt::format("\n--fresh '{}' begins what is of another type with random values",
                     fmt::join(layers, ","));
}

// What fits is loaded, but the session of an error is not used.
void load_all(const Weights& weights, LoadWeightsOptions options, const std::string& fresh,
              Session& session) {
  options.strict = false;
  const LoadWeightsReport report = session.load_weights(weights, options);
  if (!report.fits())
    throw TypeError(fmt::format("{}: does not fit the model:{}{}", weights.source(),
                                io::problems_text(report), fresh_hint(report, fresh)));
}

void load_file(const RunConfig& config, Session& session) {
  const Weights weights = Weights::open(config.model.weights);
  LoadWeightsOptions options;
  options.prefixes = prefixes(config.model.prefix);
  options.skip = comma_parts(config.model.fresh);
  const std::vector<std::string> unused = comma_parts(config.model.unused);
  check_patterns("model.unused", unused, weights.names(), weights.source());
  options.ignore.insert(options.ignore.end(), unused.begin(), unused.end());
  check_fresh(weights, options, names_of(session));
  load_all(weights, options, config.model.fresh, session);
}

// The averages begin where the weights do.
void set_averages(Session& session) {
  const std::vector<std::string> states = session.states();
  for (const std::string& parameter : session.parameters()) {
    const std::string average = "ema." + parameter;
    if (std::find(states.begin(), states.end(), average) != states.end())
      session.set_state(average, session.parameter(parameter));
  }
}

}  // namespace

void load_first_weights(const RunConfig& config, const ModelShape& shape, Session& session) {
  if (!is_from_file(config) && config.model.weights.empty()) return;
  if (is_from_file(config))  // what the learnt output does not need is gone
    session.load_weights(file_model_weights(config, shape), {.strict = false});
  else
    load_file(config, session);
  set_averages(session);
}

}  // namespace pantala::run
