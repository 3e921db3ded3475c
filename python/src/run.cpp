// Runs in folders, of a config or of a trainer of one's own, and what they show.
#include "pantala/run.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "monitor/chart.h"
#include "options.h"
#include "pantala/sweep.h"
#include "trainer_box.h"

namespace pantala::python {

namespace {

// What a run writes about its progress goes through a function of Python.
monitor::ProgressOptions progress_options(const nb::dict& values) {
  monitor::ProgressOptions options;
  std::string mode = "none";
  std::int64_t columns = 0;
  Given given(values, "progress");
  given.take("mode", mode).take("terminal", options.terminal).take("colour", options.colour);
  given.take("width", columns);
  options.mode = monitor::parse_progress_mode(mode);
  options.width = [columns] { return static_cast<int>(columns); };
  options.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  if (const nb::object write = given.find("write"); !write.is_none())
    options.write = [kept = kept_object(write)](std::string_view text) {
      const nb::gil_scoped_acquire lock;
      try {
        (*kept)(nb::str(text.data(), text.size()));
      } catch (nb::python_error& error) { error.discard_as_unraisable("pantala's progress line"); }
    };
  given.finish();
  return options;
}

nb::dict outcome_of(const run::RunOutcome& outcome) {
  constexpr const char* kEnds[] = {"finished", "was_finished", "interrupted", "not_begun"};
  nb::dict values;
  values["end"] = kEnds[static_cast<std::size_t>(outcome.end)];
  values["result"] = outcome.result;
  values["steps"] = outcome.steps;
  return values;
}

nb::dict run_training(const std::string& file, const std::vector<std::string>& values, bool resume,
                      bool restart, const std::string& plan_cache) {
  const auto control = std::make_shared<RunControl>();
  run::RunOptions options{.resume = resume, .restart = restart};
  options.poll = [control](const Trainer&) { return control->poll(); };
  options.surroundings.plan_cache = plan_cache;
  run::RunOutcome outcome;
  {
    const nb::gil_scoped_release others_run;
    outcome = run::run_training(run::read_config(file, values), options);
  }
  control->rethrow();
  return outcome_of(outcome);
}

// [(folder, message)]
nb::list failures_of(const std::vector<run::FailedRun>& runs) {
  nb::list failures;
  for (const run::FailedRun& failed : runs) {
    try {
      std::rethrow_exception(failed.error);
    } catch (const std::exception& error) {
      failures.append(nb::make_tuple(failed.folder, error.what()));
    }
  }
  return failures;
}

nb::dict run_sweep(const std::string& file, const std::vector<std::string>& values,
                   const std::vector<std::string>& keys, bool restart,
                   const std::string& plan_cache) {
  const auto control = std::make_shared<RunControl>();
  run::SweepRequest request{.config = file, .values = values, .keys = keys};
  request.options.restart = restart;
  request.options.poll = [control](const Trainer&) { return control->poll(); };
  request.options.surroundings.plan_cache = plan_cache;
  run::SweepOutcome outcome;
  {
    const nb::gil_scoped_release others_run;
    outcome = run::run_sweep(request);
  }
  control->rethrow();
  nb::dict made;
  made["interrupted"] = outcome.interrupted;
  made["diverged"] = outcome.diverged;
  made["failed"] = failures_of(outcome.failed);
  made["folders"] = outcome.folders;
  made["comparison"] = outcome.comparison;
  return made;
}

nb::tuple fit_in_folder(const TrainerBox& box, LoaderBox& loader, LoaderBox* validation,
                        const nb::dict& values, const std::string& folder, bool restart,
                        const nb::dict& progress, const std::shared_ptr<RunControl>& control) {
  const FitOptions options = fit_options(values, validation, control);
  const run::FolderOptions folder_options{
      .folder = folder, .restart = restart, .progress = progress_options(progress)};
  const FitResult result = box.fit(*control, [&](Trainer& t) {
    return run::fit_in_folder(t, *loader.loader, options, folder_options);
  });
  constexpr const char* kEnds[] = {"finished", "stopped_early", "interrupted"};
  return nb::make_tuple(kEnds[static_cast<std::size_t>(result.end)], to_python(result.history),
                        result.restored_epoch, control->was_interrupted());
}

std::string chart_svg(const std::string& title, const std::string& x_label,
                      const std::string& y_label, const nb::list& curves, bool whole_x,
                      bool log_y) {
  monitor::Chart chart{.title = title, .x_label = x_label, .y_label = y_label};
  chart.whole_x = whole_x;
  chart.log_y = log_y;
  const std::vector<std::string> strokes = {"plain", "faint", "dashed", "marked"};
  for (const nb::handle entry : curves) {
    monitor::Curve curve{.label = nb::cast<std::string>(entry[0])};
    const auto xs = nb::cast<std::vector<double>>(entry[1]);
    const auto ys = nb::cast<std::vector<double>>(entry[2]);
    for (std::size_t k = 0; k < std::min(xs.size(), ys.size()); ++k)
      curve.points.push_back({xs[k], ys[k]});
    const auto stroke = std::ranges::find(strokes, nb::cast<std::string>(entry[3]));
    curve.stroke = static_cast<monitor::Stroke>(stroke - strokes.begin());
    curve.colour = chart.curves.size();
    if (curve.stroke == monitor::Stroke::faint) {
      chart.curves.push_back({.label = "", .points = curve.points, .stroke = curve.stroke});
      curve.points = monitor::smoothed(curve.points);
      curve.stroke = monitor::Stroke::plain;
      curve.colour = 0;
    }
    chart.curves.push_back(std::move(curve));
  }
  return monitor::svg(chart);
}

}  // namespace

void bind_run(nb::module_& m) {
  nb::class_<monitor::RunMonitor>(m, "RunMonitor").def("finish", &monitor::RunMonitor::finish);
  m.def("add_monitor", [](const TrainerBox& box, const nb::dict& progress) {
    auto made = std::make_shared<monitor::RunMonitor>(
        monitor::RunMonitorOptions{.progress = progress_options(progress)});
    box.use([&](Trainer& t) { t.add_callback(made); });
    return made;
  });
  nb::class_<LossHistory>(m, "LossHistory").def("take", [](LossHistory& history) {
    return to_numpy(data::Array{{std::ssize(history.losses)}, history.losses});
  });
  m.def("add_loss_history", [](const TrainerBox& box) {
    auto made = std::make_shared<LossHistory>();
    box.use([&](Trainer& t) { t.add_callback(made); });
    return made;
  });
  m.def("run_training", run_training);
  m.def("run_sweep", run_sweep);
  m.def("fit_in_folder", fit_in_folder, nb::arg("trainer"), nb::arg("loader"),
        nb::arg("validation").none(), nb::arg("options"), nb::arg("folder"), nb::arg("restart"),
        nb::arg("progress"), nb::arg("control"));
  m.def("compare_runs", [](const std::vector<std::string>& folders, const std::string& metric) {
    return run::compare(folders, metric);
  });
  m.def("draw_plots", [](const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& file : monitor::draw_plots(folder)) files.push_back(file.string());
    return files;
  });
  // Curves: (label, xs, ys, stroke) with "plain", "faint", "dashed" or "marked".
  m.def("chart_svg", chart_svg);
  m.def("set_log_level",
        [](std::string_view level) { logging::configure({.level = logging::parse_level(level)}); });
}

}  // namespace pantala::python
