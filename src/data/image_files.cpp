// Folders of images: found at once, read one by one when a batch wants them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>

#include "base/hash.h"
#include "base/text.h"
#include "data/is_folder.h"
#include "io/image.h"
#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

namespace fs = std::filesystem;

constexpr std::array kRead = {".png", ".jpg", ".jpeg"};
// Images all the same: to pass them over in silence would lose data.
constexpr std::array kOther = {".bmp", ".gif",  ".jp2",  ".pgm",  ".ppm",
                               ".tif", ".tiff", ".webp", ".avif", ".heic"};
constexpr std::array kValidation = {"val", "valid", "validation", "test"};
constexpr int kMaxDepth = 32;  // fewer than the links that a system follows

struct ImageFile {
  std::string name;  // below the folder
  std::uintmax_t size = 0;
};

bool is_one_of(const std::string& extension, const auto& list) {
  return std::any_of(list.begin(), list.end(), [&](const char* one) { return extension == one; });
}

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& letter : extension)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return extension;
}

// Whether this is an image that can be read.
bool is_image(const fs::path& path) {
  const std::string extension = lower_extension(path);
  if (is_one_of(extension, kOther))
    throw UnsupportedError(
        fmt::format("{}: of the images only PNG and JPEG are read, by the "
                    "extensions {}",
                    path.string(), fmt::join(kRead, ", ")));
  return is_image_name(path);
}

// The entries of a folder, sorted, without hidden ones.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry);
  } catch (const fs::filesystem_error& error) {
    throw IoError(
        fmt::format("{}: cannot read the folder: {}", folder.string(), error.code().message()));
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path().native() < b.path().native(); });
  return entries;
}

// Appends all images below `folder`; links are followed, `depth` ends those that go in a circle.
void find_images(const fs::path& folder, const std::string& prefix, int depth,
                 std::vector<ImageFile>& files) {
  if (depth > kMaxDepth)
    throw IoError(
        fmt::format("{}: more than {} folders within each other; is there a link to one "
                    "of them?",
                    folder.string(), kMaxDepth));
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string name = prefix + entry.path().filename().string();
    std::error_code error;
    if (entry.is_directory(error)) {
      find_images(entry.path(), name + "/", depth + 1, files);
    } else if (is_image(entry.path())) {
      const std::uintmax_t size = entry.file_size(error);
      if (error)
        throw IoError(fmt::format("{}: cannot open: {}", entry.path().string(), error.message()));
      files.push_back({name, size});
    }
  }
}

Array decoded(const fs::path& path, std::int64_t channels) {
  io::HostArray image = io::read_image(path, {.channels = channels});
  return {.shape = image.shape, .values = std::move(image.values)};
}

class ImageSource : public ItemSource {
 public:
  ImageSource(fs::path folder, std::vector<ImageFile> files, std::int64_t channels)
      : folder_(std::move(folder)), files_(std::move(files)), channels_(channels) {}

  std::int64_t items() const override { return static_cast<std::int64_t>(files_.size()); }
  ItemForm form() const override { return {u8, {channels_, 0, 0}, true}; }
  Array item(std::int64_t number) const override {
    return decoded(folder_ / file(number).name, channels_);
  }
  std::string item_name(std::int64_t number) const override { return file(number).name; }
  // To read all files would take too long: an image that was changed has another size, nearly
  // always.
  std::uint64_t hash() const override {
    std::uint64_t hash = hash_combine(kHashSeed, static_cast<std::uint64_t>(channels_));
    for (const ImageFile& file : files_) hash = hash_combine(fnv1a(file.name, hash), file.size);
    return hash;
  }

 private:
  const ImageFile& file(std::int64_t number) const {
    return files_.at(static_cast<std::size_t>(number));
  }

  const fs::path folder_;
  const std::vector<ImageFile> files_;
  const std::int64_t channels_;
};

void check_options(const ImageOptions& options) {
  if (options.channels != 1 && options.channels != 3)
    throw TypeError(
        fmt::format("images: channels is {}; expected 1 (gray) or 3", options.channels));
}

void check_folder(const fs::path& folder, std::string_view expected) {
  if (!is_folder(folder))
    throw IoError(fmt::format("{}: no such folder; expected {}", folder.string(), expected));
}

// The folder's own name, for messages.
std::string name_of(const fs::path& folder) {
  const fs::path whole = fs::weakly_canonical(folder);
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

std::vector<std::string> classes_in(const fs::path& folder) {
  std::vector<std::string> names;
  bool images = false;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (is_folder(entry.path()))
      names.push_back(entry.path().filename().string());
    else
      images = images || is_image(entry.path());
  }
  if (names.empty())
    throw TypeError(
        fmt::format("{}: there is no folder in it{}; expected one per class, with its images",
                    folder.string(), images ? ", only images" : ""));
  return names;
}

// The number of each class that a folder has.
std::map<std::string, std::int64_t> class_numbers(const fs::path& folder,
                                                  const std::vector<std::string>& there,
                                                  const std::vector<std::string>& known) {
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t k = 0; k < known.size(); ++k) numbers[known[k]] = static_cast<std::int64_t>(k);
  for (const std::string& name : there)
    if (!numbers.contains(name))
      throw TypeError(fmt::format("{}: the folder {} is none of the {} classes{}", folder.string(),
                                  in_quotes(name), known.size(), did_you_mean(name, known)));
  return numbers;
}

Dataset image_dataset(const fs::path& folder, std::vector<ImageFile> files,
                      std::vector<std::int64_t> labels, const ImageOptions& options,
                      std::string name) {
  const auto count = static_cast<std::int64_t>(files.size());
  return make_dataset(
      std::make_shared<const ImageSource>(folder, std::move(files), options.channels),
      Array{.shape = {count}, .values = std::move(labels)}, std::move(name));
}

Dataset read_classes(const fs::path& folder, const ImageOptions& options, std::string name) {
  const std::vector<std::string> there = classes_in(folder);
  const std::vector<std::string>& classes = options.classes.empty() ? there : options.classes;
  const auto numbers = class_numbers(folder, there, classes);
  std::vector<ImageFile> files;
  std::vector<std::int64_t> labels;
  for (const std::string& one : there) {
    find_images(folder / one, one + "/", 0, files);
    if (labels.size() == files.size())
      throw TypeError(
          fmt::format("{}: there is no image in this folder (a class is a folder with "
                      "files {})",
                      (folder / one).string(), fmt::join(kRead, ", ")));
    labels.resize(files.size(), numbers.at(one));
  }
  Dataset result =
      image_dataset(folder, std::move(files), std::move(labels), options, std::move(name));
  result.classes = classes;
  return result;
}

}  // namespace

bool is_image_name(const fs::path& path) { return is_one_of(lower_extension(path), kRead); }

Array read_image(const fs::path& path, const ImageOptions& options) {
  check_options(options);
  return decoded(path, options.channels);
}

Dataset read_image_folder(const fs::path& folder, const ImageOptions& options) {
  check_options(options);
  check_folder(folder, "one with a folder of images per class");
  return read_classes(folder, options, name_of(folder));
}

ImageSets read_image_sets(const fs::path& folder, const ImageOptions& options) {
  check_options(options);
  check_folder(folder, "one with a folder of images per class, or with train and val");
  const std::string name = name_of(folder);
  if (!is_folder(folder / "train")) return {read_classes(folder, options, name), {}};
  for (const char* other : kValidation) {
    if (!is_folder(folder / other)) continue;
    ImageSets sets{read_classes(folder / "train", options, name + " (train)"), {}};
    ImageOptions same = options;
    same.classes = sets.train.classes;
    sets.test = read_classes(folder / other, same, fmt::format("{} ({})", name, other));
    return sets;
  }
  return {read_classes(folder, options, name), {}};
}

Dataset read_images(const std::vector<fs::path>& paths, const ImageOptions& options) {
  check_options(options);
  std::vector<ImageFile> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    if (error) throw IoError(fmt::format("{}: cannot open: {}", path.string(), error.message()));
    files.push_back({path.string(), size});
  }
  std::vector<std::int64_t> labels(files.size());
  std::string name = paths.size() == 1 ? paths[0].string() : counted(paths.size(), "image");
  return image_dataset("", std::move(files), std::move(labels), options, std::move(name));
}

Dataset read_images(const fs::path& path, const ImageOptions& options) {
  if (!is_folder(path)) return read_images(std::vector{path}, options);
  check_options(options);
  std::vector<ImageFile> files;
  find_images(path, "", 0, files);
  if (files.empty())
    throw TypeError(fmt::format("{}: there is no image in this folder (files {})", path.string(),
                                fmt::join(kRead, ", ")));
  std::vector<std::int64_t> labels(files.size());
  return image_dataset(path, std::move(files), std::move(labels), options, path.string());
}

}  // namespace pantala::data
