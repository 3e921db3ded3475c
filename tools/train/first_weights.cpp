#include "tools/train/first_weights.h"

#include <algorithm>
#include <sstream>

#include "pantala/weights.h"
#include "tools/train/onnx_model.h"

namespace pantala::tools {

namespace {

// "fc.*, layer4.*" in its parts.
std::vector<std::string> patterns(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (!word.empty()) list.push_back(word);
  }
  return list;
}

LoadWeightsOptions options_of(const RunConfig& config) {
  LoadWeightsOptions options;
  if (is_from_file(config)) {
    options.strict = false;  // what the learnt output does not need is gone
    return options;
  }
  options.skip = patterns(config.model.fresh);
  for (const std::string& pattern : patterns(config.model.unused))
    options.ignore.push_back(pattern);
  return options;
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
  const Weights weights = is_from_file(config) ? file_model_weights(config, shape)
                                               : Weights::open(config.model.weights);
  session.load_weights(weights, options_of(config));
  set_averages(session);
}

}  // namespace pantala::tools
