// What lives in a session from step to step, files, and looking inside.
#include "arrays.h"
#include "options.h"
#include "session_box.h"

namespace pantala::python {

namespace {

void check_shape(std::string_view name, const Shape& given, const Type& expected) {
  if (!(given == expected.shape))
    throw TypeError(fmt::format("'{}' is {}, got {}", name, expected.str(), given.str()));
}

using Reading = void (Session::*)(std::string_view, const HostBuffer&) const;
nb::object stored(const SessionBox& box, std::string_view name, nb::handle out, Reading read) {
  return box.use([&](Session& s) {
    // The session itself says which of the two there is no such name of.
    const auto fill = [&](const HostBuffer& into) {
      const nb::gil_scoped_release others_run;
      (s.*read)(name, into);
    };
    const Type type = s.stored_type(name);
    if (out.is_none()) return new_array(type, fill);
    fill(written_array(out, type, fmt::format("'{}'", name)));
    return nb::object(nb::borrow(out));
  });
}

using WritingElements = void (Session::*)(std::string_view, const HostElements&);
using WritingLiteral = void (Session::*)(std::string_view, const Literal&);
void set_stored(const SessionBox& box, std::string_view name, nb::handle values,
                WritingElements write, WritingLiteral write_literal) {
  const std::string what = fmt::format("'{}'", name);
  const ReadArray array(values, what);
  box.use([&](Session& s) {
    const Type type = s.stored_type(name);
    check_shape(name, array.shape(), type);
    const nb::gil_scoped_release others_run;
    if (is_half(type.dtype))
      (s.*write_literal)(name, array.rounded_to(type.dtype, what));
    else
      (s.*write)(name, array.elements());
  });
}

void bind_stored(nb::class_<SessionBox>& session) {
  session
      .def("parameters",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.parameters(); }); })
      .def("states",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.states(); }); })
      .def(
          "parameter",
          [](const SessionBox& box, std::string_view name, nb::handle out) {
            return stored(box, name, out, &Session::parameter);
          },
          nb::arg("name"), nb::arg("out").none())
      .def(
          "state",
          [](const SessionBox& box, std::string_view name, nb::handle out) {
            return stored(box, name, out, &Session::state);
          },
          nb::arg("name"), nb::arg("out").none())
      .def("stored_type",
           [](const SessionBox& box, std::string_view name) {
             return box.use([&](Session& s) {
               const Type type = s.stored_type(name);
               return nb::make_tuple(dtype_name(type.dtype), to_tuple(type.shape));
             });
           })
      .def("set_parameter",
           [](const SessionBox& box, std::string_view name, nb::handle values) {
             set_stored(box, name, values, &Session::set_parameter, &Session::set_parameter);
           })
      .def("set_state", [](const SessionBox& box, std::string_view name, nb::handle values) {
        set_stored(box, name, values, &Session::set_state, &Session::set_state);
      });
}

void bind_gradients(nb::class_<SessionBox>& session) {
  session
      .def("gradient",
           [](const SessionBox& box, std::string_view name) {
             return to_numpy(box.run([&](Session& s) { return s.gradient(name); }));
           })
      .def("set_gradient",
           [](const SessionBox& box, std::string_view name, nb::handle values) {
             const Literal literal = ReadArray(values, "gradient").literal();
             box.run([&](Session& s) { s.set_gradient(name, literal); });
           })
      .def("observed", [](const SessionBox& box, std::string_view name) {
        return to_numpy(box.run([&](Session& s) { return s.observed(name); }));
      });
}

void bind_scalars(nb::class_<SessionBox>& session) {
  session
      .def("scalars",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.scalars(); }); })
      .def("scalar",
           [](const SessionBox& box, std::string_view name) {
             return box.use([&](Session& s) { return s.scalar(name); });
           })
      .def("set_scalar",
           [](const SessionBox& box, std::string_view name, double value) {
             box.use([&](Session& s) { s.set_scalar(name, value); });
           })
      .def("learning_rate",
           [](const SessionBox& box) {
             return box.use([](Session& s) { return s.learning_rate(); });
           })
      .def("set_learning_rate",
           [](const SessionBox& box, double value) {
             box.use([&](Session& s) { s.set_learning_rate(value); });
           })
      .def("set_adam",
           [](const SessionBox& box, double lr, double beta1, double beta2, double eps) {
             box.use([&](Session& s) { s.set_adam(lr, beta1, beta2, eps); });
           })
      .def("learning_rate_factor",
           [](const SessionBox& box, std::string_view pattern) {
             return box.use([&](Session& s) { return s.learning_rate_factor(pattern); });
           })
      .def("set_learning_rate_factor",
           [](const SessionBox& box, std::string_view pattern, double factor) {
             box.use([&](Session& s) { s.set_learning_rate_factor(pattern, factor); });
           });
}

Saved saved_named(const std::string& name) {
  if (name == "model") return Saved::model;
  if (name == "optimizer") return Saved::optimizer;
  if (name == "training") return Saved::training;
  throw TypeError(
      fmt::format("what is saved must be model, optimizer or training, got '{}'", name));
}

LoadWeightsOptions load_options(const nb::dict& values) {
  LoadWeightsOptions options;
  Given(values, "load_weights")
      .take("strict", options.strict)
      .take("prefixes", options.prefixes)
      .take("skip", options.skip)
      .take("ignore", options.ignore)
      .finish();
  return options;
}

void bind_session_files(nb::class_<SessionBox>& session) {
  session
      .def("save",
           [](const SessionBox& box, const std::string& path, const std::string& what) {
             const Saved saved = saved_named(what);
             box.run([&](Session& s) { s.save(path, saved); });
           })
      .def("load",
           [](const SessionBox& box, const std::string& path, const std::string& what) {
             const Saved saved = saved_named(what);
             box.run([&](Session& s) { s.load(path, saved); });
           })
      .def("load_weights",
           [](const SessionBox& box, const Weights& weights, const nb::dict& given) {
             const LoadWeightsOptions options = load_options(given);
             return box.run([&](Session& s) { return s.load_weights(weights, options); });
           })
      .def("weights",
           [](const SessionBox& box) { return box.run([](Session& s) { return s.weights(); }); })
      .def("write_trace", [](const SessionBox& box, const std::string& path) {
        box.run([&](Session& s) { s.write_trace(path); });
      });
}

nb::dict memory_of(const Session& session) {
  const SessionMemory memory = session.memory_summary();
  nb::dict sizes;
  sizes["parameters"] = memory.parameters;
  sizes["states"] = memory.states;
  sizes["inputs"] = memory.inputs;
  sizes["outputs"] = memory.outputs;
  sizes["temporaries"] = memory.temporaries;
  sizes["scratch"] = memory.scratch;
  sizes["constants"] = memory.constants;
  sizes["prepared"] = memory.prepared;
  return sizes;
}

void bind_inside(nb::class_<SessionBox>& session) {
  session
      .def("report",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.report(); }); })
      .def("compiled",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.compiled(); }); })
      .def("memory",
           [](const SessionBox& box) { return box.use([](Session& s) { return memory_of(s); }); })
      .def("set_timing", [](const SessionBox& box, bool on,
                            bool spans) { box.use([&](Session& s) { s.set_timing(on, spans); }); })
      .def("profile_json",
           [](const SessionBox& box) {
             return box.use([](Session& s) { return s.profile().json(); });
           })
      .def("profile_text", [](const SessionBox& box, std::size_t most) {
        return box.use([&](Session& s) { return s.profile().text({}, most); });
      });
}

}  // namespace

void bind_session_values(nb::module_& m) {
  auto session = nb::borrow<nb::class_<SessionBox>>(nb::type<SessionBox>());
  bind_stored(session);
  bind_gradients(session);
  bind_scalars(session);
  bind_session_files(session);
  bind_inside(session);
  nb::class_<LoadWeightsReport>(m, "LoadWeightsReport")
      .def_ro("loaded", &LoadWeightsReport::loaded)
      .def_ro("missing", &LoadWeightsReport::missing)
      .def_ro("unexpected", &LoadWeightsReport::unexpected)
      .def_ro("skipped", &LoadWeightsReport::skipped)
      .def_ro("mismatched", &LoadWeightsReport::mismatched)
      .def_ro("tied", &LoadWeightsReport::tied)
      .def("fits", &LoadWeightsReport::fits)
      .def("text", &LoadWeightsReport::text);
}

}  // namespace pantala::python
