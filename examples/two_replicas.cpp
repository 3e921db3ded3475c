// Two replicas of a model learn from halves of the data. In each step the host takes the mean of
// their gradients, weighted by how many points each half has, and both replicas apply it. The
// halves are equally large, so both round in the same way and stay equal to the bit. Gradients
// could as well come from another process or machine.
#include <fmt/core.h>
#include <pantala/pantala.h>

#include <cmath>
#include <numbers>

namespace pn = pantala;

namespace {

struct Points {
  std::vector<double> places;
  std::vector<std::int64_t> moons;
};

// Points of two interleaved half moons, from the k-th on.
Points half_moons(int first, int count, int all) {
  Points points;
  for (int k = first; k < first + count; ++k) {
    const double angle = std::numbers::pi * k / all;
    const bool second = k % 2 == 1;
    points.places.push_back(second ? 1 - std::cos(angle) : std::cos(angle));
    points.places.push_back(second ? 0.5 - std::sin(angle) : std::sin(angle));
    points.moons.push_back(second);
  }
  return points;
}

// A replica: the update is split from the gradients, which lie in between where the host can read
// and set them.
pn::Session replica(const Points& points) {
  const auto count = static_cast<std::int64_t>(points.moons.size());
  pn::Graph g;
  pn::Tensor x = g.input("x", {count, 2});
  pn::Tensor labels = g.input("labels", {count}, pn::i64);
  pn::Tensor h = pn::relu(pn::nn::linear("fc1", x, 16));
  pn::Tensor loss = pn::cross_entropy(pn::nn::linear("fc2", h, 2), labels);
  pn::Session session = pn::build_session(
      g, loss, {.split_update = true, .optimizer = pn::optim::adam(0.05)}, {.seed = 1});
  session.set_input("x", pn::Literal::floats({count, 2}, points.places));
  session.set_input("labels", pn::Literal::ints({count}, points.moons));
  return session;
}

bool are_equal(const pn::Session& a, const pn::Session& b) {
  for (const std::string& name : a.parameters())
    if (!(a.parameter(name) == b.parameter(name))) return false;
  return true;
}

}  // namespace

int main() {
  const Points halves[] = {half_moons(0, 100, 200), half_moons(100, 100, 200)};
  pn::Session replicas[] = {replica(halves[0]), replica(halves[1])};

  pn::GradientAccumulator mean({.accumulation_steps = 2});
  for (const std::string& name : replicas[0].parameters())
    mean.register_parameter(name, replicas[0].parameter(name).shape());

  for (int step = 0; step <= 100; ++step) {
    for (int k = 0; k < 2; ++k) {
      replicas[k].accumulate();
      pn::NamedGradients gradients;
      for (const std::string& name : replicas[k].parameters())
        gradients.emplace(name, replicas[k].gradient(name));
      mean.step(gradients, static_cast<double>(halves[k].moons.size()));
    }
    for (pn::Session& session : replicas) {
      for (const auto& [name, gradient] : mean.gradients()) session.set_gradient(name, gradient);
      session.apply();
    }
    mean.reset();
    if (step % 20 == 0)
      fmt::print("step {:3}  losses {:.4f} and {:.4f}\n", step, replicas[0].loss(),
                 replicas[1].loss());
  }
  fmt::print("the replicas {}\n",
             are_equal(replicas[0], replicas[1]) ? "are equal" : "went different ways");
  return are_equal(replicas[0], replicas[1]) && replicas[0].loss() < 0.05 ? 0 : 1;
}
