// The shape rule against the interpreter: the samples of every op with attributes and shapes
// changed at random either are refused by a TypeError or evaluate to literals of exactly the
// inferred types.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "support/gradcheck.h"
#include "support/random_graph.h"

namespace pantala::tests {
namespace {

constexpr int kTrials = 24000;
constexpr std::int64_t kMostElements = 20000;  // larger results are inferred, not evaluated

constexpr DType kDTypes[] = {f32, f64, f16, bf16, i32, i64, u8, boolean};
constexpr double kNumbers[] = {0.0, -0.0, 1, -1, 0.5, 2, 3, 1e-5, 1e300, INFINITY, -INFINITY, NAN};

std::int64_t small_int(Random& random) {
  return random.chance(0.9) ? random.between(-3, 6) : random.between(-40, 40);
}

ir::AttrValue changed(Random& random, const ir::AttrSpec& spec, const ir::AttrValue& value) {
  if (std::holds_alternative<bool>(value)) return random.chance(0.5);
  if (std::holds_alternative<std::int64_t>(value)) return small_int(random);
  if (std::holds_alternative<double>(value)) return random.pick(kNumbers);
  if (std::holds_alternative<DType>(value)) return random.pick(kDTypes);
  if (std::holds_alternative<std::string>(value))
    return spec.choices.empty() ? value : ir::AttrValue(random.pick(spec.choices));
  if (const ir::Ints* list = std::get_if<ir::Ints>(&value)) {
    ir::Ints result = *list;
    if (random.chance(0.3))
      result.resize(static_cast<std::size_t>(random.below(6)), small_int(random));
    if (!result.empty())
      result[static_cast<std::size_t>(random.below(std::ssize(result)))] = small_int(random);
    return result;
  }
  return value;
}

ir::SampleInput changed(Random& random, ir::SampleInput in) {
  const auto rank = static_cast<std::int64_t>(in.shape.rank());
  switch (random.below(4)) {
    case 0:
      in.dtype = random.pick(kDTypes);
      break;
    case 1:
      if (rank > 0) in.shape = in.shape.without(static_cast<int>(random.below(rank)));
      break;
    case 2:
      if (rank < 5)
        in.shape = in.shape.insert(static_cast<int>(random.below(rank + 1)), random.between(0, 3));
      break;
    default:
      if (rank > 0)
        in.shape = in.shape.with(static_cast<int>(random.below(rank)), random.between(0, 5));
  }
  if (!is_float(in.dtype)) in.distinct = false;
  return in;
}

ir::Sample changed(Random& random, const ir::OpDef& op, ir::Sample sample) {
  for (std::size_t k = 0; k < sample.attrs.size(); ++k)
    if (random.chance(0.5)) sample.attrs[k] = changed(random, op.attrs[k], sample.attrs[k]);
  for (ir::SampleInput& in : sample.inputs)
    if (random.chance(0.15)) in = changed(random, in);
  return sample;
}

enum class Outcome { refused, evaluated, too_large };

std::string describe(const ir::OpDef& op, const ir::Sample& sample) {
  std::vector<std::string> inputs, attrs;
  for (const ir::SampleInput& in : sample.inputs) inputs.push_back(Type{in.dtype, in.shape}.str());
  for (std::size_t k = 0; k < sample.attrs.size(); ++k)
    attrs.push_back(fmt::format("{}={}", op.attrs[k].name, ir::to_text(sample.attrs[k])));
  return fmt::format("{}({}) {{{}}}", op.name, fmt::join(inputs, ", "), fmt::join(attrs, ", "));
}

// Anything but TypeError (and ValueError, where a changed shape puts an index out of range) is left
// to the caller.
Outcome attempt(const ir::OpDef& op, const ir::Sample& sample) {
  Graph g;
  ref::Bindings bindings;
  std::vector<Tensor> inputs, results;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const std::string name = fmt::format("x{}", k);
    inputs.push_back(g.input(name, sample.inputs[k].shape, sample.inputs[k].dtype));
    bindings[name] = draw(sample.inputs[k], name);
  }
  try {
    results = g.data()->append(op, inputs, sample.attrs, {});
  } catch (const TypeError&) { return Outcome::refused; }
  verify(g);
  for (const ir::Node& node : g.data()->nodes())
    for (const Type& type : node.results)
      if (type.shape.numel() > kMostElements) return Outcome::too_large;
  try {
    const std::vector<Literal> values = ref::evaluate(g, results, bindings);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (values[k].type() != results[k].type())
        throw InternalError(fmt::format("result {} is {}, inferred was {}", k,
                                        values[k].type().str(), results[k].type().str()));
  } catch (const ValueError&) {}
  return Outcome::evaluated;
}

TEST(ShapeRule, agrees_with_the_interpreter_for_random_attributes) {
  std::map<std::string, int> evaluated;
  int failures = 0;
  const std::vector<const ir::OpDef*>& ops = sampled_ops();
  for (std::uint64_t seed = 0; seed < kTrials && failures < 20; ++seed) {
    Random random(seed);
    const ir::OpDef& op = *ops[seed % ops.size()];
    const ir::Sample sample = changed(random, op, random.pick(op.samples()));
    try {
      evaluated[op.name] += attempt(op, sample) == Outcome::evaluated;
    } catch (const std::exception& error) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << describe(op, sample) << ": " << error.what();
    }
  }
  // The trials mean something only if many of them get through.
  for (const auto& [name, count] : evaluated) EXPECT_GE(count, 5) << name;
}

}  // namespace
}  // namespace pantala::tests
