// Shape rules and gradient rules at the limits: every integer of every sample's attributes, and
// every size of its inputs, is replaced by extreme values, one at a time. A TypeError is an answer;
// an overflow (found by the sanitizers) or an InternalError is a bug.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "support/random_graph.h"

namespace pantala::tests::extremes_test {
namespace {

constexpr std::int64_t kIntegers[] = {INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX - 1,
                                      std::int64_t{1} << 62,
                                      std::int64_t{1} << 60,
                                      -(std::int64_t{1} << 60),
                                      std::int64_t{1} << 40,
                                      std::int64_t{1} << 31,
                                      std::int64_t{1} << 30,
                                      -1,
                                      0,
                                      1,
                                      7};
constexpr std::int64_t kSizes[] = {std::int64_t{1} << 60,
                                   (std::int64_t{1} << 60) - 1,
                                   std::int64_t{1} << 50,
                                   std::int64_t{1} << 40,
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 30,
                                   0,
                                   1};

// Builds the op and, where it can be differentiated, its gradients.
void attempt(const ir::OpDef& op, const ir::Sample& sample) {
  Graph g;
  std::vector<Tensor> inputs, parameters;
  try {
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      inputs.push_back(g.parameter(fmt::format("p{}", k), sample.inputs[k].shape, init::zeros(),
                                   sample.inputs[k].dtype));
      if (is_float(sample.inputs[k].dtype)) parameters.push_back(inputs.back());
    }
    const std::vector<Tensor> results = g.data()->append(op, inputs, sample.attrs, {});
    verify(g);
    if (!op.differentiable() || results.empty() || !is_float(results[0].dtype())) return;
    verify(differentiate(g, sum(results[0]), parameters).graph);
  } catch (const TypeError&) {}
}

class Extremes : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_answer(const ir::Sample& sample, const std::string& what) const {
    try {
      attempt(ops::table().get(GetParam()), sample);
    } catch (const std::exception& error) {
      ADD_FAILURE() << GetParam() << ", " << what << ": " << error.what();
    }
  }
};

TEST_P(Extremes, of_attributes_are_answered) {
  const ir::OpDef& op = ops::table().get(GetParam());
  for (const ir::Sample& sample : op.samples())
    for (std::size_t k = 0; k < sample.attrs.size(); ++k)
      for (const std::int64_t value : kIntegers) {
        ir::Sample changed = sample;
        const std::string what = fmt::format("{} with {}", op.attrs[k].name, value);
        if (std::int64_t* integer = std::get_if<std::int64_t>(&changed.attrs[k])) {
          *integer = value;
          expect_answer(changed, what);
        }
        const ir::Ints* list = std::get_if<ir::Ints>(&sample.attrs[k]);
        for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
          changed.attrs[k] = *list;
          std::get<ir::Ints>(changed.attrs[k])[i] = value;
          expect_answer(changed, what);
        }
        if (list != nullptr) {  // all of them
          changed.attrs[k] = ir::Ints(list->size(), value);
          expect_answer(changed, what);
        }
      }
}

TEST_P(Extremes, of_sizes_are_answered) {
  const ir::OpDef& op = ops::table().get(GetParam());
  const std::vector<ir::Sample> samples = op.samples();
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (const std::int64_t size : kSizes)
      for (std::size_t k = 0; k < samples[s].inputs.size(); ++k)
        for (int axis = 0; axis < samples[s].inputs[k].shape.rank(); ++axis) {
          // The size at hand, wherever it stands: sizes that belong together stay equal.
          ir::Sample changed = samples[s];
          const std::int64_t old = samples[s].inputs[k].shape[axis];
          try {
            for (ir::SampleInput& in : changed.inputs)
              for (int a = 0; a < in.shape.rank(); ++a)
                if (in.shape[a] == old) in.shape = in.shape.with(a, size);
          } catch (const TypeError&) { continue; }
          expect_answer(changed, fmt::format("sample {}, size {} instead of {}", s, size, old));
        }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ir::OpDef* op : sampled_ops()) result.push_back(op->name);
  return result;
}
const auto name_of = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(Ops, Extremes, ::testing::ValuesIn(names()), name_of);

}  // namespace
}  // namespace pantala::tests::extremes_test
