// Sources of data: what `data.source` can name. A source is one row, in a file of its own; the
// config key with its rule and help, the options of verbs, training, evaluation and prediction are
// derived from the table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/data.h"
#include "run/core/config.h"
#include "run/core/data_facts.h"

namespace pantala::run {

// What is asked of a source.
struct SourceRequest {
  std::string path;  // what stands behind the colon
  const RunConfig& config;
  // Of the model that is to be tried with the data; null: one is to be trained.
  const DataFacts* facts = nullptr;
  bool items_alone = false;  // nobody looks at the labels, which may lack
};

struct SourceSets {
  data::Dataset train;
  std::optional<data::Dataset> test = {};
};

// Of a source whose items are windows of a long row of tokens.
struct TokenForm {
  std::optional<data::TokenType> type = {};  // none: as data.token_type says
  std::int64_t vocabulary = 0;               // 0: the model's own
  bool bytes = false;                        // a token is a byte of text
};

struct Source {
  std::string name;            // "csv", which stands before the colon
  std::string argument;        // "FILE", which stands behind it; "": there is no colon
  std::string help;            // of the config key; "": the name says it all
  std::string ending = {};     // ".csv": a file that is named without "csv:" is of this source
  std::vector<Key> keys = {};  // of the config, that are of this source alone
  // IoError, ParseError, TypeError and ValueError say what is wrong with the files.
  std::function<SourceSets(const SourceRequest&)> open = {};  // not of tokens
  std::optional<TokenForm> tokens = {};
  // --- for predictions
  // Items that need no label; empty: those of open(), without their labels.
  std::function<data::Dataset(const SourceRequest&)> open_items = {};
  bool labels_may_lack = false;
  std::string items_note = {};  // what else it takes then: "with images anywhere in it"

  std::string form() const;  // "csv:FILE"
};
const std::vector<Source>& sources();

// "csv:FILE" in its parts. TypeError that lists the sources, with the nearest name, for what is
// none of them.
struct NamedSource {
  const Source& source;
  std::string path;
};
NamedSource named_source(const std::string& text);

// --- what help and messages say
std::string source_rule();  // "fashion-mnist, idx:DIR, ... or text:FILE"
std::string source_help();
std::string token_source_rule();
std::string item_source_rule();  // of predictions
// How the config wants images to be read.
data::ImageOptions image_options(const RunConfig& config);
// A file of items alone, without a kind: a .npy array or an image.
bool is_items_file(const std::string& text);

}  // namespace pantala::run
