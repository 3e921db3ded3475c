// Data for training: arrays in their own types, data sets, transforms, and loaders that hand out
// batches. Files are read by the functions below (IDX, CSV, NPY, NPZ, safetensors, PNG and JPEG,
// tokens); every mistake in them is a ParseError that names file and place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pantala/host_elements.h"
#include "pantala/shape.h"

namespace pantala::data {

// A dense tensor in its own element type, row-major. The first axis counts the items.
struct Array {
  using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                              std::vector<std::int64_t>, std::vector<std::uint8_t>>;
  Shape shape = {0};
  Values values;

  DType dtype() const;
  std::int64_t items() const { return shape.rank() == 0 ? 0 : shape[0]; }
  Shape item_shape() const;  // without the first axis
  HostElements elements() const;
  friend bool operator==(const Array&, const Array&) = default;
};

// What the items of a data set have in common.
struct ItemForm {
  DType dtype = f32;
  Shape shape;            // of an item
  bool any_size = false;  // height and width, the last two axes, differ: they are 0 in `shape`
  std::string str() const;
  friend bool operator==(const ItemForm&, const ItemForm&) = default;
};

// An array that belongs to the model's input of this name.
struct NamedArray {
  std::string name;
  Array array;
};

// What one step reads.
struct Batch {
  Array data, labels;
  // Of models with several inputs, those beside the data.
  std::vector<NamedArray> more = {};
  // Of a part of a batch: how many items that has, and which of them is the first one here. 0 of
  // them: this is all of it.
  std::int64_t whole = 0, first = 0;
  std::int64_t items() const { return data.items(); }
  std::int64_t whole_items() const { return whole > 0 ? whole : items(); }
};

// A column of the data of a table.
struct Column {
  std::string name;                // "" if it has none
  std::vector<std::string> texts;  // of a column of text: what its numbers 0, 1, ... stand for
  bool one_hot = false;            // it is a column of data per text, 1 for items that have it
  friend bool operator==(const Column&, const Column&) = default;
};

// What a table says of its items, as it stands there, for those who show it.
struct TableRows {
  std::vector<std::int64_t> numbers;  // of the items among the lines of data, from 0
  std::vector<std::string> fields;    // of the columns, item by item
  std::vector<std::string> labels;    // empty if there is no such column
};

// Items that are made when a batch wants them, by the thread that makes the batch: data sets need
// not fit into memory.
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  virtual std::int64_t items() const = 0;
  virtual ItemForm form() const = 0;
  // Item `number`, without an axis of items: the same whenever it is asked for. Several threads do
  // so at a time.
  virtual Array item(std::int64_t number) const = 0;
  virtual std::string item_name(std::int64_t number) const = 0;  // for messages
  // Changes with the items, as far as that can be told without making them all.
  virtual std::uint64_t hash() const = 0;
};

// Items with labels. Copies share them.
struct Dataset {
  std::shared_ptr<const Array> data, labels;
  std::string name;                  // for messages
  std::vector<std::string> classes;  // names of the classes, if they have some
  std::vector<Column> columns;       // of the data, if they come from a table
  // Each stands for the array that is not there.
  std::shared_ptr<const ItemSource> data_source = {}, label_source = {};
  std::shared_ptr<const TableRows> rows = {};  // of a table, if somebody wanted to have them

  std::int64_t size() const;
  ItemForm item_form() const, label_form() const;  // TypeError if there are none
};
// TypeError unless both have the same number of items.
Dataset make_dataset(Array data, Array labels, std::string name = "data");
// TypeError unless there are as many labels as items.
Dataset make_dataset(std::shared_ptr<const ItemSource> data, Array labels,
                     std::string name = "data");
Dataset make_dataset(std::shared_ptr<const ItemSource> data,
                     std::shared_ptr<const ItemSource> labels, std::string name = "data");
// The items with these numbers, in this order, in a data set of its own; TypeError if there is no
// such item.
Dataset select(const Dataset& dataset, const std::vector<std::int64_t>& numbers);
// The items first, first + 1, ..., in a data set of its own.
Dataset slice(const Dataset& dataset, std::int64_t first, std::int64_t count);
// A seeded random split: (the rest, `count` items).
std::pair<Dataset, Dataset> split(const Dataset& dataset, std::int64_t count, std::uint64_t seed);

// --- transforms

// Transforms are applied to each item when a batch is made, in order. Random ones draw from
// (loader seed, epoch, item), so an item looks the same whoever makes the batch, and when.
struct Scale {  // to f32, times factor
  double factor = 1.0 / 255;
};
// To f32; (x - mean) / std by channel (the first axis of the item), or one for all.
struct Normalize {
  std::vector<double> mean, std;
};
struct Reshape {  // of an item; -1 at most once
  std::vector<std::int64_t> shape;
};
struct Pad {  // zeros around the last two axes
  std::int64_t pixels = 0;
};
// Bilinear, with antialiasing: what torchvision's and Pillow's Resize make of images. Of the last
// two axes; bytes stay bytes.
struct Resize {
  std::int64_t height = 0;
  std::int64_t width = 0;  // 0: the shorter side becomes `height` long, the other one follows
};
struct RandomCrop {  // a window of the last two axes
  std::int64_t height = 0, width = 0;
};
struct CenterCrop {
  std::int64_t height = 0, width = 0;
};
// A window of random area (as a share of the image) and ratio of width to height, resized.
struct RandomResizedCrop {
  std::int64_t height = 0, width = 0;
  double min_area = 0.08, max_area = 1;
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;
};
struct RandomFlip {  // of the last axis
  double p = 0.5;
};
// torchvision's ColorJitter: factors of brightness, contrast and saturation from [1 - x, 1 + x],
// not below 0, and a turn of the hue from [-x, x] (of 1; at most 0.5), in a random order. Of bytes,
// or of f32 in [0, 1] (ValueError for others), with 1 or 3 channels; one has neither saturation nor
// hue.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
// By an angle from [-degrees, degrees] about the middle of the last two axes; bilinear, what comes
// from outside is 0.
struct RandomRotation {
  double degrees = 0;
};
// Of the first axis: one channel is repeated; red, green and blue become gray (ITU-R 601, for bytes
// as Pillow rounds it) for 1.
struct Channels {
  std::int64_t count = 3;
};
struct OneHot {  // of the label: an f32 vector
  std::int64_t classes = 0;
};
using Transform =
    std::variant<Scale, Normalize, Reshape, Pad, Resize, RandomCrop, CenterCrop, RandomResizedCrop,
                 RandomFlip, ColorJitter, RandomRotation, Channels, OneHot>;

// --- loaders
class Loader {
 public:
  virtual ~Loader() = default;
  // Orders the next passes by (the loader's own seed, `epoch`), and rewinds.
  virtual void shuffle(std::uint64_t epoch) = 0;
  // Back to the first batch of the same order.
  virtual void reset() = 0;
  // Empty at the end of the pass.
  virtual std::optional<Batch> next_batch() = 0;
  // Back to the state after shuffle(epoch) and `batches` calls of next_batch(). The default makes
  // and drops them.
  virtual void seek(std::uint64_t epoch, std::int64_t batches);
  // Batches a pass, if known.
  virtual std::optional<std::int64_t> batches() const { return {}; }
  // Items a pass, if known.
  virtual std::optional<std::int64_t> items() const { return {}; }
  // The different sizes of a pass's batches, as far as they are known: what they need can be
  // compiled before they come.
  virtual std::vector<std::int64_t> batch_sizes() const { return {}; }
  // Changes with the data, their order and the batches; a resumed run compares it. "": not known.
  virtual std::string fingerprint() const { return {}; }
};

struct LoaderOptions {
  std::int64_t batch_size = 64;
  // False: the order of the data set. shuffle() then rewinds, and random transforms still draw by
  // its epoch.
  bool shuffle = true;
  bool drop_last = false;
  std::uint64_t seed = 0;
  int threads = 1;            // that make batches ahead; 0: the caller's own
  std::int64_t prefetch = 4;  // at most so many batches wait
  std::vector<Transform> transforms = {};
  // Each batch is cut into so many shards (pantala/distributed.h), and of them only those from
  // first_shard to before last_shard are made. Sizes and fingerprint are those of whole batches.
  std::int64_t shards = 1, first_shard = 0, last_shard = 1;
};
// TypeError for options out of range and for transforms that do not fit the items, ValueError for a
// label that OneHot has no class for. An exception in a loading thread is thrown by the
// next_batch() that would have given its batch. Before the first shuffle() the loader is as after
// shuffle(0). The number of threads changes no batch.
std::unique_ptr<Loader> make_loader(const Dataset& dataset, const LoaderOptions& options = {});
// Batches that are there already, in their order (shuffle() permutes whole batches).
std::unique_ptr<Loader> make_loader(std::vector<Batch> batches, std::uint64_t seed = 0);

// The type of an item's data after the transforms.
Type item_type(const Dataset& dataset, const std::vector<Transform>& transforms);

// --- files
Array read_idx(const std::filesystem::path& path);  // .gz too
// NumPy's types f4, f8, i4, i8 and u1 as they are, f2 as f32, i1, i2 and u2 as i32, u4 and u8 as
// i64, b1 as u8; UnsupportedError for others, and for a u8 from 2^63 on.
Array read_npy(const std::filesystem::path& path);
// TypeError with the nearest name if there is no such array.
Array read_npz(const std::filesystem::path& path, const std::string& name);
std::vector<std::string> npz_names(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Array& array);
// A tensor of what Weights::open() takes: f16 and bf16 as f32, bools as u8, others as Weights has
// them.
Array read_safetensors(const std::filesystem::path& path, const std::string& name);
std::vector<std::string> safetensors_names(const std::filesystem::path& path);

// What becomes of a line of a table in which a field is empty, or one of NA, N/A, n/a, NaN, nan,
// NULL, null, None and ? without quotes.
enum class Missing : std::uint8_t {
  error,
  drop,  // it is left out
  // A number is NaN, for the caller to replace. A text counts as it is: the empty one, too.
  keep,
};

struct CsvOptions {
  // Not set: the one of ',', ';', tab and '|' by which all of the first lines have equally many
  // fields, at least two; TypeError if that is true of ',' and of another one.
  std::optional<char> separator = ',';
  // Not set: there is one if a name stands above a number, or if the first line has only names.
  std::optional<bool> header = {};
  std::string label = "";  // column, by name or by number from 0; "": the last one
  // The columns that a model was trained with: the file's must be the same, and its texts get the
  // numbers that they had there. Empty: any.
  std::vector<Column> like = {};
  // The file may have the columns of `like` alone; the labels are all 0 then.
  bool label_may_lack = false;
  Missing missing = Missing::error;  // not of a label: that may only be in a line that is left out
  // Columns of text that become one column per text each: by name, by number from 0, or by a
  // pattern ("*": all). What is named exactly is text even if it looks like numbers. With `like`
  // the columns are those that it says.
  std::vector<std::string> one_hot = {};
  bool keep_rows = false;  // in Dataset::rows
};
// Columns of numbers become f32 data; a column of text becomes its class numbers in order of first
// appearance (for the label: also names in `classes`). The first field of a column decides. Labels
// that are all whole numbers, written with digits alone, become i64 classes [items], others f32
// [items, 1]. ParseError with line and column for anything that is neither; TypeError for a label
// column that is not there, and for columns that are not those of `like`.
Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

// The four IDX files of the MNIST family in a folder, plain or .gz. Images are [items, 1, height,
// width].
struct TrainTest {
  Dataset train, test;
};
TrainTest read_idx_folder(const std::filesystem::path& folder);
// From where Debian's package dataset-fashion-mnist puts it, or from $PANTALA_DATA/fashion-mnist;
// IoError saying how to get it.
TrainTest fashion_mnist();

// --- images

// PNG and JPEG files, u8 [channels, height, width], each of its own size. They are read when a
// batch wants them, and are what Pillow's convert("RGB") (or "L") makes of them: alpha is dropped,
// a camera's note of orientation is not followed. ParseError for damaged files.
struct ImageOptions {
  std::int64_t channels = 3;  // or 1: gray
  // The classes, by number, which are all that the folder may have; empty: those of the folder.
  std::vector<std::string> classes = {};
};
Array read_image(const std::filesystem::path& path, const ImageOptions& options = {});
// A class per sub-folder, by name in sorted order, with all the images below it; labels are i64
// [items]. Names that begin with a dot are passed over, and so are files whose extension is not one
// of images (.png, .jpg, .jpeg, in any case); UnsupportedError for images of other kinds, TypeError
// for a folder without classes and a class without images. The hash of the data is of names and
// sizes of the files.
Dataset read_image_folder(const std::filesystem::path& folder, const ImageOptions& options = {});
// The same of a folder with `train` and one of `val`, `valid`, `validation` or `test`, whose
// classes are those of `train`; of any other folder all is `train`.
struct ImageSets {
  Dataset train;
  std::optional<Dataset> test;
};
ImageSets read_image_sets(const std::filesystem::path& folder, const ImageOptions& options = {});
// By its extension.
bool is_image_name(const std::filesystem::path& path);
// A file, or all images below a folder in the order of their paths; the labels are all 0. Items are
// called as they are below the folder; a single file, and those of a list, by their paths.
Dataset read_images(const std::filesystem::path& path, const ImageOptions& options = {});
Dataset read_images(const std::vector<std::filesystem::path>& files,
                    const ImageOptions& options = {});

// --- tokens

// Text as numbers, one after the other in a file without a header. The file is mapped, not copied.
enum class TokenType : std::uint8_t { u8, u16, i32 };  // the lowest byte first
struct TokenOptions {
  std::int64_t sequence = 128;  // tokens of an item
  std::int64_t stride = 0;      // from the beginning of an item to that of the next; 0: sequence
  TokenType type = TokenType::u16;  // u8: also any text, byte by byte
  std::int64_t vocabulary = 0;      // tokens lie below; 0: not checked
};
// Items are i64 [sequence]; their labels, i64 [sequence], are the tokens that follow each of
// theirs. ParseError for a file that ends within a token, TypeError for one with too few of them,
// ValueError for a token outside of the vocabulary, with its place.
Dataset read_tokens(const std::filesystem::path& path, const TokenOptions& options = {});
// The same in two parts: the last `share` of the tokens is the test set. They have no token in
// common.
TrainTest read_tokens(const std::filesystem::path& path, const TokenOptions& options, double share);

}  // namespace pantala::data
