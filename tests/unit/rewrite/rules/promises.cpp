#include "unit/rewrite/rules/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/graph_data.h"
#include "pantala/text.h"
#include "rewrite/extraction.h"
#include "rewrite/saturation.h"
#include "support/compiled.h"

namespace pantala::rewrite::samples {

using tests::Random;

std::optional<Graph> rewritten(const Graph& graph, const Rule& rule) {
  const Saturation all(graph, {rule}, {.rounds = 2});
  if (all.applications().empty()) return std::nullopt;
  const std::vector<bool> wanted(all.applications().size(), true);
  return to_graph(all.joint(), selection_with(all.joint(), all.applications(), wanted));
}

// --- numbers

namespace {

double special_number(Random& r, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const std::vector<double> all = {
      0.0,   -0.0,     1,         -1,      kInfinity,      -kInfinity,
      NAN,   0x1p-140, -0x1p-149, 0x1p-24, 0x1.fffffep127, -0x1.fffffep127,
      65504, 0.1,      -2.5};
  return round_to(dtype == f64 ? f32 : dtype, r.pick(all));
}
std::int64_t special_integer(Random& r, DType dtype) {
  static const std::vector<std::int64_t> all = {
      0, 1, -1, 7, (1 << 24) + 1, (std::int64_t{1} << 53) + 1, INT32_MAX, INT64_MIN};
  return dtype == boolean ? r.below(2) : wrap_to(dtype, r.pick(all));
}

bool has_leaf(const Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.data()->nodes(), [&](const ir::Node& node) {
    return ir::leaf_kind(*node.op) && ir::leaf_name(node) == name;
  });
}

}  // namespace

ref::Bindings bindings_of(const Graph& graph, Random& r, Numbers numbers) {
  ref::Bindings bindings;
  for (const ir::Node& node : graph.data()->nodes()) {
    const std::optional<LeafKind> kind = ir::leaf_kind(*node.op);
    if (!kind || kind == LeafKind::scalar) continue;
    const Type& type = node.results[0];
    Literal value(type);
    const bool is_special = numbers == Numbers::special && ir::leaf_name(node) != "i";
    if (is_float(type.dtype))
      for (double& number : value.f())
        number = is_special ? special_number(r, type.dtype) : static_cast<double>(r.between(-4, 4));
    else
      for (std::int64_t& number : value.i())
        number = is_special              ? special_integer(r, type.dtype)
                 : type.dtype == boolean ? r.below(2)
                                         : r.between(0, 4);
    bindings.emplace(ir::leaf_name(node), std::move(value));
  }
  return bindings;
}

std::vector<Literal> exactly(const Graph& graph, ref::Bindings bindings) {
  std::erase_if(bindings, [&](const auto& one) { return !has_leaf(graph, one.first); });
  return ref::evaluate(graph, tests::results_of(graph), bindings);
}

// --- other forms of a graph

Graph in_type(const Graph& graph, DType dtype) {
  std::string text = to_text(graph);
  const std::string to(dtype_name(dtype));
  for (std::size_t at = text.find("f32"); at != std::string::npos; at = text.find("f32", at))
    text.replace(at, 3, to), at += to.size();
  return parse_graph(text);
}

Graph with_all_values(const Graph& graph) {
  auto outputs = graph.outputs();
  const auto& nodes = graph.data()->nodes();
  for (std::uint32_t id = 0; id < nodes.size(); ++id)
    for (std::uint32_t k = 0; k < nodes[id].results.size(); ++k)
      outputs.emplace_back(fmt::format("value {} {}", id, k), graph.value({id, k}));
  return graph.with_outputs(outputs);
}

// --- comparisons

std::string differing_numbers(const Graph& given, const Graph& made, Random& r, double tolerance) {
  const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
  return tests::differing(exactly(given, bindings), exactly(made, bindings), tolerance);
}

namespace {

// Zeros of both signs as one.
void drop_zero_signs(std::vector<Literal>& results) {
  for (Literal& result : results)
    if (result.is_float())
      for (double& number : result.f())
        if (number == 0) number = 0;
}

double largest(const Literal& values) {
  double most = 0;
  for (const double value : values.to_doubles())
    if (std::isfinite(value)) most = std::max(most, std::fabs(value));
  return most;
}
// A rounding of 1.
double rounding_of(DType dtype) {
  return dtype == f64 ? 0x1p-52 : dtype == f16 ? 0x1p-10 : dtype == bf16 ? 0x1p-7 : 0x1p-23;
}

// Where `made` is much further from `exact` than `given`, which is a number.
std::string further(const Literal& exact, const Literal& given, const Literal& made) {
  constexpr double kTimes = 4, kRoundings = 64;
  double margin = kRoundings * rounding_of(exact.dtype()) * largest(exact);
  for (std::int64_t k = 0; k < exact.numel(); ++k)
    if (std::isfinite(given.at(k)) && std::isfinite(exact.at(k)))
      margin = std::max(margin, kTimes * std::fabs(given.at(k) - exact.at(k)));
  for (std::int64_t k = 0; k < exact.numel(); ++k)
    if (std::isfinite(given.at(k)) && std::isfinite(exact.at(k)) &&
        !(std::fabs(made.at(k) - exact.at(k)) <= margin))
      return fmt::format("element {}: {} is {} as given and {} as made", k, exact.at(k),
                         given.at(k), made.at(k));
  return "";
}

}  // namespace

std::string differing_results(const Graph& given, const Graph& made, Random& r, Promise promise,
                              const std::string& device) {
  const tests::CompiledRun how{.device = device};
  if (promise > Promise::zero_sign) {
    const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
    const std::vector<Literal> exact = exactly(given, bindings),
                               first = tests::run_compiled(given, bindings, how),
                               second = tests::run_compiled(made, bindings, how);
    for (std::size_t k = 0; k < exact.size(); ++k)
      if (std::string far = further(exact[k], first[k], second[k]); !far.empty()) return far;
    return "";
  }
  for (const Numbers numbers : {Numbers::special, Numbers::integers}) {
    const ref::Bindings bindings = bindings_of(given, r, numbers);
    std::vector<Literal> first = tests::run_compiled(given, bindings, how),
                         second = tests::run_compiled(made, bindings, how);
    if (promise == Promise::zero_sign)
      for (std::vector<Literal>* results : {&first, &second}) drop_zero_signs(*results);
    if (std::string other = tests::differing_bits(first, second); !other.empty()) return other;
  }
  return "";
}

}  // namespace pantala::rewrite::samples
