// Trains a small model with the installed library: the loss falls, and a mistake is answered with
// an error that can be caught by its type.
#include <pantala/pantala.h>

#include <cstdio>
#include <string>
#include <vector>

namespace pn = pantala;

int main() {
  constexpr int kItems = 32;
  std::vector<double> points, targets;
  for (int k = 0; k < kItems; ++k) {
    const double x = 2.0 * k / kItems - 1;
    points.push_back(x);
    targets.push_back(x * x);
  }

  pn::Graph g;
  const pn::Tensor x = g.input("x", {kItems, 1});
  const pn::Tensor target = g.input("target", {kItems, 1});
  const pn::Tensor h = pn::tanh(pn::nn::linear("fc1", x, 8));
  const pn::Tensor loss = pn::mse_loss(pn::nn::linear("fc2", h, 1), target);

  pn::Session session = pn::build_session(g, loss, {.optimizer = pn::optim::adam(0.05)});
  session.set_input("x", pn::Literal::floats({kItems, 1}, points));
  session.set_input("target", pn::Literal::floats({kItems, 1}, targets));
  session.step();
  const double first = session.loss();
  for (int k = 0; k < 100; ++k) session.step();
  const double last = session.loss();
  std::printf("loss %.4f, then %.4f\n", first, last);
  if (!(last < 0.1 * first)) return 1;

  try {
    session.set_input("y", pn::Literal::floats({kItems, 1}, points));
  } catch (const pn::TypeError& error) {
    return std::string(error.what()).find("'y'") == std::string::npos ? 2 : 0;
  }
  return 3;
}
