// The weights that a run begins with where they are not random: of its ONNX file (model.from) or of
// safetensors files (model.weights).
#pragma once

#include "pantala/session.h"
#include "run/core/config.h"
#include "run/models/model.h"

namespace pantala::run {

// Into a new session, its averages included. TypeError that lists all that does not fit.
void load_first_weights(const RunConfig& config, const ModelShape& shape, Session& session);

}  // namespace pantala::run
