// Data sets, transforms and loaders.
#include "pantala/data.h"

#include <functional>

#include "loaders.h"
#include "options.h"

namespace pantala::python {

namespace {

using data::Dataset;
using data::Transform;

template <class T, class F>
std::function<Transform(Given&)> made(F take) {
  return [take](Given& given) -> Transform {
    T transform;
    take(given, transform);
    return transform;
  };
}

// Rows: a name, and what takes the transform's options.
using Rows = std::map<std::string, std::function<Transform(Given&)>, std::less<>>;
const Rows& transforms() {
  constexpr auto kSize = [](Given& g, auto& t) {
    g.take("height", t.height).take("width", t.width);
  };
  static const Rows rows = {
      {"Scale", made<data::Scale>([](Given& g, auto& t) { g.take("factor", t.factor); })},
      {"Normalize",
       made<data::Normalize>([](Given& g, auto& t) { g.take("mean", t.mean).take("std", t.std); })},
      {"Reshape", made<data::Reshape>([](Given& g, auto& t) { g.take("shape", t.shape); })},
      {"Pad", made<data::Pad>([](Given& g, auto& t) { g.take("pixels", t.pixels); })},
      {"Resize", made<data::Resize>(kSize)},
      {"RandomCrop", made<data::RandomCrop>(kSize)},
      {"CenterCrop", made<data::CenterCrop>(kSize)},
      {"RandomResizedCrop", made<data::RandomResizedCrop>([kSize](Given& g, auto& t) {
         kSize(g, t);
         g.take("min_area", t.min_area).take("max_area", t.max_area);
         g.take("min_ratio", t.min_ratio).take("max_ratio", t.max_ratio);
       })},
      {"RandomFlip", made<data::RandomFlip>([](Given& g, auto& t) { g.take("p", t.p); })},
      {"ColorJitter", made<data::ColorJitter>([](Given& g, auto& t) {
         g.take("brightness", t.brightness).take("contrast", t.contrast);
         g.take("saturation", t.saturation).take("hue", t.hue);
       })},
      {"RandomRotation",
       made<data::RandomRotation>([](Given& g, auto& t) { g.take("degrees", t.degrees); })},
      {"Channels", made<data::Channels>([](Given& g, auto& t) { g.take("count", t.count); })},
      {"OneHot", made<data::OneHot>([](Given& g, auto& t) { g.take("classes", t.classes); })}};
  return rows;
}

// ("Scale", {"factor": 0.5})
Transform transform_of(const std::string& name, const nb::dict& values) {
  const auto row = transforms().find(name);
  if (row == transforms().end()) throw InternalError("there is no transform " + name);
  Given given(values, name);
  Transform transform = row->second(given);
  given.finish();
  return transform;
}

data::LoaderOptions loader_options(const nb::dict& values) {
  data::LoaderOptions options;
  Given given(values, "loader");
  given.take("batch_size", options.batch_size)
      .take("shuffle", options.shuffle)
      .take("drop_last", options.drop_last)
      .take("seed", options.seed)
      .take("threads", options.threads)
      .take("prefetch", options.prefetch);
  if (const nb::object transforms = given.find("transforms"); !transforms.is_none())
    for (const nb::handle entry : transforms)
      options.transforms.push_back(
          transform_of(nb::cast<std::string>(entry[0]), nb::cast<nb::dict>(entry[1])));
  given.finish();
  return options;
}

nb::tuple form_of(const data::ItemForm& form) {
  return nb::make_tuple(dtype_name(form.dtype), to_tuple(form.shape), form.any_size);
}

// [(name, texts, one_hot)]
nb::list columns_of(const Dataset& set) {
  nb::list columns;
  for (const data::Column& column : set.columns)
    columns.append(nb::make_tuple(column.name, column.texts, column.one_hot));
  return columns;
}

// (numbers, fields, labels) or None
nb::object rows_of(const Dataset& set) {
  if (!set.rows) return nb::none();
  return nb::make_tuple(set.rows->numbers, set.rows->fields, set.rows->labels);
}

void bind_dataset(nb::module_& m) {
  nb::class_<Dataset>(m, "Dataset")
      .def_prop_ro("size", &Dataset::size)
      .def_ro("name", &Dataset::name)
      .def_ro("classes", &Dataset::classes)
      .def("columns", columns_of)
      .def("rows", rows_of)
      .def("item_form", [](const Dataset& set) { return form_of(set.item_form()); })
      .def("label_form", [](const Dataset& set) { return form_of(set.label_form()); })
      .def("data",
           [](const Dataset& set) -> nb::object {
             return set.data ? to_numpy(*set.data) : nb::none();
           })
      .def("labels",
           [](const Dataset& set) -> nb::object {
             return set.labels ? to_numpy(*set.labels) : nb::none();
           })
      .def("select",
           [](const Dataset& set, const std::vector<std::int64_t>& numbers) {
             return data::select(set, numbers);
           })
      .def("slice", [](const Dataset& set, std::int64_t first,
                       std::int64_t count) { return data::slice(set, first, count); })
      .def("split", [](const Dataset& set, std::int64_t count, std::uint64_t seed) {
        return data::split(set, count, seed);
      });
  m.def("make_dataset", [](nb::handle data, nb::handle labels, const std::string& name) {
    if (const ReadArray read(labels, "labels"); read.shape().rank() < 2)
      return data::make_dataset(source_of(data, name), read.array(), name);
    return data::make_dataset(source_of(data, name), source_of(labels, name + " labels"), name);
  });
}

// (data, labels) or None at the end of a pass.
nb::object next_of(data::Loader& loader) {
  std::optional<data::Batch> batch;
  {
    const nb::gil_scoped_release others_run;
    batch = loader.next_batch();
  }
  if (!batch) return nb::none();
  return nb::make_tuple(to_numpy(std::move(batch->data)), to_numpy(std::move(batch->labels)));
}

void bind_loader(nb::module_& m) {
  nb::class_<LoaderBox>(m, "Loader")
      .def("shuffle",
           [](LoaderBox& box, std::uint64_t epoch) {
             const nb::gil_scoped_release others_run;
             box.loader->shuffle(epoch);
           })
      .def("next", [](LoaderBox& box) { return next_of(*box.loader); })
      .def("batches", [](LoaderBox& box) { return box.loader->batches(); })
      .def("items", [](LoaderBox& box) { return box.loader->items(); });
  m.def("make_loader", [](const Dataset& dataset, const nb::dict& given) {
    const data::LoaderOptions options = loader_options(given);
    const nb::gil_scoped_release others_run;
    return LoaderBox{data::make_loader(dataset, options)};
  });
  m.def("iteration_loader",
        [](nb::object iteration) { return LoaderBox{iteration_loader(std::move(iteration))}; });
  m.def("transformed_item", [](const Dataset& dataset, const nb::dict& given) {
    const Type type = data::item_type(dataset, loader_options(given).transforms);
    return nb::make_tuple(dtype_name(type.dtype), to_tuple(type.shape));
  });
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_dataset(m);
  bind_loader(m);
}

}  // namespace pantala::python
