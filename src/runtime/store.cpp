#include "runtime/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "pantala/error.h"
#include "runtime/convert.h"
#include "runtime/placement.h"

namespace pantala::runtime {

namespace {

std::string_view kind_name(LeafKind kind) {
  switch (kind) {
    case LeafKind::input:
      return "input";
    case LeafKind::parameter:
      return "parameter";
    case LeafKind::state:
      return "state";
    case LeafKind::scalar:
      return "scalar";
  }
  return "leaf";
}

std::int64_t bytes_of(const Type& type) { return type.shape.numel() * dtype_bytes(type.dtype); }

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

ir::Number number_of(const Literal& value) {
  return value.is_float() ? ir::Number(value.f()[0]) : ir::Number::of(value.i()[0]);
}

Literal literal_of(const ir::Number& number, DType dtype) {
  return is_float(dtype) ? Literal::scalar(number.real(), dtype)
                         : Literal::integer(number.i, dtype);
}

}  // namespace

Store::~Store() {
  for (const device::MemoryId block : blocks_) device_.free(block);
}

void Store::check(std::span<const StoreLeaf> leaves) const {
  std::vector<std::string> problems;
  for (const StoreLeaf& leaf : leaves) {
    const Entry* there = find(leaf.name);
    if (!there) continue;
    const StoreLeaf& old = there->leaf;
    if (old.kind != leaf.kind)
      problems.push_back(fmt::format("'{}' is a {}, the plan has a {}", leaf.name,
                                     kind_name(old.kind), kind_name(leaf.kind)));
    else if (old.type != leaf.type)
      problems.push_back(fmt::format("{} '{}' is {}, the plan has {}", kind_name(leaf.kind),
                                     leaf.name, old.type.str(), leaf.type.str()));
    else if (leaf.is_touched && old.on_host != leaf.on_host)
      problems.push_back(fmt::format("{} '{}' is kept {}, the plan wants it {}",
                                     kind_name(leaf.kind), leaf.name,
                                     old.on_host ? "on the host" : "in device memory",
                                     leaf.on_host ? "on the host" : "in device memory"));
  }
  if (!problems.empty())
    throw TypeError(
        fmt::format("the plan does not fit the session: {}", fmt::join(problems, "; ")));
}

Literal Store::first_value(const StoreLeaf& leaf) const {
  if (leaf.name == "rng.seed") return Literal::integer(static_cast<std::int64_t>(seed_), i64);
  return init::make(leaf.init, leaf.type, leaf.name, seed_);
}

void Store::extend(std::span<const StoreLeaf> leaves,
                   std::span<const std::vector<std::string>> siblings) {
  check(leaves);
  std::vector<Entry> added;
  for (const StoreLeaf& leaf : leaves)
    if (!find(leaf.name)) added.push_back({.leaf = leaf, .slice = {}, .host = 0});
  place_on_device(added, siblings);
  for (Entry& entry : added) {
    const Literal first = first_value(entry.leaf);
    if (entry.leaf.on_host) {
      entry.host = numbers_.size();
      numbers_.push_back(number_of(first));
    } else {
      write(entry, first);
    }
    index_.emplace(entry.leaf.name, entries_.size());
    entries_.push_back(std::move(entry));
  }
}

// Sorts what was added (device entries in order of placement first) and gives it its slices.
void Store::place_on_device(std::vector<Entry>& added,
                            std::span<const std::vector<std::string>> siblings) {
  std::stable_partition(added.begin(), added.end(),
                        [](const Entry& entry) { return !entry.leaf.on_host; });
  std::vector<PlacedLeaf> placed;
  for (const Entry& entry : added)
    if (!entry.leaf.on_host) placed.push_back({entry.leaf.kind, entry.leaf.name});
  if (placed.empty()) return;
  std::vector<Entry> sorted;
  std::int64_t offset = 0;
  for (const std::size_t k : place(placed, siblings)) {
    Entry entry = added[k];
    entry.slice = {{}, offset, bytes_of(entry.leaf.type)};
    offset += aligned(entry.slice.bytes);
    sorted.push_back(std::move(entry));
  }
  const device::MemoryId block = device_.allocate(offset);
  blocks_.push_back(block);
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    sorted[k].slice.memory = block;
    added[k] = std::move(sorted[k]);
  }
}

const Store::Entry* Store::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::string> Store::names(LeafKind kind) const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_)
    if (entry.leaf.kind == kind) names.push_back(entry.leaf.name);
  return names;
}

const Store::Entry& Store::get(std::string_view name, LeafKind kind, std::string_view what) const {
  const Entry* entry = find(name);
  if (entry && entry->leaf.kind == kind) return *entry;
  if (entry)
    throw TypeError(fmt::format("the session has no {} named '{}': that is a {}", what, name,
                                kind_name(entry->leaf.kind)));
  throw TypeError(fmt::format("the session has no {} named '{}'{}", what, name,
                              did_you_mean(name, names(kind))));
}

std::span<const std::byte> Store::bytes(const Entry& entry, std::vector<std::byte>& space) const {
  const auto count = static_cast<std::size_t>(bytes_of(entry.leaf.type));
  if (entry.leaf.on_host) {
    space.resize(count);
    encode(literal_of(numbers_[entry.host], entry.leaf.type.dtype), entry.leaf.type.dtype,
           space.data());
    return space;
  }
  device_.wait();
  if (const std::byte* view = device_.host_view(entry.slice.memory))
    return {view + entry.slice.offset, count};
  space.resize(count);
  device_.read(entry.slice, space);
  return space;
}

Literal Store::read(const Entry& entry) const {
  if (entry.leaf.on_host) return literal_of(numbers_[entry.host], entry.leaf.type.dtype);
  std::vector<std::byte> space;
  return decode(entry.leaf.type, bytes(entry, space).data());
}

void Store::read(const Entry& entry, const HostBuffer& into) const {
  std::vector<std::byte> space;
  decode_into({kind_name(entry.leaf.kind), entry.leaf.name}, entry.leaf.type,
              bytes(entry, space).data(), into);
}

void Store::write_bytes(const Entry& entry, std::span<const std::byte> bytes) {
  if (entry.leaf.on_host)
    numbers_[entry.host] = number_of(decode(entry.leaf.type, bytes.data()));
  else
    device_.write(entry.slice, bytes);
}

void Store::write(const Entry& entry, const Literal& value) {
  const Type& type = entry.leaf.type;
  check_literal({kind_name(entry.leaf.kind), entry.leaf.name}, value, type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(type)));
  encode(value, type.dtype, bytes.data());
  write_bytes(entry, bytes);
}

void Store::write(const Entry& entry, const HostElements& value) {
  const Type& type = entry.leaf.type;
  check_elements({kind_name(entry.leaf.kind), entry.leaf.name}, value, type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(type)));
  encode(value, type.dtype, bytes.data());
  write_bytes(entry, bytes);
}

std::int64_t Store::device_bytes(LeafKind kind) const {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries_)
    if (entry.leaf.kind == kind && !entry.leaf.on_host) bytes += aligned(entry.slice.bytes);
  return bytes;
}

}  // namespace pantala::runtime
