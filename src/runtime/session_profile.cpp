// The profile of a session, for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "pantala/session.h"

namespace pantala {

namespace {

using Json = nlohmann::ordered_json;

double per_run(double milliseconds, std::int64_t runs) {
  return milliseconds / static_cast<double>(std::max<std::int64_t>(runs, 1));
}

// One of several plans is named in front of its kernels.
std::string place_of(const KernelInfo& kernel, bool several_plans) {
  const std::string& layers = kernel.layers.empty() ? kernel.name : kernel.layers;
  return several_plans ? fmt::format("{}: {}", kernel.plan, layers) : layers;
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string limit_text(const KernelInfo& kernel, const MachineLimits& limits) {
  const double share = SessionProfile::share_of_limit(kernel, limits);
  return share > 0 ? percent(share) : "";
}

// Launches of one kind together: those whose names are the same but for their numbers.
struct Total {
  std::string kind;
  std::int64_t launches = 0;
  double us = 0, predicted_us = 0, flops = 0, bytes = 0;  // of one run of each
  double limit_us = 0;  // that the machine's limits say they need at least

  void add(const KernelInfo& kernel, const MachineLimits& limits) {
    const double taken = 1000 * per_run(kernel.milliseconds, kernel.runs);
    ++launches;
    us += taken;
    predicted_us += kernel.predicted_us;
    flops += kernel.flops;
    bytes += kernel.bytes();
    limit_us += taken * SessionProfile::share_of_limit(kernel, limits);
  }
  double per_second(double amount) const { return us > 0 ? amount / us * 1e6 : 0; }
  double share_of_limit() const { return us > 0 ? limit_us / us : 0; }
};

std::string kind_of(const KernelInfo& kernel) {
  return kernel.name.substr(0, std::min(kernel.name.rfind('.'), kernel.name.size()));
}

// What takes longest comes first.
std::vector<Total> totals_by_kind(const std::vector<KernelInfo>& kernels,
                                  const MachineLimits& limits) {
  std::map<std::string, Total> by_kind;
  for (const KernelInfo& kernel : kernels) by_kind[kind_of(kernel)].add(kernel, limits);
  std::vector<Total> totals;
  for (auto& [kind, total] : by_kind) {
    total.kind = kind;
    totals.push_back(std::move(total));
  }
  std::ranges::stable_sort(totals, std::ranges::greater{}, &Total::us);
  return totals;
}

Total total_of(const std::vector<KernelInfo>& kernels, const MachineLimits& limits) {
  Total total{.kind = "all"};
  for (const KernelInfo& kernel : kernels) total.add(kernel, limits);
  return total;
}

Json json_of(const Total& total) {
  return {{"kind", total.kind},
          {"launches", total.launches},
          {"us", total.us},
          {"predicted_us", total.predicted_us},
          {"flops", total.flops},
          {"bytes", total.bytes},
          {"gflops_per_second", total.per_second(total.flops) / 1e9},
          {"gb_per_second", total.per_second(total.bytes) / 1e9},
          {"limit_us", total.limit_us},
          {"share_of_limit", total.share_of_limit()}};
}

std::string table_of(std::vector<Total> totals, const Total& all) {
  totals.push_back(all);
  std::string text =
      fmt::format("{:>6} {:>11} {:>10} {:>9} {:>7} {:>7}  {:>8}  {}\n", "share", "us a run",
                  "predicted", "GFLOP/s", "GB/s", "limit", "launches", "kind");
  for (const Total& total : totals)
    text += fmt::format("{:>6} {:>11.1f} {:>10.1f} {:>9.1f} {:>7.1f} {:>7}  {:>8}  {}\n",
                        percent(all.us > 0 ? total.us / all.us : 0), total.us, total.predicted_us,
                        total.per_second(total.flops) / 1e9, total.per_second(total.bytes) / 1e9,
                        total.limit_us > 0 ? percent(total.share_of_limit()) : "", total.launches,
                        total.kind);
  return text;
}

}  // namespace

double SessionProfile::milliseconds() const {
  double sum = 0;
  for (const Plan& plan : plans) sum += plan.milliseconds;
  return sum;
}

double SessionProfile::share_of_limit(const KernelInfo& kernel, const MachineLimits& limits) {
  const double by_flops = limits.flops > 0 ? kernel.flops_per_second() / limits.flops : 0;
  const double by_bytes = limits.bytes > 0 ? kernel.bytes_per_second() / limits.bytes : 0;
  return std::max(by_flops, by_bytes);
}

std::string SessionProfile::text(const MachineLimits& limits, std::size_t most) const {
  const double whole = std::max(milliseconds(), 1e-9);
  double in_kernels = 0;
  for (const KernelInfo& kernel : kernels) in_kernels += kernel.milliseconds;
  std::string text;
  for (const Plan& plan : plans)
    text += fmt::format("{}: {} runs, {:.3f} ms each\n", plan.name, plan.runs,
                        per_run(plan.milliseconds, plan.runs));
  text += fmt::format("{:.3f} ms in all, {} of it in kernels\n", milliseconds(),
                      percent(in_kernels / whole));
  if (limits.flops > 0 && limits.bytes > 0)
    text += fmt::format("the machine's limits: {:.1f} GFLOP/s, {:.1f} GB/s\n", limits.flops / 1e9,
                        limits.bytes / 1e9);
  const std::size_t shown = most == 0 ? kernels.size() : std::min(most, kernels.size());
  std::size_t width = 6;
  for (std::size_t k = 0; k < shown; ++k)
    width = std::max(width, place_of(kernels[k], plans.size() > 1).size());
  text += fmt::format("{:>6} {:>11} {:>10} {:>9} {:>7} {:>7}  {:<{}}  {}\n", "share", "us a run",
                      "predicted", "GFLOP/s", "GB/s", "limit", "layers", width, "ops");
  double rest = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const KernelInfo& kernel = kernels[k];
    if (k >= shown) {
      rest += kernel.milliseconds;
      continue;
    }
    text += fmt::format("{:>6} {:>11.1f} {:>10.1f} {:>9.1f} {:>7.1f} {:>7}  {:<{}}  {} ({})\n",
                        percent(kernel.milliseconds / whole),
                        1000 * per_run(kernel.milliseconds, kernel.runs), kernel.predicted_us,
                        kernel.flops_per_second() / 1e9, kernel.bytes_per_second() / 1e9,
                        limit_text(kernel, limits), place_of(kernel, plans.size() > 1), width,
                        kernel.ops, kernel.name);
  }
  if (shown < kernels.size())
    text += fmt::format("{:>6} in {} more\n", percent(rest / whole), kernels.size() - shown);
  return text + table_of(totals_by_kind(kernels, limits), total_of(kernels, limits));
}

std::string SessionProfile::json(const MachineLimits& limits) const {
  Json document{{"milliseconds", milliseconds()},
                {"plans", Json::array()},
                {"limits", {{"flops", limits.flops}, {"bytes", limits.bytes}}},
                {"kernels", Json::array()}};
  for (const Plan& plan : plans)
    document["plans"].push_back(
        {{"name", plan.name}, {"runs", plan.runs}, {"milliseconds", plan.milliseconds}});
  const double whole = std::max(milliseconds(), 1e-9);
  for (const KernelInfo& kernel : kernels)
    document["kernels"].push_back({{"plan", kernel.plan},
                                   {"name", kernel.name},
                                   {"kernel", kernel.unit},
                                   {"layers", kernel.layers},
                                   {"ops", kernel.ops},
                                   {"items", kernel.items},
                                   {"runs", kernel.runs},
                                   {"us", 1000 * per_run(kernel.milliseconds, kernel.runs)},
                                   {"predicted_us", kernel.predicted_us},
                                   {"share", kernel.milliseconds / whole},
                                   {"flops", kernel.flops},
                                   {"read_bytes", kernel.read_bytes},
                                   {"written_bytes", kernel.written_bytes},
                                   {"gflops_per_second", kernel.flops_per_second() / 1e9},
                                   {"gb_per_second", kernel.bytes_per_second() / 1e9},
                                   {"share_of_limit", share_of_limit(kernel, limits)}});
  document["kinds"] = Json::array();
  for (const Total& total : totals_by_kind(kernels, limits))
    document["kinds"].push_back(json_of(total));
  document["totals"] = json_of(total_of(kernels, limits));
  // Names of layers come from users: they may be any bytes.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pantala
