// Data sets from files.
#include "arrays.h"
#include "bind.h"
#include "options.h"
#include "pantala/data.h"

namespace pantala::python {

namespace {

using data::TrainTest;

std::pair<data::Dataset, data::Dataset> both(TrainTest sets) {
  return {std::move(sets.train), std::move(sets.test)};
}

// Runs f without the interpreter's lock.
template <class F>
auto reading(F&& f) {
  const nb::gil_scoped_release others_run;
  return f();
}

// (name, texts, one_hot)
data::Column column_of(nb::handle entry) {
  return {nb::cast<std::string>(entry[0]), nb::cast<std::vector<std::string>>(entry[1]),
          nb::cast<bool>(entry[2])};
}

data::CsvOptions csv_options(const nb::dict& values) {
  data::CsvOptions options;
  std::string separator = ",";
  bool header = false;
  Given given(values, "read_csv");
  given.take("separator", separator)
      .take("label", options.label)
      .choose("missing", options.missing, {"error", "drop", "keep"})
      .take("one_hot", options.one_hot)
      .take("label_may_lack", options.label_may_lack)
      .take("keep_rows", options.keep_rows);
  if (const nb::object like = given.find("like"); !like.is_none())
    for (const nb::handle entry : like) options.like.push_back(column_of(entry));
  if (!given.find("header").is_none()) given.take("header", header), options.header = header;
  given.finish();
  options.separator.reset();
  if (separator.size() == 1)
    options.separator = separator[0];
  else if (separator != "auto")
    throw TypeError("read_csv: separator must be one character or 'auto', got '" + separator + "'");
  return options;
}

data::TokenType token_type(const std::string& name) {
  if (name == "u8") return data::TokenType::u8;
  if (name == "u16") return data::TokenType::u16;
  if (name == "i32") return data::TokenType::i32;
  throw TypeError("read_tokens: type must be u8, u16 or i32, got '" + name + "'");
}

data::ImageOptions image_options(std::int64_t channels, std::vector<std::string> classes) {
  return {.channels = channels, .classes = std::move(classes)};
}

using Names = std::vector<std::string>;

void bind_images(nb::module_& m) {
  m.def("read_image", [](const std::string& path, std::int64_t channels) {
    return to_numpy(reading([&] { return data::read_image(path, {.channels = channels}); }));
  });
  m.def("read_image_folder", [](const std::string& folder, std::int64_t channels, Names classes) {
    const data::ImageOptions options = image_options(channels, std::move(classes));
    return reading([&] { return data::read_image_folder(folder, options); });
  });
  m.def("read_image_sets", [](const std::string& folder, std::int64_t channels, Names classes) {
    const data::ImageOptions options = image_options(channels, std::move(classes));
    data::ImageSets sets = reading([&] { return data::read_image_sets(folder, options); });
    return std::pair(std::move(sets.train), std::move(sets.test));
  });
  m.def("read_images", [](const std::string& path, std::int64_t channels) {
    return reading([&] { return data::read_images(path, {.channels = channels}); });
  });
  m.def("read_image_files", [](const Names& files, std::int64_t channels) {
    const std::vector<std::filesystem::path> paths(files.begin(), files.end());
    return reading([&] { return data::read_images(paths, {.channels = channels}); });
  });
  m.def("is_image_name", [](const std::string& path) { return data::is_image_name(path); });
}

void bind_array_files(nb::module_& m) {
  m.def("read_idx", [](const std::string& path) {
    return to_numpy(reading([&] { return data::read_idx(path); }));
  });
  m.def("read_npy", [](const std::string& path) {
    return to_numpy(reading([&] { return data::read_npy(path); }));
  });
  m.def("read_npz", [](const std::string& path, const std::string& name) {
    return to_numpy(reading([&] { return data::read_npz(path, name); }));
  });
  m.def("npz_names", [](const std::string& path) { return data::npz_names(path); });
  m.def("write_npy", [](const std::string& path, nb::handle values) {
    const data::Array array = ReadArray(values, "write_npy").array();
    reading([&] { data::write_npy(path, array); });
  });
  m.def("read_safetensors", [](const std::string& path, const std::string& name) {
    return to_numpy(reading([&] { return data::read_safetensors(path, name); }));
  });
  m.def("safetensors_names", [](const std::string& path) { return data::safetensors_names(path); });
}

void bind_tokens(nb::module_& m) {
  m.def("read_tokens", [](const std::string& path, std::int64_t sequence, std::int64_t stride,
                          const std::string& type, std::int64_t vocabulary) {
    const data::TokenOptions options{sequence, stride, token_type(type), vocabulary};
    return reading([&] { return data::read_tokens(path, options); });
  });
  m.def("read_token_parts", [](const std::string& path, std::int64_t sequence, std::int64_t stride,
                               const std::string& type, std::int64_t vocabulary, double share) {
    const data::TokenOptions options{sequence, stride, token_type(type), vocabulary};
    return both(reading([&] { return data::read_tokens(path, options, share); }));
  });
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("fashion_mnist", [] { return both(reading([] { return data::fashion_mnist(); })); });
  m.def("read_idx_folder", [](const std::string& folder) {
    return both(reading([&] { return data::read_idx_folder(folder); }));
  });
  m.def("read_csv", [](const std::string& path, const nb::dict& given) {
    const data::CsvOptions options = csv_options(given);
    return reading([&] { return data::read_csv(path, options); });
  });
  bind_array_files(m);
  bind_images(m);
  bind_tokens(m);
}

}  // namespace pantala::python
