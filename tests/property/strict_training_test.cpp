// What `strict` allows changes no bit: losses and parameters of a hundred steps are those of the
// graph as it is given, and on several threads.
#include <gtest/gtest.h>

#include "pantala/session.h"
#include "pantala/zoo/presets.h"
#include "support/compiled.h"
#include "support/random_graph.h"

namespace pantala::tests::strict_training_test {
namespace {

constexpr int kSteps = 100;

// Pixels, or classes and characters that every model has.
Literal some_input(const Type& type, Random& r) {
  Literal value(type);
  if (is_float(type.dtype))
    for (double& x : value.f()) x = static_cast<double>(r.between(-128, 128)) / 64;
  else
    for (std::int64_t& x : value.i()) x = r.below(10);
  return value;
}

std::vector<Literal> trained(const zoo::Model& model, const CompileOptions& options) {
  Session session = build_session(model.graph, model.loss, options);
  Random r(5);
  std::vector<Literal> results;
  for (int step = 0; step < kSteps; ++step) {
    for (const std::string& name : session.inputs())
      session.set_input(name, some_input(model.graph.leaf(name).type(), r));
    session.step();
    results.push_back(Literal::scalar(session.loss(), f32));
  }
  for (const std::string& name : session.parameters()) results.push_back(session.parameter(name));
  return results;
}

class StrictTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(StrictTraining, has_the_bits_of_the_graph_as_it_is) {
  const zoo::Model model = zoo::preset(GetParam()).make({.batch = 2, .training = true});
  CompileOptions options{.threads = 2, .optimizer = optim::adamw(0.003)};
  options.rewrite = Rewrite::none;
  const std::vector<Literal> given = trained(model, options);
  options.rewrite = Rewrite::egraph;
  options.numerics = Numerics::strict;
  EXPECT_EQ(differing_bits(given, trained(model, options)), "");
  options.rewrite = Rewrite::greedy;  // everything that strict allows, whether it pays or not
  options.threads = 1;
  EXPECT_EQ(differing_bits(given, trained(model, options)), "");
}

INSTANTIATE_TEST_SUITE_P(Models, StrictTraining, ::testing::Values("mlp", "lenet", "llama-bytes"));

}  // namespace
}  // namespace pantala::tests::strict_training_test
