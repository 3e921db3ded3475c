#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/text.h"
#include "io/json.h"
#include "pantala/error.h"

namespace pantala::io {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is used as it is");

namespace {

constexpr int kMaxHeaderDepth = 3;  // the header, an entry, its lists

struct FormatType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;
  std::optional<DType> widened = {};
};
constexpr FormatType kTypes[] = {
    {"F64", 64, f64},     {"F32", 32, f32},     {"F16", 16, f16},     {"BF16", 16, bf16},
    {"I64", 64, i64},     {"I32", 32, i32},     {"U8", 8, u8},        {"BOOL", 8, boolean},
    {"I8", 8, {}, i32},   {"I16", 16, {}, i32}, {"U16", 16, {}, i32}, {"U32", 32, {}, i64},
    {"U64", 64, {}, i64}, {"C64", 64, {}},      {"F8_E4M3", 8, {}},   {"F8_E5M2", 8, {}},
    {"F4", 4, {}},        {"F6_E2M3", 6, {}},   {"F6_E3M2", 6, {}},   {"F8_E8M0", 8, {}},
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

// One entry of a header, checked against the size of the data; `begin` is still counted from there.
SafeTensorsEntry parse_entry(const std::string& name, const Json& json, std::uint64_t data_bytes,
                             const std::string& file) {
  const std::string where = fmt::format("{}: tensor {}", file, in_quotes(name));
  return extract(where, [&] {
    const auto dtype = json.at("dtype").get<std::string>();
    const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const FormatType& one) { return one.name == dtype; });
    if (type == std::end(kTypes))
      throw ParseError(fmt::format("{}: unknown dtype {}", where, in_quotes(dtype)));
    Shape shape = shape_of(json.at("shape").get_ref<const Json::array_t&>(), where);
    const auto& offsets = json.at("data_offsets").get_ref<const Json::array_t&>();
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      throw ParseError(fmt::format("{}: data_offsets: expected two whole numbers, found {}", where,
                                   json.at("data_offsets").dump()));
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    if (begin > end || end > data_bytes)
      throw ParseError(fmt::format("{}: data_offsets [{},{}] are not within the {} bytes of data",
                                   where, begin, end, data_bytes));
    // The bits of a real file have a number; those of a shape that lies may not.
    const auto count = static_cast<std::uint64_t>(shape.numel()), bits = 8 * (end - begin);
    if (bits % type->bits != 0 || bits / type->bits != count)
      throw ParseError(fmt::format("{}: {} {} does not fit its {} bytes of data", where, dtype,
                                   shape.str(), end - begin));
    return SafeTensorsEntry{name,  type->name, type->dtype, type->widened,
                            shape, begin,      end - begin};
  });
}

// The format has neither overlaps nor holes: what a file holds is exactly what its header names.
void check_coverage(std::vector<SafeTensorsEntry>& entries, std::uint64_t data_bytes,
                    const std::string& file) {
  std::sort(entries.begin(), entries.end(),
            [](const SafeTensorsEntry& a, const SafeTensorsEntry& b) {
              return std::tie(a.begin, a.bytes, a.name) < std::tie(b.begin, b.bytes, b.name);
            });
  std::uint64_t at = 0;
  for (const SafeTensorsEntry& entry : entries) {
    if (entry.begin != at)
      throw ParseError(
          fmt::format("{}: tensor {}: its data begin at {}, expected {}: {}", file,
                      in_quotes(entry.name), entry.begin, at,
                      entry.begin < at ? "tensors overlap" : "no tensor owns the bytes between"));
    at += entry.bytes;
  }
  if (at != data_bytes)
    throw ParseError(
        fmt::format("{}: {} bytes of data, but the header describes {}", file, data_bytes, at));
}

constexpr std::string_view kSaveInstead = "save it with safetensors.torch.save_file";

constexpr std::uint64_t kFirstBytes = 512;  // that hold the name of a zip's first file

bool is_zip(std::string_view begin) { return begin.starts_with("PK\x03\x04"); }

// What torch.save writes: a zip archive whose first file is NAME/data.pkl, or a pickle as before
// PyTorch 1.6.
bool is_pytorch(std::string_view begin) {
  if (is_zip(begin)) return begin.find("data.pkl") != std::string_view::npos;
  return begin.starts_with('\x80') && begin[1] >= 2 && begin[1] <= 5;
}

// Such a file may begin with a number that could be a length, but no header follows.
void refuse_archives(const FileReader& file, std::uint64_t length, const std::string& name) {
  std::string begin(std::min(file.size(), kFirstBytes), '\0');
  file.read_at(0, begin);
  if (length <= file.size() - 8 && begin.size() > 8 && begin[8] == '{') return;
  if (is_pytorch(begin))
    throw UnsupportedError(
        fmt::format("{}: a PyTorch archive, not a safetensors file: {}", name, kSaveInstead));
  if (is_zip(begin))
    throw UnsupportedError(fmt::format("{}: a zip archive, not a safetensors file", name));
}

// The header's text. Read and not mapped: a file that shrinks meanwhile is an IoError.
std::string read_header(const FileReader& file, const std::string& name) {
  if (file.size() < 8)
    throw ParseError(
        fmt::format("{}: expected a header length of 8 bytes, the file has {}", name, file.size()));
  std::uint64_t length = 0;
  file.read_at(0, std::span(reinterpret_cast<char*>(&length), sizeof length));
  refuse_archives(file, length, name);
  if (length > file.size() - 8 || length > kMaxHeaderBytes)
    throw ParseError(
        fmt::format("{}: no safetensors file, or a damaged one: it begins with a header length of "
                    "{}; {} bytes follow, and the limit is {}",
                    name, length, file.size() - 8, kMaxHeaderBytes));
  std::string text(length, '\0');
  file.read_at(8, text);
  return text;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at is reported when it is opened
  return std::filesystem::exists(path, ignored);
}

std::filesystem::path with_ending(const std::filesystem::path& path, std::string_view ending) {
  return path.string() + std::string(ending);
}

// The file of a folder that stands for its model.
std::filesystem::path find_in_folder(const std::filesystem::path& folder) {
  const std::filesystem::path usual = folder / "model.safetensors";
  if (is_there(usual)) return usual;
  if (is_there(with_ending(usual, kIndexEnding))) return with_ending(usual, kIndexEnding);
  std::vector<std::filesystem::path> files, indices;
  std::string pytorch;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kSafeTensorsEnding)) files.push_back(at->path());
    if (name.ends_with(fmt::format("{}{}", kSafeTensorsEnding, kIndexEnding)))
      indices.push_back(at->path());
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) pytorch = name;
  }
  if (error) throw IoError(fmt::format("{}: cannot list: {}", folder.string(), error.message()));
  if (indices.size() == 1) return indices[0];
  if (indices.empty() && files.size() == 1) return files[0];
  throw IoError(
      fmt::format("{}: expected model.safetensors, model.safetensors.index.json, or one file of "
                  "either kind, found {} and {}{}",
                  folder.string(), counted(files.size(), "other .safetensors file"),
                  indices.empty() ? "no index" : fmt::format("{} indices", indices.size()),
                  pytorch.empty() ? "" : fmt::format(" ({}: {})", pytorch, kSaveInstead)));
}

void check_shard_name(const std::string& tensor, const std::string& shard,
                      const std::string& index) {
  // A shard lies beside its index: a path would let an index name any file of the machine.
  if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
      shard.find('\0') != std::string::npos)
    throw ParseError(
        fmt::format("{}: tensor {}: expected the name of a file in the same folder, found {}",
                    index, in_quotes(tensor), in_quotes(shard)));
}

SafeTensorsModel open_index(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto weight_map = extract(name, [document = read_json(path)] {
    return document.at("weight_map").get<std::map<std::string, std::string, std::less<>>>();
  });
  SafeTensorsModel model{.path = path, .files = {}};
  std::map<std::string, std::size_t> shards;
  for (const auto& [tensor, shard] : weight_map) {
    check_shard_name(tensor, shard, name);
    if (shards.emplace(shard, shards.size()).second)
      model.files.push_back(open_safetensors(path.parent_path() / shard));
  }
  std::map<std::string_view, std::size_t> places;
  for (std::size_t k = 0; k < model.files.size(); ++k)
    for (const SafeTensorsEntry& entry : model.files[k].entries)
      if (!places.emplace(entry.name, k).second)
        throw ParseError(fmt::format("{}: tensor {} is in another file of the model too",
                                     model.files[k].file->file().path().string(),
                                     in_quotes(entry.name)));
  for (const auto& [tensor, shard] : weight_map) {
    const auto found = places.find(tensor);
    if (found == places.end() || found->second != shards[shard])
      throw ParseError(
          fmt::format("{}: tensor {} is not in {}", name, in_quotes(tensor), in_quotes(shard)));
  }
  return model;
}

}  // namespace

SafeTensorsFile open_safetensors(const std::filesystem::path& path) {
  auto mapped = std::make_shared<const MappedFile>(path);
  const std::string name = path.string(), text = read_header(mapped->file(), name);
  const Json header = parse_json(text, name + ": header", kMaxHeaderDepth);
  if (!header.is_object())
    throw ParseError(
        fmt::format("{}: header: expected an object, found {}", name, header.type_name()));

  const std::uint64_t data_begin = 8 + text.size(),
                      data_bytes = mapped->bytes().size() - data_begin;
  SafeTensorsFile file{.file = std::move(mapped), .entries = {}, .metadata = {}};
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__")
      file.metadata = extract(name + ": __metadata__", [&value = value] {
        return value.get<std::map<std::string, std::string>>();
      });
    else
      file.entries.push_back(parse_entry(key, value, data_bytes, name));
  }
  check_coverage(file.entries, data_bytes, name);
  for (SafeTensorsEntry& entry : file.entries) entry.begin += data_begin;
  return file;
}

SafeTensorsModel open_safetensors_model(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path chosen =
      std::filesystem::is_directory(path, ignored) ? find_in_folder(path) : path;
  if (chosen.string().ends_with(kIndexEnding)) return open_index(chosen);
  const std::filesystem::path index = with_ending(chosen, kIndexEnding);
  if (!is_there(chosen) && is_there(index)) return open_index(index);
  SafeTensorsModel model{.path = chosen, .files = {}};
  model.files.push_back(open_safetensors(chosen));
  return model;
}

std::string_view safetensors_dtype(DType dtype) {
  for (const FormatType& type : kTypes)
    if (type.dtype == dtype) return type.name;
  throw InternalError("safetensors: a dtype without a name");
}

}  // namespace pantala::io
