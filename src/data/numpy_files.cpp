// NumPy's files: one array (NPY), and zip archives of them (NPZ).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "base/text.h"
#include "data/items.h"
#include "io/npy.h"
#include "io/zip.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::string_view kSuffix = ".npy";

std::vector<std::string> array_names(const io::ZipArchive& archive) {
  std::vector<std::string> names;
  for (const io::ZipArchive::Entry& entry : archive.entries())
    if (entry.name.ends_with(kSuffix))
      names.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
  return names;
}

Array to_array(io::HostArray array) {
  return {.shape = array.shape, .values = std::move(array.values)};
}

}  // namespace

Array read_npy(const std::filesystem::path& path) { return to_array(io::read_npy(path)); }

std::vector<std::string> npz_names(const std::filesystem::path& path) {
  return array_names(io::ZipArchive(path));
}

Array read_npz(const std::filesystem::path& path, const std::string& name) {
  const io::ZipArchive archive(path);
  for (const io::ZipArchive::Entry& entry : archive.entries())
    if (entry.name == name + std::string(kSuffix))
      return to_array(
          io::read_npy(*archive.open(entry), fmt::format("{}: '{}'", path.string(), name)));
  const std::vector<std::string> names = array_names(archive);
  throw TypeError(fmt::format("{}: no array '{}'{}; it has {}", path.string(), name,
                              did_you_mean(name, names),
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  if (array.shape.rank() > 0) check_array(array, "write_npy");
  const std::span<const std::byte> bytes = bytes_of(array);
  const std::int64_t expected = array.shape.numel() * dtype_bytes(array.dtype());
  if (bytes.size() != static_cast<std::size_t>(expected))
    throw TypeError("write_npy: a scalar has one element");
  io::write_npy(path, {array.dtype(), array.shape}, bytes);
}

}  // namespace pantala::data
