#include "runtime/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "base/text.h"
#include "ir/init_kinds.h"
#include "ir/init_values.h"
#include "pantala/error.h"
#include "runtime/convert.h"
#include "runtime/placement.h"

namespace pantala::runtime {

namespace {

std::int64_t bytes_of(const Type& type) { return type.shape.numel() * dtype_bytes(type.dtype); }

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

ir::Number number_of(const Literal& value) {
  return value.is_float() ? ir::Number(value.f()[0]) : ir::Number::of(value.i()[0]);
}

std::vector<std::byte> encoded(const Literal& value, const Type& type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(type)));
  encode(value, type.dtype, bytes.data());
  return bytes;
}

Literal literal_of(const ir::Number& number, DType dtype) {
  return is_float(dtype) ? Literal::scalar(number.real(), dtype)
                         : Literal::integer(number.i, dtype);
}

}  // namespace

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
  }
  if (!problems.empty())
    throw TypeError(
        fmt::format("the plan does not fit the session: {}", fmt::join(problems, "; ")));
}

void Store::extend(std::span<const StoreLeaf> leaves,
                   std::span<const std::vector<std::string>> siblings) {
  check(leaves);
  ++changes_;
  std::vector<Entry> added;
  for (const StoreLeaf& leaf : leaves) {
    const auto there = index_.find(leaf.name);
    if (there == index_.end())
      added.push_back({.leaf = leaf, .slice = {}, .host = 0});
    else if (leaf.is_touched && !leaf.on_host && entries_[there->second].leaf.on_host)
      move_to_device(entries_[there->second]);
  }
  place_on_device(added, siblings);
  for (Entry& entry : added) {
    begin(entry);
    index_.emplace(entry.leaf.name, entries_.size());
    entries_.push_back(std::move(entry));
  }
}

// Gives a new entry its first value, or notes that it has none yet.
void Store::begin(Entry& entry) {
  const StoreLeaf& leaf = entry.leaf;
  const bool tensor = !leaf.on_host && is_float(leaf.type.dtype) && leaf.type.shape.rank() > 0;
  if (tensor && leaf.init.kind == Initializer::Kind::zeros) return;  // as memory is
  if (tensor) {
    init::check(leaf.init, leaf.type);
    unsettled_.push_back(entries_.size());
    return;
  }
  const Literal first = leaf.name == "rng.seed"
                            ? Literal::integer(static_cast<std::int64_t>(seed_), i64)
                            : init::make(leaf.init, leaf.type, leaf.name, seed_);
  if (leaf.on_host) {
    entry.host = numbers_.size();
    numbers_.push_back(number_of(first));
  } else {
    note_write();
    device_.write(entry.slice, encoded(first, leaf.type));
  }
}

void Store::settle() const {
  if (unsettled_.empty()) return;
  make_first_values(unsettled_);
  unsettled_.clear();
}

void Store::settle(const Entry& entry) const {
  const auto found = std::find(unsettled_.begin(), unsettled_.end(), index_of(entry));
  if (found == unsettled_.end()) return;
  make_first_values({&*found, 1});
  unsettled_.erase(found);
}

bool Store::is_settled(std::size_t index) const {
  return std::ranges::find(unsettled_, index) == unsettled_.end();
}

void Store::unsettle(std::size_t index) {
  if (is_settled(index)) unsettled_.push_back(index);
}

void Store::make_first_values(std::span<const std::size_t> entries) const {
  constexpr std::int64_t kPart = 1 << 15;
  struct Part {
    const Entry* entry;
    const init::Values* values;
    std::int64_t first;
  };
  std::vector<init::Values> values;
  values.reserve(entries.size());
  note_write();
  std::vector<Part> parts;
  for (const std::size_t index : entries) {
    const Entry& entry = entries_[index];
    values.emplace_back(entry.leaf.init, entry.leaf.type, entry.leaf.name, seed_);
    for (std::int64_t first = 0; first < entry.leaf.type.shape.numel(); first += kPart)
      parts.push_back({&entry, &values.back(), first});
  }
  parallel_for(parts.size(), threads_, [&](std::size_t k) {
    const auto [entry, source, first] = parts[k];
    const DType dtype = entry->leaf.type.dtype;
    const std::int64_t size = dtype_bytes(dtype);
    std::vector<double> numbers(
        static_cast<std::size_t>(std::min(kPart, entry->leaf.type.shape.numel() - first)));
    source->fill(first, numbers);
    std::vector<std::byte> bytes(numbers.size() * static_cast<std::size_t>(size));
    encode(HostElements(std::span<const double>(numbers)), dtype, bytes.data());
    device_.write({entry->slice.memory, entry->slice.offset + first * size, std::ssize(bytes)},
                  bytes);
  });
}

void Store::move_to_device(Entry& entry) {
  const ir::Number value = numbers_[entry.host];
  const std::int64_t bytes = bytes_of(entry.leaf.type);
  blocks_.push_back(device_.allocate(aligned(bytes)));
  entry.slice = {blocks_.back(), 0, bytes};
  entry.leaf.on_host = false;
  set_number(index_of(entry), value);
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

std::span<const std::byte> Store::memory(const Entry& entry) const {
  if (entry.leaf.on_host) return {};
  settle(entry);
  device_.wait();
  const std::byte* view = device_.host_view(entry.slice.memory);
  if (!view) return {};
  return {view + entry.slice.offset, static_cast<std::size_t>(bytes_of(entry.leaf.type))};
}

std::span<std::byte> Store::own_memory(const Entry& entry) {
  const std::span<const std::byte> seen = memory(entry);
  note_write();
  ++changes_;
  return {const_cast<std::byte*>(seen.data()), seen.size()};
}

std::span<const std::byte> Store::bytes(const Entry& entry, std::vector<std::byte>& space) const {
  const auto count = static_cast<std::size_t>(bytes_of(entry.leaf.type));
  if (entry.leaf.on_host) {
    space.resize(count);
    encode(literal_of(numbers_[entry.host], entry.leaf.type.dtype), entry.leaf.type.dtype,
           space.data());
    return space;
  }
  if (const std::span<const std::byte> seen = memory(entry); !seen.empty() || count == 0)
    return seen;
  space.resize(count);
  device_.read(entry.slice, space);
  return space;
}

ir::Number Store::number(std::size_t index) const {
  const Entry& entry = entries_[index];
  if (entry.leaf.on_host) return numbers_[entry.host];
  std::array<std::byte, sizeof(std::int64_t)> bytes{};
  device_.read(entry.slice, std::span(bytes).first(static_cast<std::size_t>(entry.slice.bytes)));
  const Receiver source{kind_name(entry.leaf.kind), entry.leaf.name};
  double real = 0;
  std::int64_t whole = 0;
  const bool is_real = is_float(entry.leaf.type.dtype);
  decode_into(source, entry.leaf.type, bytes.data(),
              is_real ? HostBuffer(std::span(&real, 1)) : HostBuffer(std::span(&whole, 1)));
  return is_real ? ir::Number(real) : ir::Number::of(whole);
}

void Store::set_number(std::size_t index, const ir::Number& value) {
  const Entry& entry = entries_[index];
  if (entry.leaf.on_host) {
    numbers_[entry.host] = value;
    return;
  }
  std::array<std::byte, sizeof(std::int64_t)> bytes{};
  if (is_float(entry.leaf.type.dtype)) {
    const double real = value.real();
    encode(HostElements(std::span(&real, 1)), entry.leaf.type.dtype, bytes.data());
  } else {
    encode(HostElements(std::span(&value.i, 1)), entry.leaf.type.dtype, bytes.data());
  }
  note_write();
  device_.write(entry.slice, std::span(bytes).first(static_cast<std::size_t>(entry.slice.bytes)));
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
  if (entry.leaf.on_host) {
    numbers_[entry.host] = number_of(decode(entry.leaf.type, bytes.data()));
  } else {
    note_write();
    device_.write(entry.slice, bytes);
    ++changes_;
  }
  std::erase(unsettled_, index_of(entry));
}

void Store::write(const Entry& entry, const Literal& value) {
  const Type& type = entry.leaf.type;
  check_literal({kind_name(entry.leaf.kind), entry.leaf.name}, value, type);
  write_bytes(entry, encoded(value, type));
}

void Store::write(const Entry& entry, const HostElements& value) {
  const Type& type = entry.leaf.type;
  check_elements({kind_name(entry.leaf.kind), entry.leaf.name}, value, type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(type)));
  encode(value, type.dtype, bytes.data());
  write_bytes(entry, bytes);
}

void Store::write_stored(const Entry& entry, DType dtype, std::span<const std::byte> bytes) {
  const Type& type = entry.leaf.type;
  // A number on the host is decoded in place, which needs aligned memory.
  if (dtype == type.dtype && dtype != boolean && !entry.leaf.on_host)
    return write_bytes(entry, bytes);
  std::vector<std::byte> converted(static_cast<std::size_t>(bytes_of(type)));
  convert_stored(dtype, bytes, type.dtype, converted.data());
  write_bytes(entry, converted);
}

std::int64_t Store::device_bytes(LeafKind kind) const {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries_)
    if (entry.leaf.kind == kind && !entry.leaf.on_host) bytes += aligned(entry.slice.bytes);
  return bytes;
}

}  // namespace pantala::runtime
