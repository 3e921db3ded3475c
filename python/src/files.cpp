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

data::CsvOptions csv_options(const nb::dict& values) {
  data::CsvOptions options;
  std::string separator = ",";
  bool header = false;
  Given given(values, "read_csv");
  given.take("separator", separator)
      .take("label", options.label)
      .choose("missing", options.missing, {"error", "drop", "keep"})
      .take("one_hot", options.one_hot);
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

void bind_tokens(nb::module_& m) {
  m.def("read_tokens", [](const std::string& path, std::int64_t sequence, std::int64_t stride,
                          const std::string& type, std::int64_t vocabulary) {
    const data::TokenOptions options{sequence, stride, token_type(type), vocabulary};
    return reading([&] { return data::read_tokens(path, options); });
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
  m.def("read_image_folder", [](const std::string& folder, std::int64_t channels) {
    return reading([&] { return data::read_image_folder(folder, {.channels = channels}); });
  });
  m.def("read_image", [](const std::string& path, std::int64_t channels) {
    return to_numpy(reading([&] { return data::read_image(path, {.channels = channels}); }));
  });
  bind_tokens(m);
}

}  // namespace pantala::python
