// Trainers.
#include "pantala/trainer.h"

#include "compile.h"
#include "options.h"
#include "trainer_box.h"

namespace pantala::python {

namespace {

std::optional<metrics::Kind> measured(const std::string& name) {
  for (const auto kind : {metrics::Kind::classes, metrics::Kind::numbers, metrics::Kind::tokens,
                          metrics::Kind::bytes})
    if (metrics::kind_name(kind) == name) return kind;
  if (!name.empty())
    throw TypeError("trainer: measured must be classes, numbers, tokens or bytes, got '" + name +
                    "'");
  return {};
}

PlateauOptions plateau_options(const nb::dict& values) {
  return Plateau::from_options(0, named_options(values)).options();
}

TrainConfig train_config(const nb::dict& values) {
  TrainConfig config;
  config.log_interval = 0;
  std::string kind;
  Given given(values, "trainer");
  given.take("log_interval", config.log_interval)
      .take("data_input", config.data_input)
      .take("label_input", config.label_input)
      .take("loss_output", config.loss_output)
      .take("prediction_output", config.prediction_output)
      .take("class_axis", config.class_axis)
      .take("measured", kind)
      .take("plateau_metric", config.plateau_metric)
      .choose("non_finite", config.non_finite, {"error", "skip", "propagate"})
      .take("evaluate_average", config.evaluate_average);
  config.measured = measured(kind);
  if (std::string folder; !given.find("plan_cache").is_none())
    given.take("plan_cache", folder), config.plan_cache = folder;
  if (const nb::object o = given.find("optimizer"); !o.is_none())
    config.optimizer = nb::cast<const optim::Optimizer&>(o);
  if (const nb::object s = given.find("rate_schedule"); !s.is_none())
    config.rate_schedule = nb::cast<const RateSchedule&>(s);
  if (const nb::object p = given.find("plateau"); !p.is_none())
    config.plateau = plateau_options(nb::cast<nb::dict>(p));
  given.finish();
  return config;
}

// (graph, input, labels, loss, prediction or None)
TrainableGraph trainable(nb::handle made) {
  const auto prediction = nb::cast<std::optional<Tensor>>(made[4]);
  return {Graph(nb::cast<const Graph&>(made[0])), nb::cast<Tensor>(made[1]),
          nb::cast<Tensor>(made[2]), nb::cast<Tensor>(made[3]), prediction.value_or(Tensor())};
}

// A copy of the graph has values of its own.
TrainableGraph copied(TrainableGraph model) {
  const auto moved = [&](const Tensor& t) { return t.valid() ? model.graph.value(t.id()) : t; };
  const Tensor input = moved(model.input), labels = moved(model.labels), loss = moved(model.loss),
               prediction = moved(model.prediction);
  return {std::move(model.graph), input, labels, loss, prediction};
}

ModelFactory factory_of(nb::object function) {
  return [kept = kept_object(std::move(function))](std::int64_t batch, Phase phase) {
    const nb::gil_scoped_acquire lock;
    const char* const name = phase == Phase::training ? "training" : "evaluation";
    return copied(trainable((*kept)(batch, name)));
  };
}

TrainerBox trainer_of_model(nb::object function, std::int64_t batch_size, const nb::dict& config,
                            const nb::dict& compile, const nb::dict& session) {
  const TrainConfig settings = train_config(config);
  CompileOptions options = compile_options(compile);
  const SessionOptions session_settings = session_options(session);
  const ModelFactory model = factory_of(std::move(function));
  const auto interrupts = std::make_shared<Interrupts>();
  return interruptible(
      options,
      [&] {
        return TrainerBox(Trainer(model, batch_size, settings, options, session_settings),
                          interrupts);
      },
      interrupts);
}

TrainerBox trainer_of_session(const CompileResult& compiled, const nb::dict& session,
                              const nb::dict& config) {
  return {Trainer(Session(compiled, session_options(session)), train_config(config)),
          std::make_shared<Interrupts>()};
}

nb::object metrics_or_none(const std::optional<StepMetrics>& metrics) {
  if (!metrics) return nb::none();
  return nb::make_tuple(metrics->epoch, metrics->step, metrics->loss);
}

nb::dict state_of(const Trainer& trainer) {
  const TrainerState& state = trainer.state();
  nb::dict values;
  values["epoch"] = state.epoch;
  values["batches"] = state.batches;
  values["epoch_steps"] = state.epoch_steps;
  values["global_steps"] = state.global_steps;
  values["skipped"] = state.skipped;
  values["best"] = state.best;
  values["best_epoch"] = state.best_epoch;
  values["stopped_early"] = state.stopped_early;
  values["history"] = to_python(state.history);
  return values;
}

nb::dict progress_of(const Trainer& trainer) {
  const Progress progress = trainer.progress();
  nb::dict values;
  values["epoch"] = progress.epoch;
  values["epochs"] = progress.epochs;
  values["batch"] = progress.batch;
  values["batches"] = progress.batches;
  values["global_steps"] = progress.global_steps;
  values["items"] = progress.items;
  values["seconds"] = progress.seconds;
  values["wait_seconds"] = progress.wait_seconds;
  values["learning_rate"] = progress.learning_rate;
  values["gradient_norm"] = progress.gradient_norm;
  values["loss"] = progress.loss;
  return values;
}

nb::tuple fit(const TrainerBox& box, LoaderBox& loader, LoaderBox* validation,
              const nb::dict& values, const std::shared_ptr<RunControl>& control) {
  const FitOptions options = fit_options(values, validation, control);
  const FitResult result =
      box.fit(*control, [&](Trainer& t) { return t.fit(*loader.loader, options); });
  constexpr const char* kEnds[] = {"finished", "stopped_early", "interrupted"};
  return nb::make_tuple(kEnds[static_cast<std::size_t>(result.end)], to_python(result.history),
                        result.restored_epoch, control->was_interrupted());
}

void bind_running(nb::class_<TrainerBox>& trainer) {
  trainer
      .def("fit", fit, nb::arg("loader"), nb::arg("validation").none(), nb::arg("options"),
           nb::arg("control"))
      .def("step",
           [](const TrainerBox& box, nb::handle values) {
             const data::Batch batch = batch_of(values);
             return metrics_or_none(box.run([&](Trainer& t) { return t.step(batch); }));
           })
      .def("finish_window",
           [](const TrainerBox& box) {
             return metrics_or_none(box.run([](Trainer& t) { return t.finish_window(); }));
           })
      .def("evaluate",
           [](const TrainerBox& box, LoaderBox& loader) {
             return to_python(box.run([&](Trainer& t) { return t.evaluate(*loader.loader); }));
           })
      .def("predict",
           [](const TrainerBox& box, nb::handle values) {
             const data::Array array = ReadArray(values, "predict").array();
             return to_numpy(box.run([&](Trainer& t) { return t.predict(array); }));
           })
      .def("add_callback", [](const TrainerBox& box, nb::object called,
                              const std::shared_ptr<RunControl>& control) {
        box.use([&](Trainer& t) {
          t.add_callback(std::make_shared<PythonCallback>(std::move(called), control));
        });
      });
}

// (data, labels, {name: array})
nb::tuple arrays_of(const data::Batch& batch) {
  nb::dict more;
  for (const data::NamedArray& other : batch.more) more[other.name.c_str()] = to_numpy(other.array);
  return nb::make_tuple(to_numpy(batch.data), to_numpy(batch.labels), more);
}

void bind_state(nb::class_<TrainerBox>& trainer) {
  trainer.def("session", &TrainerBox::session)
      .def("state", [](const TrainerBox& box) { return box.use(state_of); })
      .def("progress", [](const TrainerBox& box) { return box.use(progress_of); })
      .def("last_evaluation",
           [](const TrainerBox& box) -> nb::object {
             return box.use([](Trainer& t) -> nb::object {
               if (!t.last_evaluation()) return nb::none();
               return to_python(*t.last_evaluation());
             });
           })
      .def("failed_batch",
           [](const TrainerBox& box) -> nb::object {
             return box.use([](Trainer& t) -> nb::object {
               if (t.failed_batch() == nullptr) return nb::none();
               return arrays_of(*t.failed_batch());
             });
           })
      .def("save_model",
           [](const TrainerBox& box, const std::string& path) {
             box.run([&](Trainer& t) { t.save_model(path); });
           })
      .def("save_checkpoint",
           [](const TrainerBox& box, const std::string& folder) {
             box.run([&](Trainer& t) { t.save_checkpoint(folder); });
           })
      .def("load_checkpoint",
           [](const TrainerBox& box, const std::string& folder) {
             box.run([&](Trainer& t) { t.load_checkpoint(folder); });
           })
      .def("resume",
           [](const TrainerBox& box, const std::string& folder) -> std::optional<std::string> {
             return box.run([&](Trainer& t) -> std::optional<std::string> {
               const auto resumed = t.resume(folder);
               if (!resumed) return {};
               return resumed->checkpoint.string();
             });
           })
      .def("restore_best", [](const TrainerBox& box) {
        return box.run([](Trainer& t) { return t.restore_best(); });
      });
}

}  // namespace

nb::dict to_python(const Evaluation& evaluation) {
  nb::dict values, entry;
  for (const auto& [name, value] : evaluation.values) values[name.c_str()] = value;
  entry["items"] = evaluation.items;
  entry["loss"] = evaluation.loss;
  entry["values"] = values;
  entry["confusion"] = nb::none();
  if (!evaluation.confusion) return entry;
  nb::list cells;
  for (const auto& cell : evaluation.confusion->cells())
    cells.append(nb::make_tuple(cell.truth, cell.predicted, cell.count));
  entry["confusion"] = nb::make_tuple(evaluation.confusion->classes(), cells);
  return entry;
}

nb::dict to_python(const TrainHistory& history) {
  nb::list epochs, evaluations;
  for (const EpochStats& stats : history.epochs)
    epochs.append(nb::make_tuple(stats.epoch, stats.avg_loss, stats.steps));
  for (const auto& evaluation : history.evaluations)
    evaluations.append(evaluation ? nb::object(to_python(*evaluation)) : nb::none());
  nb::dict entry;
  entry["epochs"] = epochs;
  entry["evaluations"] = evaluations;
  return entry;
}

FitOptions fit_options(const nb::dict& values, LoaderBox* validation,
                       const std::shared_ptr<RunControl>& control) {
  FitOptions options;
  options.validation = validation ? validation->loader.get() : nullptr;
  options.poll = [control] { return control->poll(); };
  std::string folder;
  EarlyStopping stopping;
  Given given(values, "fit");
  given.take("epochs", options.epochs)
      .take("max_steps", options.max_steps)
      .take("folder", folder)
      .take("every_steps", options.checkpoints.every_steps)
      .take("every_epochs", options.checkpoints.every_epochs)
      .take("keep_last", options.checkpoints.keep_last)
      .take("metric", options.checkpoints.metric)
      .take("larger_is_better", options.checkpoints.larger_is_better);
  options.checkpoints.folder = folder;
  if (const nb::object told = given.find("early_stopping"); !told.is_none()) {
    const auto entries = nb::cast<nb::dict>(told);
    Given(entries, "early stopping")
        .take("metric", stopping.metric)
        .take("larger_is_better", stopping.larger_is_better)
        .take("patience", stopping.patience)
        .take("min_delta", stopping.min_delta)
        .take("restore_best", stopping.restore_best)
        .finish();
    options.early_stopping = stopping;
  }
  given.finish();
  return options;
}

void bind_trainer(nb::module_& m) {
  nb::class_<RunControl>(m, "RunControl")
      .def("reset", &RunControl::reset)
      .def("stop", &RunControl::stop)
      .def("save", &RunControl::save);
  m.def("run_control", [] { return std::make_shared<RunControl>(); });
  auto trainer = nb::class_<TrainerBox>(m, "Trainer");
  bind_running(trainer);
  bind_state(trainer);
  m.def("trainer_of_model", trainer_of_model);
  m.def("trainer_of_session", trainer_of_session);
  m.def("metric_names", [] { return metrics::names(); });
  m.def("larger_is_better", metrics::larger_is_better);
}

}  // namespace pantala::python
