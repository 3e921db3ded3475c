// Saving and loading of sessions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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
  constexpr std::string_view kPrefixes[] = {"optim.", "ema.", "rng.", "accumulate."};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return leaf.name.starts_with(prefix); });
}

constexpr std::string_view kContents = "pantala.contents";

std::string_view contents_name(Saved what) { return what == Saved::model ? "model" : "training"; }

}  // namespace

std::vector<const Store::Entry*> SessionData::saved_entries(Saved what) const {
  std::vector<const Store::Entry*> entries;
  for (const Store::Entry& entry : store_.entries())
    if (what == Saved::training || !belongs_to_training(entry.leaf)) entries.push_back(&entry);
  return entries;
}

void SessionData::save(const std::filesystem::path& path, Saved what) const {
  const std::vector<const Store::Entry*> entries = saved_entries(what);
  std::vector<std::vector<std::byte>> spaces(entries.size());
  std::vector<io::TensorBytes> tensors;
  for (std::size_t k = 0; k < entries.size(); ++k)
    tensors.push_back(
        {entries[k]->leaf.name, entries[k]->leaf.type, store_.bytes(*entries[k], spaces[k])});
  io::write_safetensors(path, std::move(tensors),
                        {{std::string(kContents), std::string(contents_name(what))}});
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
  for (std::size_t k = 0; k < entries.size(); ++k) store_.write(*entries[k], values[k]);
}

}  // namespace pantala::runtime
