// A first model: a small network learns to tell two interleaved half moons apart. It is compiled
// and trained in about a second.
#include <fmt/core.h>
#include <pantala/pantala.h>

#include <cmath>
#include <numbers>

namespace pn = pantala;

int main() {
  // Points on two half circles, the second one turned over and moved into the first.
  constexpr int kPoints = 200;
  std::vector<double> points;
  std::vector<std::int64_t> moons;
  for (int k = 0; k < kPoints; ++k) {
    const double angle = std::numbers::pi * k / kPoints;
    const bool second = k % 2 == 1;
    points.push_back(second ? 1 - std::cos(angle) : std::cos(angle));
    points.push_back(second ? 0.5 - std::sin(angle) : std::sin(angle));
    moons.push_back(second);
  }

  // The graph: layers name their parameters (fc1.weight, fc1.bias, ...) and give them their first
  // values.
  pn::Graph g;
  pn::Tensor x = g.input("x", {kPoints, 2});
  pn::Tensor labels = g.input("labels", {kPoints}, pn::i64);
  pn::Tensor h = pn::relu(pn::nn::linear("fc1", x, 16));
  pn::Tensor logits = pn::nn::linear("fc2", h, 2);
  pn::Tensor loss = pn::cross_entropy(logits, labels);
  g.output("accuracy", pn::mean(pn::cast(pn::eq(pn::argmax(logits), labels), pn::f32)));

  // Forward, backward and the optimizer are compiled to one plan. A session runs it and keeps what
  // it changes.
  pn::Session session =
      pn::build_session(g, loss, {.optimizer = pn::optim::adam(0.05)}, {.seed = 1});
  session.set_input("x", pn::Literal::floats({kPoints, 2}, points));
  session.set_input("labels", pn::Literal::ints({kPoints}, moons));
  for (int k = 0; k <= 100; ++k) {
    session.step();
    if (k % 20 == 0)
      fmt::print("step {:3}  loss {:.4f}  accuracy {:.1f} %\n", k, session.loss(),
                 100 * session.output_scalar("accuracy"));
  }
  return session.output_scalar("accuracy") > 0.98 ? 0 : 1;
}
