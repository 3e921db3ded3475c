// Sources of data: what `data.source` can name. A source is one row, in a file of its own; the
// config key with its rule and help, the options of verbs, training, evaluation and prediction are
// derived from the table.
#pragma once

#include <cstdint>
#include <filesystem>
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
  bool items_alone = false;  // nobody needs the labels, which may be missing
  // With items_alone: labels are wanted where they are known (-1: not), and the texts of a table.
  bool truth = false;
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
  std::string name;      // "csv", which stands before the colon
  std::string argument;  // "FILE", which stands behind it; "": there is no colon
  std::string help;      // of the config key; "": the name says it all
  // What is named without "csv:" is of this source if it is a file with one of these endings, or a
  // folder that looks like one of its own.
  std::vector<std::string> endings = {};
  bool (*is_own_folder)(const std::filesystem::path&) = nullptr;
  std::vector<Key> keys = {};               // of the config, that are of this source
  std::vector<std::string> more_keys = {};  // those of other sources that this one reads too
  // IoError, ParseError, TypeError and ValueError say what is wrong with the files.
  std::function<SourceSets(const SourceRequest&)> open = {};  // not of tokens
  std::optional<TokenForm> tokens = {};
  // --- for predictions
  // Items that need no label; empty: those of open(), without their labels.
  std::function<data::Dataset(const SourceRequest&)> open_items = {};
  bool labels_may_be_missing = false;
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

// "csv:FILE": the sources that read this key of the config, as `name` does or not; none: it is no
// key of sources.
struct KeyReaders {
  std::vector<std::string> forms;
  bool read = false;  // by the source that was asked for
};
KeyReaders readers_of(const std::string& key, const Source& source);

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
