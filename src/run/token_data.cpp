#include "run/token_data.h"

#include <fmt/format.h>

#include "pantala/error.h"

namespace pantala::run {

data::TokenOptions token_options(const TokenForm& form, const RunConfig& config,
                                 std::int64_t vocabulary) {
  if (vocabulary == 0) vocabulary = config.data.vocabulary;
  if (vocabulary == 0) vocabulary = form.vocabulary;
  const ModelRow& model = model_of(config);
  if (vocabulary == 0) vocabulary = model.vocabulary;
  if (vocabulary == 0 && model.token_count) vocabulary = model.token_count(config);
  const std::string& type = config.data.token_type;
  const data::TokenType of_config = type == "u8"    ? data::TokenType::u8
                                    : type == "u16" ? data::TokenType::u16
                                                    : data::TokenType::i32;
  return {.sequence = config.data.sequence,
          .stride = config.data.stride,
          .type = form.type.value_or(of_config),
          .vocabulary = vocabulary};
}

// The validation is kept back at the end of the file: windows that overlap would tell it.
RunData open_token_data(const RunConfig& config, const NamedSource& named) {
  const data::TokenOptions options = token_options(*named.source.tokens, config, 0);
  const auto* word = std::get_if<std::string>(&config.data.validation);
  if (word && *word == "test")
    throw TypeError(
        fmt::format("{} has no test set; data.validation can be a share of its tokens "
                    "such as 0.1, or none",
                    config.data.source));
  check_metrics(config, named.source.tokens->bytes ? metrics::Kind::bytes : metrics::Kind::tokens,
                options.vocabulary, config.data.source);
  RunData result;
  if (word && *word == "none") {
    result.train = data::read_tokens(named.path, options);
  } else {
    data::TrainTest sets = data::read_tokens(named.path, options,
                                             word ? 0.1 : std::get<double>(config.data.validation));
    result.train = std::move(sets.train);
    result.validation = std::move(sets.test);
  }
  result.facts.item = {options.sequence};
  result.facts.classes = options.vocabulary;
  result.facts.positions = {options.sequence};
  result.facts.tokens = true;
  return result;
}

}  // namespace pantala::run
