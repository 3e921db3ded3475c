#include "compile.h"

#include "options.h"
#include "pantala/cancelled.h"

namespace pantala::python {

bool Interrupts::operator()() {
  if (stopped_) return true;
  if (std::this_thread::get_id() != thread_) return false;
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() == 0) return false;
  raised_ = std::make_unique<nb::python_error>();
  stopped_ = true;
  return true;
}

void Interrupts::rethrow() {
  if (!raised_) return;
  nb::python_error raised = std::move(*raised_);
  raised_.reset();
  throw raised;
}

void Interrupts::forget_interrupt() {
  if (raised_ && raised_->matches(PyExc_KeyboardInterrupt)) raised_.reset();
}

void Interrupts::reset(std::thread::id thread) {
  thread_ = thread;
  stopped_ = false;
  raised_.reset();
}

namespace {

// (pattern, lr_factor, weight_decay or None, frozen)
std::vector<optim::ParameterGroup> groups_of(nb::handle list) {
  std::vector<optim::ParameterGroup> groups;
  if (list.is_none()) return groups;
  for (const nb::handle entry : list)
    groups.push_back({nb::cast<std::string>(entry[0]), nb::cast<double>(entry[1]),
                      nb::cast<std::optional<double>>(entry[2]), nb::cast<bool>(entry[3])});
  return groups;
}

void take_training(Given& given, TrainingStepOptions& training) {
  given.take("parameters", training.parameters)
      .choose("kept_statistics", training.kept_statistics, {"of_frozen", "all", "none"})
      .take("gradient_norms", training.gradient_norms)
      .take("global_norm", training.global_norm);
  training.groups = groups_of(given.find("groups"));
  double number = 0;
  if (!given.find("clip_norm").is_none())
    given.take("clip_norm", number), training.clip.norm = number;
  if (!given.find("clip_value").is_none())
    given.take("clip_value", number), training.clip.value = number;
  if (!given.find("ema_decay").is_none())
    given.take("ema_decay", number), training.ema_decay = number;
}

}  // namespace

CompileOptions compile_options(const nb::dict& values) {
  CompileOptions options;
  Given given(values, "compile");
  given.take("device", options.device)
      .take("threads", options.threads)
      .take("target", options.target)
      .take("optimize", options.optimize)
      .choose("rewrite", options.rewrite, rewrite_names())
      .choose("numerics", options.numerics, numerics_names())
      .take("greedy_order", options.greedy_order)
      .take("rules_off", options.rules_off)
      .take("cost_table", options.cost_table)
      .choose("non_finite", options.non_finite, guard_names())
      .take("outputs", options.outputs)
      .take("observe_gradients", options.observe_gradients)
      .take("accumulation_steps", options.accumulation_steps)
      .take("normalize", options.normalize)
      .take("split_update", options.split_update);
  const nb::object limit = given.find("memory_limit");
  if (nb::isinstance<nb::str>(limit))
    options.memory_limit = memory_limit_named(nb::cast<std::string>(limit));
  else
    given.take("memory_limit", options.memory_limit);
  if (const nb::object observed = given.find("observe"); !observed.is_none())
    options.observe = nb::cast<std::vector<std::pair<std::string, Tensor>>>(observed);
  if (const nb::object optimizer = given.find("optimizer"); !optimizer.is_none())
    options.optimizer = nb::cast<const optim::Optimizer&>(optimizer);
  take_training(given, options.training);
  given.finish();
  return options;
}

SessionOptions session_options(const nb::dict& values) {
  SessionOptions options;
  Given(values, "session")
      .take("device", options.device)
      .take("threads", options.threads)
      .take("seed", options.seed)
      .take("sentinels", options.sentinels)
      .finish();
  return options;
}

void bind_compile(nb::module_& m) {
  nb::class_<Report>(m, "Report")
      .def("text", &Report::text)
      .def("json", &Report::json)
      .def_prop_ro("cached", &Report::cached);
  nb::class_<CompiledPlan>(m, "CompiledPlan")
      .def_prop_ro("launches", &CompiledPlan::launches)
      .def_prop_ro("buffers", &CompiledPlan::buffers)
      .def_prop_ro("inputs", &CompiledPlan::inputs)
      .def_prop_ro("parameters", &CompiledPlan::parameters)
      .def_prop_ro("states", &CompiledPlan::states)
      .def_prop_ro("outputs", &CompiledPlan::outputs)
      .def_prop_ro("has_loss", &CompiledPlan::has_loss)
      .def_prop_ro("peak_bytes", &CompiledPlan::peak_bytes)
      .def("save", &CompiledPlan::save);
  nb::class_<CompileResult>(m, "CompileResult")
      .def_prop_ro("plan", [](const CompileResult& r) { return r.plan; })
      .def_prop_ro("report", [](const CompileResult& r) { return r.report; });
  m.def("load_plan", load_plan);
  m.def("choices", [] {
    nb::dict names;
    names["rewrite"] = rewrite_names();
    names["numerics"] = numerics_names();
    names["non_finite"] = guard_names();
    return names;
  });
  // (graph, loss, {parameter: gradient})
  m.def("make_training_step", [](const Graph& graph, const Tensor& loss, const nb::dict& given) {
    const CompileOptions options = compile_options(given);
    TrainingStep step = make_training_step(graph, loss, options.optimizer, options.training);
    return nb::make_tuple(std::move(step.graph), step.loss, step.gradients);
  });
  // Of the loss if there is one; of the outputs otherwise. `cache` is a file for the plan, or "".
  m.def(
      "compile",
      [](const Graph& graph, const std::optional<Tensor>& loss, const nb::dict& given,
         const std::string& cache) {
        CompileOptions options = compile_options(given);
        return interruptible(options, [&] {
          if (loss)
            return cache.empty() ? compile_training_graph(graph, *loss, options)
                                 : load_or_compile_training(cache, graph, *loss, options);
          return cache.empty() ? compile(graph, options) : load_or_compile(cache, graph, options);
        });
      },
      nb::arg("graph"), nb::arg("loss").none(), nb::arg("options"), nb::arg("cache"));
}

}  // namespace pantala::python
