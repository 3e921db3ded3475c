// Sessions: steps, inputs, outputs and further plans.
#include "arrays.h"
#include "compile.h"
#include "session_box.h"

namespace pantala::python {

namespace {

void check_shape(std::string_view what, std::string_view name, const Shape& given,
                 const Type& expected) {
  if (!(given == expected.shape))
    throw TypeError(fmt::format("{} '{}' is {}, got {}", what, name, expected.str(), given.str()));
}

template <class Plan>
void set_input(Plan& plan, std::string_view name, const ReadArray& values) {
  const Type type = plan.input_type(name);
  check_shape("input", name, values.shape(), type);
  // A step that still runs is waited for.
  const nb::gil_scoped_release others_run;
  if (is_half(type.dtype))
    plan.set_input(name, values.rounded_to(type.dtype, fmt::format("input '{}'", name)));
  else
    plan.set_input(name, values.elements());
}

template <class Plan>
nb::object output(Plan& plan, std::string_view name, nb::handle out) {
  const Type type = plan.output_type(name);
  // The step is waited for.
  const auto fill = [&](const HostBuffer& into) {
    const nb::gil_scoped_release others_run;
    plan.output(name, into);
  };
  if (out.is_none()) return new_array(type, fill);
  fill(written_array(out, type, fmt::format("output '{}'", name)));
  return nb::borrow(out);
}

nb::object view(const Type& type, std::string_view name, std::span<const std::byte> memory,
                const nb::capsule& owner) {
  if (is_half(type.dtype))
    throw UnsupportedError(fmt::format("'{}' is {}: arrays of {} are copies in f32, not views",
                                       name, type.str(), dtype_name(type.dtype)));
  if (memory.empty() && type.shape.numel() > 0)
    throw UnsupportedError(
        fmt::format("the memory of '{}' cannot be reached by the host; read a copy", name));
  return view_of(type, memory.data(), owner);
}

void bind_main_plan(nb::class_<SessionBox>& session) {
  session
      .def("inputs",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.inputs(); }); })
      .def("outputs",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.outputs(); }); })
      .def("input_type",
           [](const SessionBox& box, std::string_view name) {
             return box.use([&](Session& s) {
               const Type type = s.input_type(name);
               return nb::make_tuple(dtype_name(type.dtype), to_tuple(type.shape));
             });
           })
      .def("set_input",
           [](const SessionBox& box, std::string_view name, nb::handle values) {
             const ReadArray array(values, fmt::format("input '{}'", name));
             box.use([&](Session& s) { set_input(s, name, array); });
           })
      .def(
          "output",
          [](const SessionBox& box, std::string_view name, nb::handle out) {
            return box.use([&](Session& s) { return output(s, name, out); });
          },
          nb::arg("name"), nb::arg("out").none())
      .def("output_scalar",
           [](const SessionBox& box, std::string_view name) {
             return box.run([&](Session& s) { return s.output_scalar(name); });
           })
      .def("output_view", [](const SessionBox& box, std::string_view name) {
        return box.use([&](Session& s) {
          return view(s.output_type(name), name, s.output_memory(name), box.owner());
        });
      });
}

void bind_steps(nb::class_<SessionBox>& session) {
  session.def("step", [](const SessionBox& box) { box.run([](Session& s) { s.step(); }); })
      .def("accumulate", [](const SessionBox& box) { box.run([](Session& s) { s.accumulate(); }); })
      .def("apply", [](const SessionBox& box) { box.run([](Session& s) { s.apply(); }); })
      .def("wait", [](const SessionBox& box) { box.run([](Session& s) { s.wait(); }); })
      .def("loss",
           [](const SessionBox& box) { return box.run([](Session& s) { return s.loss(); }); })
      .def("last_step_finite",
           [](const SessionBox& box) {
             return box.run([](Session& s) { return s.last_step_finite(); });
           })
      .def("last_step_spoilt",
           [](const SessionBox& box) {
             return box.run([](Session& s) { return s.last_step_spoilt(); });
           })
      .def(
          "accumulated",
          [](const SessionBox& box) { return box.use([](Session& s) { return s.accumulated(); }); })
      .def("accumulation_steps",
           [](const SessionBox& box) {
             return box.use([](Session& s) { return s.accumulation_steps(); });
           })
      .def("splits_update", [](const SessionBox& box) {
        return box.use([](Session& s) { return s.splits_update(); });
      });
}

// Plans are named in every call: a SessionPlan itself would not know whether the session is there.
void bind_plans(nb::class_<SessionBox>& session) {
  session
      .def("attach",
           [](const SessionBox& box, std::string_view name, const CompiledPlan& plan) {
             box.run([&](Session& s) { s.attach(name, plan); });
           })
      .def("attach_step",
           [](const SessionBox& box, std::string_view name, const CompiledPlan& plan) {
             box.run([&](Session& s) { s.attach_step(name, plan); });
           })
      .def("plans",
           [](const SessionBox& box) { return box.use([](Session& s) { return s.plans(); }); })
      .def("plan_inputs",
           [](const SessionBox& box, std::string_view plan) {
             return box.use([&](Session& s) { return s.plan(plan).inputs(); });
           })
      .def("plan_outputs",
           [](const SessionBox& box, std::string_view plan) {
             return box.use([&](Session& s) { return s.plan(plan).outputs(); });
           })
      .def("plan_input_type",
           [](const SessionBox& box, std::string_view plan, std::string_view name) {
             return box.use([&](Session& s) {
               const Type type = s.plan(plan).input_type(name);
               return nb::make_tuple(dtype_name(type.dtype), to_tuple(type.shape));
             });
           })
      .def("plan_set_input",
           [](const SessionBox& box, std::string_view plan, std::string_view name,
              nb::handle values) {
             const ReadArray array(values, fmt::format("input '{}'", name));
             box.use([&](Session& s) {
               const SessionPlan found = s.plan(plan);
               set_input(found, name, array);
             });
           })
      .def("plan_run",
           [](const SessionBox& box, std::string_view plan) {
             box.run([&](Session& s) { s.plan(plan).run(); });
           })
      .def("plan_accumulate",
           [](const SessionBox& box, std::string_view plan) {
             box.run([&](Session& s) { s.plan(plan).accumulate(); });
           })
      .def("plan_loss",
           [](const SessionBox& box, std::string_view plan) {
             return box.run([&](Session& s) { return s.plan(plan).loss(); });
           })
      .def(
          "plan_output",
          [](const SessionBox& box, std::string_view plan, std::string_view name, nb::handle out) {
            return box.use([&](Session& s) {
              const SessionPlan found = s.plan(plan);
              return output(found, name, out);
            });
          },
          nb::arg("plan"), nb::arg("name"), nb::arg("out").none())
      .def("plan_output_view",
           [](const SessionBox& box, std::string_view plan, std::string_view name) {
             return box.use([&](Session& s) {
               const SessionPlan found = s.plan(plan);
               return view(found.output_type(name), name, found.output_memory(name), box.owner());
             });
           });
}

}  // namespace

void bind_session(nb::module_& m) {
  auto session = nb::class_<SessionBox>(m, "Session");
  session
      .def("__init__",
           [](SessionBox* made, const CompileResult& compiled, const nb::dict& options) {
             const SessionOptions session_options_given = session_options(options);
             const nb::gil_scoped_release others_run;
             new (made) SessionBox(Session(compiled, session_options_given));
           })
      .def("close", &SessionBox::close)
      .def_prop_ro("is_closed", &SessionBox::is_closed)
      .def("stored_view", [](const SessionBox& box, std::string_view name) {
        return box.use([&](Session& s) {
          return view(s.stored_type(name), name, s.stored_memory(name), box.owner());
        });
      });
  bind_main_plan(session);
  bind_steps(session);
  bind_plans(session);
  m.def("session_of_plan", [](const CompiledPlan& plan, const nb::dict& options) {
    const SessionOptions given = session_options(options);
    const nb::gil_scoped_release others_run;
    return SessionBox(Session(plan, given));
  });
}

}  // namespace pantala::python
