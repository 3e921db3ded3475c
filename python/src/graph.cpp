// Graphs and handles to their values.
#include "pantala/graph.h"

#include "arrays.h"
#include "bind.h"
#include "pantala/autodiff.h"
#include "pantala/interpreter.h"
#include "pantala/text.h"
#include "pantala/training_step.h"
#include "place.h"

namespace pantala::python {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::string_view kLeafKinds[] = {"input", "parameter", "state", "scalar"};

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor>(m, "Tensor")
      .def_prop_ro("shape", [](const Tensor& t) { return to_tuple(t.shape()); })
      .def_prop_ro("dtype", [](const Tensor& t) { return dtype_name(t.dtype()); })
      .def_prop_ro("rank", [](const Tensor& t) { return t.rank(); })
      .def_prop_ro("type", [](const Tensor& t) { return t.type().str(); })
      .def_prop_ro("node", [](const Tensor& t) { return t.id().node; })
      .def_prop_ro("result", [](const Tensor& t) { return t.id().result; })
      .def_prop_ro("graph", [](const Tensor& t) { return Graph(t.graph()); })
      .def("same", [](const Tensor& a, const Tensor& b) { return a == b; });
}

// One function for each kind of initialiser, by its name and numbers.
void bind_initializer(nb::module_& m) {
  nb::class_<Initializer>(m, "Initializer")
      .def("text", [](const Initializer& i) { return to_text(i); })
      .def("__eq__", [](const Initializer& a, const Initializer& b) { return a == b; });
  m.def("init_zeros", init::zeros);
  m.def("init_ones", init::ones);
  m.def("init_constant", init::constant);
  m.def("init_uniform", init::uniform);
  m.def("init_normal", init::normal);
  m.def("init_truncated_normal", init::truncated_normal);
  m.def("init_xavier_uniform", init::xavier_uniform);
  m.def("init_xavier_normal", init::xavier_normal);
  m.def("init_kaiming_uniform", init::kaiming_uniform);
  m.def("init_kaiming_normal", init::kaiming_normal);
  m.def("init_orthogonal", init::orthogonal);
  m.def("init_from_data", [](const Literal& values) { return init::from_data(values); });
  m.def("init_make", [](const Initializer& i, const Sizes& shape, std::string_view dtype,
                        std::string_view name, std::uint64_t seed) {
    return to_numpy(init::make(i, {dtype_named(dtype), Shape(shape)}, name, seed));
  });
}

nb::list leaves_of(const Graph& graph) {
  nb::list list;
  for (const Leaf& leaf : graph.leaves())
    list.append(
        nb::make_tuple(kLeafKinds[static_cast<std::size_t>(leaf.kind)], leaf.name, leaf.value));
  return list;
}

void bind_leaves(nb::class_<Graph>& graph) {
  graph
      .def("input",
           [](Graph& g, std::string_view name, const Sizes& shape, std::string_view dtype) {
             return g.input(name, shape, dtype_named(dtype), python_place());
           })
      .def("parameter",
           [](Graph& g, std::string_view name, const Sizes& shape, const Initializer& init,
              std::string_view dtype) {
             return g.parameter(name, shape, init, dtype_named(dtype), python_place());
           })
      .def("state",
           [](Graph& g, std::string_view name, const Sizes& shape, const Initializer& init,
              std::string_view dtype) {
             return g.state(name, shape, init, dtype_named(dtype), python_place());
           })
      .def("scalar", [](Graph& g, std::string_view name,
                        double value) { return g.scalar(name, value, python_place()); })
      .def("constant",
           [](Graph& g, double value, const Sizes& shape, std::string_view dtype) {
             return g.constant(value, shape, dtype_named(dtype), python_place());
           })
      .def("data",
           [](Graph& g, const Literal& values) { return g.constant(values, python_place()); })
      .def("rng_seed", &Graph::rng_seed)
      .def("rng_draw", &Graph::rng_draw);
}

using Outputs = std::vector<std::pair<std::string, Tensor>>;

void bind_results(nb::class_<Graph>& graph) {
  graph
      .def("add_output", [](Graph& g, std::string_view name,
                            const Tensor& value) { g.output(name, value, python_place()); })
      .def("update", [](Graph& g, const Tensor& leaf,
                        const Tensor& value) { g.update(leaf, value, python_place()); })
      .def("size", &Graph::size)
      .def("leaves", leaves_of)
      .def("leaf", &Graph::leaf)
      .def("find", &Graph::find)
      .def("output", [](const Graph& g, std::string_view name) { return g.output(name); })
      .def("outputs", [](const Graph& g) { return g.outputs(); })
      .def("updates", [](const Graph& g) { return g.updates(); })
      .def("has", &Graph::has)
      .def("same", [](const Graph& a, const Graph& b) { return a.data() == b.data(); })
      .def("value", [](const Graph& g, const Tensor& value) { return g.value(value.id()); })
      .def("with_outputs",
           [](const Graph& g, const Outputs& outputs) { return g.with_outputs(outputs); })
      .def("without_updates", [](const Graph& g) { return g.without_updates(); })
      .def("copy", [](const Graph& g) { return Graph(g); })
      .def("text",
           [](const Graph& g, bool locations) { return to_text(g, {.locations = locations}); });
}

ref::Bindings bindings_of(const nb::dict& values) {
  ref::Bindings bindings;
  for (const auto& [name, literal] : values)
    bindings.emplace(nb::cast<std::string>(name), nb::cast<const Literal&>(literal));
  return bindings;
}

nb::list evaluate(const Graph& graph, const std::vector<Tensor>& values, const nb::dict& bindings,
                  std::uint64_t seed) {
  const ref::Bindings bound = bindings_of(bindings);
  std::vector<Literal> results;
  {
    const nb::gil_scoped_release others_run;
    results = ref::evaluate(graph, values, bound, seed);
  }
  nb::list list;
  for (Literal& result : results) list.append(nb::cast(std::move(result)));
  return list;
}

}  // namespace

void bind_graph(nb::module_& m) {
  bind_tensor(m);
  bind_initializer(m);
  auto bound = nb::class_<Graph>(m, "Graph").def(nb::init<>());
  bind_leaves(bound);
  bind_results(bound);
  m.def("parse_graph",
        [](std::string_view text, std::string_view file) { return parse_graph(text, file); });
  m.def("verify", verify);
  m.def(
      "differentiate",
      [](const Graph& graph, const Tensor& loss, const std::vector<Tensor>& wrt,
         const std::optional<Tensor>& seed, bool keep_stop_gradients) {
        Gradients result = differentiate(
            graph, loss, wrt,
            {.seed = seed.value_or(Tensor()), .keep_stop_gradients = keep_stop_gradients});
        return std::pair(std::move(result.graph), std::move(result.gradients));
      },
      nb::arg("graph"), nb::arg("loss"), nb::arg("wrt"), nb::arg("seed").none(),
      nb::arg("keep_stop_gradients"));
  m.def("evaluate", evaluate);
}

}  // namespace pantala::python
