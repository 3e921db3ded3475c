#include "io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "io/json.h"
#include "ir/memory.h"
#include "pantala/error.h"

namespace pantala::io {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is copied as it is");

namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr int kMaxHeaderDepth = 3;                      // the header, an entry, its lists

struct FormatType {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<DType> dtype;  // empty: part of the format, but not of Pantala
};
constexpr FormatType kTypes[] = {
    {"F64", 8, f64}, {"F32", 4, f32}, {"F16", 2, f16},      {"BF16", 2, bf16},  {"I64", 8, i64},
    {"I32", 4, i32}, {"U8", 1, u8},   {"BOOL", 1, boolean}, {"I16", 2, {}},     {"I8", 1, {}},
    {"U16", 2, {}},  {"U32", 4, {}},  {"U64", 8, {}},       {"F8_E4M3", 1, {}}, {"F8_E5M2", 1, {}},
};

// One entry of a header, checked against the size of the data.
struct HeaderEntry {
  std::string name;
  const FormatType* format;
  Shape shape;
  std::uint64_t begin, end;  // in the data
};

Shape shape_of(const Json& list, const std::string& where) {
  std::vector<std::int64_t> sizes;
  for (const Json& size : list) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{1} << 62)
      throw ParseError(fmt::format("{}: expected sizes as whole numbers below 2^62, found {}",
                                   where, size.dump()));
    sizes.push_back(size.get<std::int64_t>());
  }
  try {
    return Shape(sizes);
  } catch (const TypeError& error) { throw ParseError(fmt::format("{}: {}", where, error.what())); }
}

HeaderEntry parse_entry(const std::string& name, const Json& json, std::uint64_t data_bytes,
                        const std::string& file) {
  const std::string where = fmt::format("{}: tensor {}", file, pantala::quoted(name));
  return extract(where, [&] {
    HeaderEntry entry{.name = name, .format = nullptr, .shape = {}, .begin = 0, .end = 0};
    const auto dtype = json.at("dtype").get<std::string>();
    for (const FormatType& type : kTypes)
      if (type.name == dtype) entry.format = &type;
    if (!entry.format)
      throw ParseError(fmt::format("{}: unknown dtype {}", where, pantala::quoted(dtype)));
    entry.shape = shape_of(json.at("shape").get_ref<const Json::array_t&>(), where);
    const auto& offsets = json.at("data_offsets").get_ref<const Json::array_t&>();
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      throw ParseError(fmt::format("{}: data_offsets: expected two whole numbers, found {}", where,
                                   json.at("data_offsets").dump()));
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.begin > entry.end || entry.end > data_bytes)
      throw ParseError(fmt::format("{}: data_offsets [{},{}] are not within the {} bytes of data",
                                   where, entry.begin, entry.end, data_bytes));
    // Sizes have at most 62 bits and an element at most 8 bytes: dividing instead of multiplying
    // cannot overflow.
    const auto count = static_cast<std::uint64_t>(entry.shape.numel());
    if ((entry.end - entry.begin) % entry.format->bytes != 0 ||
        (entry.end - entry.begin) / entry.format->bytes != count)
      throw ParseError(fmt::format("{}: {} {} does not fit its {} bytes of data", where, dtype,
                                   entry.shape.str(), entry.end - entry.begin));
    return entry;
  });
}

// The format has neither overlaps nor holes: what a file holds is exactly what its header names.
void check_coverage(std::vector<HeaderEntry>& entries, std::uint64_t data_bytes,
                    const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != at)
      throw ParseError(
          fmt::format("{}: tensor {}: its data begin at {}, expected {}: {}", file,
                      pantala::quoted(entry.name), entry.begin, at,
                      entry.begin < at ? "tensors overlap" : "no tensor owns the bytes between"));
    at = entry.end;
  }
  if (at != data_bytes)
    throw ParseError(
        fmt::format("{}: {} bytes of data, but the header describes {}", file, data_bytes, at));
}

void check_supported(const std::vector<HeaderEntry>& entries, const std::string& file) {
  std::vector<std::string> missing;
  for (const HeaderEntry& entry : entries)
    if (!entry.format->dtype)
      missing.push_back(fmt::format("{} ({})", entry.name, entry.format->name));
  if (!missing.empty())
    throw UnsupportedError(
        fmt::format("{}: dtypes that are not supported: {}", file, fmt::join(missing, ", ")));
}

}  // namespace

SafeTensors::SafeTensors(const std::filesystem::path& path) {
  constexpr std::string_view kIndexEnding = ".index.json";
  const std::filesystem::path index = path.string() + std::string(kIndexEnding);
  std::error_code ignored;  // what cannot be looked at is reported when it is opened
  if (path.string().ends_with(kIndexEnding))
    open_index(path);
  else if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(index, ignored))
    open_index(index);
  else
    add_file(path);
}

void SafeTensors::add_file(const std::filesystem::path& path) {
  FileReader file(path);
  const std::string name = path.string();
  if (file.size() < 8)
    throw ParseError(
        fmt::format("{}: expected a header length of 8 bytes, the file has {}", name, file.size()));
  std::uint64_t header_bytes = 0;
  file.read_at(0, std::span(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes));
  if (header_bytes > file.size() - 8 || header_bytes > kMaxHeaderBytes)
    throw ParseError(
        fmt::format("{}: the header claims {} bytes; the file has {} and the limit is {}", name,
                    header_bytes, file.size() - 8, kMaxHeaderBytes));
  std::string text(header_bytes, '\0');
  file.read_at(8, text);
  const Json header = parse_json(text, name + ": header", kMaxHeaderDepth);
  if (!header.is_object())
    throw ParseError(
        fmt::format("{}: header: expected an object, found {}", name, header.type_name()));

  const std::uint64_t data_begin = 8 + header_bytes, data_bytes = file.size() - data_begin;
  std::vector<HeaderEntry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__")
      extract(name + ": __metadata__",
              [&] { metadata_.merge(value.get<std::map<std::string, std::string>>()); });
    else
      entries.push_back(parse_entry(key, value, data_bytes, name));
  }
  check_coverage(entries, data_bytes, name);
  check_supported(entries, name);
  for (const HeaderEntry& entry : entries) {
    const Entry stored{.type = {*entry.format->dtype, entry.shape},
                       .file = files_.size(),
                       .begin = data_begin + entry.begin,
                       .bytes = entry.end - entry.begin};
    if (!entries_.emplace(entry.name, stored).second)
      throw ParseError(fmt::format("{}: tensor {} is in another file of the model too", name,
                                   pantala::quoted(entry.name)));
  }
  files_.push_back(std::move(file));
}

void SafeTensors::open_index(const std::filesystem::path& path) {
  const Json index = read_json(path);
  const std::string name = path.string();
  const auto weight_map = extract(
      name, [&] { return index.at("weight_map").get<std::map<std::string, std::string>>(); });
  std::map<std::string, std::size_t> shards;
  for (const auto& [tensor, shard] : weight_map) {
    // A shard lies beside its index: a path would let an index name any file of the machine.
    if (shard.empty() || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      throw ParseError(
          fmt::format("{}: tensor {}: expected the name of a file in the same folder, found {}",
                      name, pantala::quoted(tensor), pantala::quoted(shard)));
    if (shards.contains(shard)) continue;
    shards[shard] = files_.size();
    add_file(path.parent_path() / shard);
  }
  for (const auto& [tensor, shard] : weight_map) {
    const auto found = entries_.find(tensor);
    if (found == entries_.end() || found->second.file != shards[shard])
      throw ParseError(fmt::format("{}: tensor {} is not in {}", name, pantala::quoted(tensor),
                                   pantala::quoted(shard)));
  }
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafeTensors::Entry& SafeTensors::entry(std::string_view name) const {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second;
  const std::string file = files_.empty() ? "an empty model" : files_[0].path().string();
  throw TypeError(fmt::format("{}: there is no tensor {}{}", file, pantala::quoted(name),
                              did_you_mean(name, names())));
}

const Type& SafeTensors::type(std::string_view name) const { return entry(name).type; }

Literal SafeTensors::read(std::string_view name) const {
  const Entry& found = entry(name);
  std::vector<char> data(found.bytes);
  files_[found.file].read_at(found.begin, data);
  return ir::from_memory(found.type, std::as_bytes(std::span(data)));
}

}  // namespace pantala::io
