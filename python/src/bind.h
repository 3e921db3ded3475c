// The Python module pantala._pantala: a thin layer over the public headers and the op table. A file
// per subject; the typed classes that users see are written in Python (python/pantala), so nothing
// here is part of their interface.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace pantala::python {

namespace nb = nanobind;

// One of them per file.
void bind_errors(nb::module_& m);
void bind_place(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_recurrent_layers(nb::module_& m);
void bind_optim(nb::module_& m);
void bind_rates(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_session(nb::module_& m);
void bind_session_values(nb::module_& m);
void bind_weights(nb::module_& m);
void bind_onnx(nb::module_& m);
void bind_zoo(nb::module_& m);
void bind_data(nb::module_& m);
void bind_files(nb::module_& m);
void bind_trainer(nb::module_& m);
void bind_run(nb::module_& m);
void bind_generate(nb::module_& m);

}  // namespace pantala::python
