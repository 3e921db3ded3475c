// Optimizers from their table.
#include "pantala/optim.h"

#include "bind.h"
#include "options.h"

namespace pantala::python {

namespace {

nb::dict described(const optim::OptimizerDescription& optimizer) {
  nb::list options;
  for (const optim::OptionDescription& option : optimizer.options) {
    nb::dict entry;
    entry["name"] = option.name;
    entry["default"] = to_python(option.default_value);
    entry["rule"] = option.rule;
    entry["doc"] = option.doc;
    options.append(entry);
  }
  nb::dict entry;
  entry["name"] = optimizer.name;
  entry["doc"] = optimizer.doc;
  entry["options"] = options;
  return entry;
}

}  // namespace

void bind_optim(nb::module_& m) {
  using optim::Optimizer;
  nb::class_<Optimizer>(m, "Optimizer")
      .def_prop_ro("name", &Optimizer::name)
      .def_prop_ro("values", [](const Optimizer& o) { return nb::cast(o.values()); })
      .def_prop_ro("flags", [](const Optimizer& o) { return nb::cast(o.flags()); })
      .def("replaced", &Optimizer::with)
      .def("replaced_flag", &Optimizer::with_flag)
      .def("scalars", &Optimizer::scalars)
      .def("same_graph", &Optimizer::same_graph)
      .def("text", &Optimizer::str)
      .def("__eq__", [](const Optimizer& a, const Optimizer& b) { return a == b; });
  m.def("optimizer_table", [] {
    nb::list list;
    for (const optim::OptimizerDescription& optimizer : optim::descriptions())
      list.append(described(optimizer));
    return list;
  });
  m.def("optimizer", [](std::string_view name, const nb::dict& options) {
    return optim::from_options(name, named_options(options));
  });
}

}  // namespace pantala::python
