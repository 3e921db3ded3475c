// Models that come from an ONNX file (model.from): the file's graph with labels and a loss, and its
// weights as the first ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/trainer.h"
#include "pantala/weights.h"
#include "tools/train/config.h"
#include "tools/train/model.h"

namespace pantala::tools {

bool is_from_file(const RunConfig& config);

// How items of this shape must be reshaped for the file's input. TypeError if they do not fit.
std::vector<std::int64_t> file_model_item(const RunConfig& config, const Shape& item);
// TypeError if model.loss is not one for this task.
void check_file_model_task(const RunConfig& config, zoo::Task task, const std::string& data);
// Input, "labels", "logits" (or "prediction") and "loss", as zoo::Model has them.
Graph file_model_graph(const RunConfig& config, const ModelShape& shape, std::int64_t batch,
                       Phase phase);
// What the file has for the model's parameters and states, and more.
Weights file_model_weights(const RunConfig& config, const ModelShape& shape);

// The model's name for titles and folders: that of the file or of the zoo.
std::string model_title(const RunConfig& config);

}  // namespace pantala::tools
