// What tests of a session's steps share: a model with all that lives from step to step, and batches
// for it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/session.h"
#include "support/training_data.h"

namespace pantala::session_case {

inline constexpr std::int64_t kInputs = 7, kClasses = 4;

// Has all that lives from step to step: weights, running statistics and random draws.
struct Model {
  Graph graph;
  Tensor loss, hidden;
  explicit Model(std::int64_t batch, std::int64_t width = 6, double dropout = 0.25) {
    const Tensor x = graph.input("x", {batch, kInputs}),
                 labels = graph.input("labels", {batch}, i64);
    hidden = relu(nn::batch_norm("norm", nn::linear("fc1", x, width, {.bias = false})));
    if (dropout > 0) hidden = nn::dropout(hidden, dropout);
    loss = cross_entropy(nn::linear("fc2", hidden, kClasses), labels);
  }
};

inline CompileOptions with_adam() { return {.optimizer = optim::adam(0.01)}; }

inline CompiledPlan plan_of(const Model& model, const CompileOptions& options) {
  return compile_training_graph(model.graph, model.loss, options).plan;
}

inline Session session_of(const Model& model, const CompileOptions& options,
                          std::uint64_t seed = 3) {
  return Session(plan_of(model, options), {.seed = seed});
}

inline void give(const SessionPlan& plan, std::int64_t batch, int seed) {
  plan.set_input("x", tests::random_floats(batch * kInputs, static_cast<std::uint64_t>(seed)));
  plan.set_input("labels", tests::random_labels(batch, kClasses, static_cast<std::uint64_t>(seed)));
}

// Everything that the session holds.
inline std::vector<Literal> contents(const Session& session) {
  std::vector<Literal> values;
  for (const std::string& name : session.parameters()) values.push_back(session.parameter(name));
  for (const std::string& name : session.states()) values.push_back(session.state(name));
  for (const std::string& name : session.scalars())
    values.push_back(Literal::scalar(session.scalar(name)));
  return values;
}

// Training with batches of 4 and of 3 in turn; the losses.
inline std::vector<double> train_in_turn(Session& session, int steps, int first = 0) {
  const SessionPlan sizes[] = {session.plan(session.plans().front()), session.plan("three")};
  std::vector<double> losses;
  for (int k = first; k < first + steps; ++k) {
    const SessionPlan& plan = sizes[k % 2];
    give(plan, k % 2 == 0 ? 4 : 3, k);
    plan.run();
    EXPECT_EQ(session.loss(), plan.loss());
    losses.push_back(session.loss());
  }
  return losses;
}

}  // namespace pantala::session_case
