#include "run/run_graph.h"

#include "run/core/data_facts.h"
#include "run/models/model.h"
#include "run/run_data.h"
#include "run/setup.h"

namespace pantala::run {

RunGraph graph_of_run(const RunFolder& folder, Phase phase, std::optional<std::int64_t> batch) {
  const RunConfig config = folder.config();
  const ModelFactory make =
      model_factory(config, model_shape(config, read_facts(folder.data_file())));
  TrainableGraph model = make(batch.value_or(config.batch_size), phase);
  RunGraph result{.graph = {}, .loss = {}, .options = compile_options(config, phase)};
  if (phase == Phase::training) {
    result.graph = std::move(model.graph);
    result.loss = model.loss;
  } else {
    result.graph = std::move(model.graph).without_updates();
  }
  std::error_code unknown;
  if (std::filesystem::exists(folder.model_file(), unknown))
    result.weights = Weights::open(folder.model_file());
  return result;
}

}  // namespace pantala::run
