// The data of language models: windows of a file of tokens.
#pragma once

#include <cstdint>

#include "run/run_data.h"
#include "run/sources/source.h"

namespace pantala::run {

// `vocabulary`: of a trained model; 0: as the config, the source or the model says.
data::TokenOptions token_options(const TokenForm& form, const RunConfig& config,
                                 std::int64_t vocabulary);
// Training set, validation and facts, without the hash. The source is one of tokens.
RunData open_token_data(const RunConfig& config, const NamedSource& named);

}  // namespace pantala::run
