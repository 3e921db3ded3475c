#include "bind.h"

NB_MODULE(_pantala, m) {
  using namespace pantala::python;
  m.doc() = "The part of the package pantala that is written in C++. Nothing here is for users.";
  m.def("version", [] { return PANTALA_VERSION; });
  // Objects that are still there when the interpreter ends are no mistake of ours: modules keep
  // graphs and sessions in global names.
  nanobind::set_leak_warnings(false);
  for (const auto bind : {bind_errors,
                          bind_place,
                          bind_arrays,
                          bind_graph,
                          bind_ops,
                          bind_layers,
                          bind_recurrent_layers,
                          bind_optim,
                          bind_rates,
                          bind_compile,
                          bind_weights,
                          bind_session,
                          bind_session_values,
                          bind_onnx,
                          bind_zoo,
                          bind_data,
                          bind_files,
                          bind_trainer,
                          bind_run,
                          bind_generate})
    bind(m);
}
