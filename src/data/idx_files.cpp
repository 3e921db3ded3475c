// Data sets in IDX files: the MNIST family.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "data/is_folder.h"
#include "io/idx.h"
#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr std::array kParts = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// The part as it is in the folder: plain or compressed, also with the dot that some archives put
// for the second dash. Empty if it is not there.
fs::path find_part(const fs::path& folder, const std::string& part) {
  std::string dotted = part;
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& name : {part, part + ".gz", dotted, dotted + ".gz"}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return {};
}

Dataset read_part(const fs::path& images_path, const fs::path& labels_path, std::string name) {
  Array images = read_idx(images_path), labels = read_idx(labels_path);
  const auto refuse = [](const fs::path& path, const Array& array, std::string_view expected) {
    throw ParseError(fmt::format("{}: holds {}; expected {}", path.string(),
                                 Type{array.dtype(), array.shape}.str(), expected));
  };
  if (images.shape.rank() != 3) refuse(images_path, images, "images, [items, height, width]");
  if (labels.shape.rank() != 1 || !is_integer(labels.dtype()))
    refuse(labels_path, labels, "integer labels, [items]");
  if (images.items() != labels.items())
    throw ParseError(fmt::format("{}: {} labels for the {} images of {}", labels_path.string(),
                                 labels.items(), images.items(), images_path.string()));
  images.shape = images.shape.insert(1, 1);  // the channel
  return make_dataset(std::move(images), std::move(labels), std::move(name));
}

}  // namespace

Array read_idx(const fs::path& path) {
  io::HostArray array = io::read_idx(path);
  return {.shape = array.shape, .values = std::move(array.values)};
}

TrainTest read_idx_folder(const fs::path& folder) {
  if (!is_folder(folder))
    throw IoError(fmt::format("{}: no such folder; expected one with {} (or each with .gz)",
                              folder.string(), fmt::join(kParts, ", ")));
  std::array<fs::path, kParts.size()> paths;
  std::vector<std::string> missing;
  for (std::size_t k = 0; k < kParts.size(); ++k) {
    paths[k] = find_part(folder, kParts[k]);
    if (paths[k].empty()) missing.emplace_back(kParts[k]);
  }
  if (!missing.empty())
    throw IoError(fmt::format("{}: there is no {} (nor with .gz) in this folder", folder.string(),
                              fmt::join(missing, ", no ")));
  const std::string name = fs::weakly_canonical(folder).filename().string();
  return {.train = read_part(paths[0], paths[1], name + " (train)"),
          .test = read_part(paths[2], paths[3], name + " (test)")};
}

TrainTest fashion_mnist() {
  std::vector<fs::path> folders;
  if (const char* root = std::getenv("PANTALA_DATA"); root && *root)
    folders.push_back(fs::path(root) / "fashion-mnist");
  folders.emplace_back(kDebianFolder);
  for (const fs::path& folder : folders) {
    if (!is_folder(folder)) continue;
    TrainTest sets = read_idx_folder(folder);
    sets.train.classes =
        sets.test.classes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                             "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
    return sets;
  }
  throw IoError(fmt::format(
      "Fashion-MNIST is not there: no {} and no folder fashion-mnist in $PANTALA_DATA\n"
      "install it (sudo apt install dataset-fashion-mnist), or set PANTALA_DATA to a folder with "
      "fashion-mnist/{} and its three companions",
      kDebianFolder, kParts[0]));
}

}  // namespace pantala::data
