// Saving and loading of sessions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "io/safetensors_write.h"
#include "pantala/error.h"
#include "runtime/load_weights.h"
#include "runtime/session_data.h"

namespace pantala::runtime {

namespace {

// States that belong to training and not to the model itself.
bool belongs_to_training(const StoreLeaf& leaf) {
  if (leaf.kind == LeafKind::scalar) return true;
  if (leaf.kind != LeafKind::state) return false;
  constexpr std::string_view kPrefixes[] = {"optim.", "ema.", "rng.", "accum."};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return leaf.name.starts_with(prefix); });
}

// Metadata: what the file holds, and how far the window of micro-batches was.
constexpr const char* kContents = "pantala.contents";
constexpr const char* kAccumulated = "pantala.accumulated";

std::string_view contents_name(Saved what) {
  switch (what) {
    case Saved::model:
      return "model";
    case Saved::optimizer:
      return "optimizer";
    case Saved::training:
      return "training";
  }
  return "";
}

// What a model has seen so far belongs to nobody but the text at hand.
bool is_cache(const StoreLeaf& leaf) {
  return leaf.kind == LeafKind::state && leaf.name.starts_with("cache.");
}

bool contains(Saved what, const StoreLeaf& leaf) {
  if (is_cache(leaf)) return false;
  return what == Saved::training || belongs_to_training(leaf) == (what == Saved::optimizer);
}

// A file of Pantala's own: nothing in it is superfluous.
const LoadWeightsOptions kExactly = {.strict = true, .prefixes = {}, .skip = {}, .ignore = {}};

std::int64_t saved_window(const Weights& file, bool splits) {
  const auto found = file.metadata().find(kAccumulated);
  if (found == file.metadata().end()) return 0;
  const std::string& text = found->second;
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0)
    throw ParseError(fmt::format("{}: {}: expected a whole number, found {}", file.source(),
                                 kAccumulated, in_quotes(text)));
  if (count > 0 && !splits)
    throw TypeError(fmt::format(
        "{}: it was saved after {} micro-batches of a window, but this session does not accumulate",
        file.source(), count));
  return count;
}

}  // namespace

std::vector<const Store::Entry*> SessionData::saved_entries(Saved what) const {
  std::vector<const Store::Entry*> entries;
  for (const Store::Entry& entry : store_.entries())
    if (contains(what, entry.leaf)) entries.push_back(&entry);
  return entries;
}

void SessionData::save(const std::filesystem::path& path, Saved what,
                       std::span<const io::TensorBytes> others) const {
  const std::vector<const Store::Entry*> entries = saved_entries(what);
  std::vector<std::vector<std::byte>> spaces(entries.size());
  std::vector<io::TensorBytes> tensors;
  for (std::size_t k = 0; k < entries.size(); ++k)
    tensors.push_back(
        {entries[k]->leaf.name, entries[k]->leaf.type, store_.bytes(*entries[k], spaces[k])});
  tensors.insert(tensors.end(), others.begin(), others.end());
  std::map<std::string, std::string> metadata = {{kContents, std::string(contents_name(what))}};
  if (what != Saved::model) metadata[kAccumulated] = std::to_string(accumulated_);
  io::write_safetensors(path, std::move(tensors), metadata);
}

void SessionData::load(const std::filesystem::path& path, Saved what,
                       const std::vector<std::string>& of_others) {
  const Weights file = Weights::open(path);
  LoadWeightsOptions exactly = kExactly;
  exactly.ignore = of_others;
  const WeightsMatch match = match_weights(
      {.store = store_, .entries = saved_entries(what), .exact_types = true}, file, exactly);
  require_fit(match, file);
  const std::int64_t accumulated = what == Saved::model ? 0 : saved_window(file, splits_update());
  write_weights(store_, match, file);
  if (what != Saved::model) accumulated_ = accumulated;
}

LoadWeightsReport SessionData::load_weights(const Weights& weights,
                                            const LoadWeightsOptions& options) {
  WeightsMatch match =
      match_weights({.store = store_, .entries = saved_entries(Saved::model)}, weights, options);
  if (options.strict) require_fit(match, weights);
  write_weights(store_, match, weights);
  return std::move(match.report);
}

Weights SessionData::weights() const {
  Weights weights;
  for (const Store::Entry* entry : saved_entries(Saved::model)) {
    std::vector<std::byte> space;
    const std::span<const std::byte> bytes = store_.bytes(*entry, space);
    weights.set(entry->leaf.name, entry->leaf.type, {bytes.begin(), bytes.end()});
  }
  return weights;
}

}  // namespace pantala::runtime
