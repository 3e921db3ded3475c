// The table of sources, and what is derived from it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "run/core/key_types.h"
#include "run/sources/source.h"

namespace pantala::run {

// One file each. Help and messages list them in this order.
Source fashion_mnist_source();
Source idx_source();
Source csv_source();
Source npz_source();
Source safetensors_source();
Source images_source();
Source tokens_source();
Source text_source();

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      fashion_mnist_source(), idx_source(),    csv_source(),    npz_source(),
      safetensors_source(),   images_source(), tokens_source(), text_source(),
  };
  return all;
}

namespace {

std::vector<std::string> source_names() {
  std::vector<std::string> names;
  for (const Source& source : sources()) names.push_back(source.name);
  return names;
}

std::vector<std::string> forms(bool (*which)(const Source&)) {
  std::vector<std::string> list;
  for (const Source& source : sources())
    if (which(source)) list.push_back(source.form());
  return list;
}

// Whose file or folder this is, if somebody left the name of the source out.
const Source* source_of_path(const std::string& path) {
  const auto has_ending = [&](const std::string& ending) { return path.ends_with(ending); };
  for (const Source& source : sources())
    if (std::any_of(source.endings.begin(), source.endings.end(), has_ending)) return &source;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return nullptr;
  for (const Source& source : sources())
    if (source.name == path) return nullptr;  // a source without a path, whatever lies here
  for (const Source& source : sources())
    if (source.is_own_folder && source.is_own_folder(path)) return &source;
  return nullptr;
}

[[noreturn]] void refuse_source(const std::string& text, const std::string& hint) {
  refuse("data.source", source_rule(), text, hint);
}

}  // namespace

std::string Source::form() const {
  return argument.empty() ? name : fmt::format("{}:{}", name, argument);
}

NamedSource named_source(const std::string& text) {
  const std::size_t colon = text.find(':');
  const bool has_path = colon != std::string::npos;
  const std::string name = text.substr(0, colon);
  if (!has_path)
    if (const Source* source = source_of_path(text))
      refuse_source(text, fmt::format("; did you mean '{}:{}'?", source->name, text));
  for (const Source& source : sources()) {
    if (source.name != name || source.argument.empty() == has_path) continue;
    const std::string path = has_path ? text.substr(colon + 1) : "";
    if (has_path && path.empty()) refuse_source(text, "");
    return {source, path};
  }
  refuse_source(text, did_you_mean(name, source_names()));
}

KeyReaders readers_of(const std::string& key, const Source& source) {
  KeyReaders readers;
  for (const Source& one : sources()) {
    const bool own = std::any_of(one.keys.begin(), one.keys.end(),
                                 [&](const Key& known) { return known.name == key; });
    if (!own && std::find(one.more_keys.begin(), one.more_keys.end(), key) == one.more_keys.end())
      continue;
    readers.forms.push_back(one.form());
    readers.read = readers.read || &one == &source;
  }
  return readers;
}

std::string source_rule() {
  return one_of(forms([](const Source&) { return true; }));
}

std::string source_help() {
  std::string text = "The data set";
  for (const Source& source : sources())
    if (!source.help.empty()) text += fmt::format(". {}: {}", source.name, source.help);
  return text;
}

std::string token_source_rule() {
  return one_of(forms([](const Source& source) { return source.tokens.has_value(); }));
}

std::string item_source_rule() {
  const auto plain = [](const Source& source) {
    return !source.tokens && source.items_note.empty();
  };
  std::vector<std::string> without_labels;
  std::string noted;
  for (const Source& source : sources()) {
    if (source.labels_may_be_missing) without_labels.push_back(source.name);
    if (!source.items_note.empty())
      noted += fmt::format(", {} {}", source.form(), source.items_note);
  }
  return fmt::format(
      "{} (a test set if there is one; labels are not needed, and may be missing in {}){}, "
      "FILE.npy with items alone, or one image",
      fmt::join(forms(plain), ", "), one_of(without_labels), noted);
}

data::ImageOptions image_options(const RunConfig& config) {
  return {.channels = config.data.channels == 1 ? 1 : 3};
}

bool is_items_file(const std::string& text) {
  return text.find(':') == std::string::npos &&
         (text.ends_with(".npy") || data::is_image_name(text));
}

}  // namespace pantala::run
