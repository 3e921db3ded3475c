// Saving and loading of sessions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "io/safetensors.h"
#include "io/safetensors_write.h"
#include "pantala/error.h"
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

std::int64_t saved_window(const io::SafeTensors& file, const std::string& path, bool splits) {
  const auto found = file.metadata().find(kAccumulated);
  if (found == file.metadata().end()) return 0;
  const std::string& text = found->second;
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0)
    throw ParseError(fmt::format("{}: {}: expected a whole number, found {}", path, kAccumulated,
                                 pantala::quoted(text)));
  if (count > 0 && !splits)
    throw TypeError(fmt::format(
        "{}: it was saved after {} micro-batches of a window, but this session does not accumulate",
        path, count));
  return count;
}

}  // namespace

std::vector<const Store::Entry*> SessionData::saved_entries(Saved what) const {
  std::vector<const Store::Entry*> entries;
  for (const Store::Entry& entry : store_.entries())
    if (contains(what, entry.leaf)) entries.push_back(&entry);
  return entries;
}

void SessionData::save(const std::filesystem::path& path, Saved what) const {
  const std::vector<const Store::Entry*> entries = saved_entries(what);
  std::vector<std::vector<std::byte>> spaces(entries.size());
  std::vector<io::TensorBytes> tensors;
  for (std::size_t k = 0; k < entries.size(); ++k)
    tensors.push_back(
        {entries[k]->leaf.name, entries[k]->leaf.type, store_.bytes(*entries[k], spaces[k])});
  std::map<std::string, std::string> metadata = {{kContents, std::string(contents_name(what))}};
  if (what != Saved::model) metadata[kAccumulated] = std::to_string(accumulated_);
  io::write_safetensors(path, std::move(tensors), metadata);
}

void SessionData::load(const std::filesystem::path& path, Saved what) {
  const io::SafeTensors file(path);
  const std::vector<const Store::Entry*> entries = saved_entries(what);
  std::vector<std::string> problems;
  for (const Store::Entry* entry : entries) {
    const std::string& name = entry->leaf.name;
    if (!file.contains(name))
      problems.push_back(fmt::format("'{}' {} is missing", name, entry->leaf.type.str()));
    else if (file.type(name) != entry->leaf.type)
      problems.push_back(fmt::format("'{}' is {} in the file, the session has {}", name,
                                     file.type(name).str(), entry->leaf.type.str()));
  }
  std::vector<std::string> known;
  for (const Store::Entry* entry : entries) known.push_back(entry->leaf.name);
  for (const std::string& name : file.names())
    if (!store_.find(name))
      problems.push_back(fmt::format("the session has no '{}'{}", name, did_you_mean(name, known)));
  if (!problems.empty())
    throw TypeError(
        fmt::format("{}: does not fit the session: {}", path.string(), fmt::join(problems, "; ")));
  // Read completely before anything changes: a file that becomes unreadable leaves the session as
  // it was.
  std::vector<Literal> values;
  for (const Store::Entry* entry : entries) values.push_back(file.read(entry->leaf.name));
  const std::int64_t accumulated =
      what == Saved::model ? 0 : saved_window(file, path.string(), splits_update());
  for (std::size_t k = 0; k < entries.size(); ++k) store_.write(*entries[k], values[k]);
  if (what != Saved::model) accumulated_ = accumulated;
}

}  // namespace pantala::runtime
