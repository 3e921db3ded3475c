// ONNX files: in, out, and what they say about themselves.
#include "pantala/onnx.h"

#include "arrays.h"
#include "loaders.h"
#include "options.h"

namespace pantala::python {

namespace {

using ShapesByName = std::map<std::string, std::vector<std::int64_t>>;

onnx::ImportOptions import_options(const nb::dict& values) {
  onnx::ImportOptions options;
  ShapesByName shapes;
  Given given(values, "load_onnx");
  given.take("sizes", options.sizes)
      .take("shapes", shapes)
      .take("any_batch", options.any_batch)
      .take("trainable", options.trainable)
      .take("training", options.training)
      .take("as_exported", options.as_exported)
      .take("evaluation", options.evaluation);
  for (const auto& [name, sizes] : shapes) options.shapes.emplace(name, Shape(sizes));
  if (const nb::object bound = given.find("bind"); !bound.is_none())
    for (const auto& [name, value] : nb::cast<nb::dict>(bound))
      options.bind.emplace(nb::cast<std::string>(name), nb::cast<const Literal&>(value));
  given.finish();
  return options;
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

void bind_import(nb::module_& m) {
  nb::class_<onnx::Model>(m, "OnnxModel")
      .def_prop_ro("graph", [](onnx::Model& model) { return Graph(model.graph.data()); })
      .def_prop_ro("weights", [](const onnx::Model& model) { return model.weights; })
      .def_ro("name", &onnx::Model::name)
      .def_ro("opset", &onnx::Model::opset)
      .def_ro("warnings", &onnx::Model::warnings);
  m.def("load_onnx", [](const std::string& path, const nb::dict& given) {
    const onnx::ImportOptions options = import_options(given);
    const nb::gil_scoped_release others_run;
    return onnx::import_model(path, options);
  });
  m.def("parse_onnx", [](const nb::bytes& file, const std::string& name, const nb::dict& given) {
    const onnx::ImportOptions options = import_options(given);
    const auto* first = static_cast<const std::byte*>(file.data());
    const std::span<const std::byte> bytes(first, file.size());
    const nb::gil_scoped_release others_run;
    return onnx::import_model(bytes, name, options, folder_of(name));
  });
}

// {"inputs": [text], "outputs": [text], "operators": {name: nodes}, "tensors": [(name, dtype,
// shape)]}
nb::dict summary_of(const onnx::Summary& summary) {
  const auto texts = [](const std::vector<onnx::Summary::Value>& values) {
    nb::list list;
    for (const onnx::Summary::Value& value : values) list.append(value.name + " " + value.str());
    return list;
  };
  nb::list tensors;
  for (const onnx::Summary::Tensor& tensor : summary.tensors)
    tensors.append(nb::make_tuple(tensor.name, tensor.dtype, nb::tuple(nb::cast(tensor.shape))));
  nb::dict entry;
  entry["inputs"] = texts(summary.inputs);
  entry["outputs"] = texts(summary.outputs);
  entry["operators"] = summary.operators;
  entry["tensors"] = tensors;
  return entry;
}

onnx::ExportOptions export_options(const nb::dict& values) {
  onnx::ExportOptions options;
  Given(values, "export_onnx")
      .take("opset", options.opset)
      .take("outputs", options.outputs)
      .take("verify", options.verify)
      .take("max_inline_bytes", options.max_inline_bytes)
      .take("metadata", options.metadata)
      .finish();
  return options;
}

void bind_export(nb::module_& m) {
  m.def("export_onnx", [](const Graph& graph, const Weights& weights, const std::string& path,
                          const nb::dict& values) {
    const onnx::ExportOptions options = export_options(values);
    const nb::gil_scoped_release others_run;
    onnx::export_model(graph, weights, path, options);
  });
  m.def("export_onnx_batch", [](nb::object graph_of_batch, const Weights& weights,
                                const std::string& path, const nb::dict& values) {
    const onnx::ExportOptions options = export_options(values);
    const auto graph = [kept = kept_object(std::move(graph_of_batch))](std::int64_t batch) {
      const nb::gil_scoped_acquire lock;
      return Graph(nb::cast<const Graph&>((*kept)(batch)));
    };
    onnx::ExportedBatch made;
    {
      const nb::gil_scoped_release others_run;
      made = onnx::export_model(graph, weights, path, options);
    }
    return nb::make_tuple(made.symbolic, made.reason);
  });
}

}  // namespace

void bind_onnx(nb::module_& m) {
  bind_import(m);
  m.def("onnx_summary", [](const std::string& path) { return summary_of(onnx::summarize(path)); });
  bind_export(m);
}

}  // namespace pantala::python
