#include "tools/bench_report.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <new>

#include "base/doing.h"
#include "base/log.h"
#include "compiler/build_id.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "runtime/qualification.h"
#include "tools/command.h"
#include "tools/device_row.h"
#include "tools/fixtures/fill.h"
#include "tools/profile/limits.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kProduct = 512;
constexpr std::size_t kLaunches = 12;  // that are listed one by one

Workload product_workload() {
  Workload w;
  w.name = "product";
  const Shape shape{kProduct, kProduct};
  w.graph.output("y", matmul(w.graph.input("a", shape), w.graph.input("b", shape)));
  for (const char* name : {"a", "b"}) w.inputs.emplace(name, make({.name = name, .shape = shape}));
  return w;
}

// Steps whose launches are timed: they run one by one then, and a step takes longer.
Json timed_kernels(Session& session, const BenchOptions& options) {
  session.set_timing(true);
  const Clock::time_point begin = Clock::now();
  do {
    session.step();
    session.wait();
  } while (Clock::now() - begin < std::chrono::duration<double>(options.seconds / 4));
  Json profile = Json::parse(session.profile().json({}));
  Json launches = profile.at("kernels");
  if (launches.size() > kLaunches)
    launches.erase(launches.begin() + static_cast<std::ptrdiff_t>(kLaunches), launches.end());
  return {{"kinds", profile.at("kinds")}, {"totals", profile.at("totals")}, {"longest", launches}};
}

// What the function gives, or the error that it ends with.
Json attempt(const std::string& name, const std::function<Json()>& measure) {
  std::string error;
  try {
    return measure();
  } catch (const Error& e) { error = e.what(); } catch (const std::bad_alloc&) {
    error = "no memory left";
  }
  print_error("{}: {}\n", name, error);
  return {{"workload", name}, {"error", error}};
}

Json row_of(const std::string& name, const BenchOptions& options,
            const std::function<Workload()>& make) {
  const Doing running("running " + name);
  return attempt(name, [&] {
    Benched benched = bench(make(), options);
    Json row = figures(name, options, benched);
    row["launch_times"] = timed_kernels(benched.session, options);
    fmt::print("{}: {:.3f} ms a step\n", name, benched.measured.steps.front());
    std::fflush(stdout);  // the next one may take minutes
    return row;
  });
}

Json product_row(const BenchOptions& options) {
  BenchOptions infer = options;
  infer.infer = true;
  Json row = row_of("product", infer, product_workload);
  if (!row.contains("ms_min")) return row;
  constexpr double kFlops = 2.0 * kProduct * kProduct * kProduct;
  row["size"] = kProduct;
  row["gflops_per_second"] = kFlops / row.at("ms_min").get<double>() / 1e6;
  return row;
}

Json qualification_row(const std::string& device) {
  return attempt("qualification", [&] {
    const runtime::Qualification found = runtime::qualification_of(device);
    Json steps = Json::array();
    for (const runtime::QualifiedStep& step : found.steps)
      steps.push_back({{"name", step.name},
                       {"wrong", step.wrong},
                       {"kernels", step.kernels},
                       {"lacks", step.lacks}});
    return Json{{"text", found.text()}, {"refused", found.refused()}, {"steps", steps}};
  });
}

}  // namespace

int write_bench_report(const BenchOptions& options) {
  const std::string device = options.compile.device.empty() ? "cpu" : options.compile.device;
  BenchOptions plain = options;
  plain.kernels = false;
  Json report{{"pantala", compiler::build_id()},
              {"device", device_row(device, true)},
              {"host", device_row("cpu", false)},
              {"qualification", qualification_row(device)}};
  report["product"] = product_row(plain);
  report["workloads"] = Json::array();
  const auto save = [&] { io::write_file(options.report, report.dump(1) + "\n"); };
  save();
  bool any = options.workloads.empty();
  for (const std::string& name : options.workloads) {
    const BenchMode mode = options.infer ? BenchMode::infer : BenchMode::train;
    report["workloads"].push_back(row_of(name, plain, [&] { return make_workload(name, mode); }));
    any = any || !report["workloads"].back().contains("error");
    save();
  }
  fmt::print("written to {}\n", options.report);
  return any ? 0 : kExitFailed;
}

}  // namespace pantala::tools
