// Rate schedules from their table.
#include "bind.h"
#include "options.h"
#include "pantala/rate_schedule.h"
#include "pantala/rate_schedule_table.h"

namespace pantala::python {

namespace {

nb::dict described(const RateDescription& schedule) {
  nb::list options;
  for (const RateOption& option : schedule.options) {
    nb::dict entry;
    entry["name"] = option.name;
    entry["default"] = to_python(option.default_value);
    entry["required"] = option.required;
    entry["whole"] = option.whole;
    options.append(entry);
  }
  nb::dict entry;
  entry["name"] = schedule.name;
  entry["options"] = options;
  return entry;
}

}  // namespace

void bind_rates(nb::module_& m) {
  nb::class_<RateSchedule>(m, "RateSchedule")
      .def_prop_ro("name", &RateSchedule::name)
      .def_prop_ro("warmup_steps", &RateSchedule::warmup_steps)
      .def("with_warmup", &RateSchedule::with_warmup)
      .def("lr", &RateSchedule::lr)
      .def("text", &RateSchedule::str)
      .def("__eq__", [](const RateSchedule& a, const RateSchedule& b) { return a == b; });
  m.def("rate_table", [] {
    nb::list list;
    for (const RateDescription& schedule : rate_descriptions()) list.append(described(schedule));
    return list;
  });
  m.def("rate_schedule", [](std::string_view name, const nb::dict& options) {
    return RateSchedule::from_options(name, named_options(options));
  });
  m.def("rate_length_option", &RateSchedule::length_option);
  nb::class_<Plateau>(m, "Plateau")
      .def("__init__",
           [](Plateau* made, double base_lr, const nb::dict& options) {
             new (made) Plateau(Plateau::from_options(base_lr, named_options(options)));
           })
      .def("report", &Plateau::report)
      .def_prop_ro("lr", &Plateau::lr)
      .def("text", &Plateau::str);
}

}  // namespace pantala::python
