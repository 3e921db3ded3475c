#include "train/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/safetensors.h"
#include "io/safetensors_write.h"
#include "pantala/error.h"
#include "runtime/convert.h"

namespace pantala::train {

namespace {

constexpr std::string_view kAverage = "ema.";

// States that training needs and the model does not: the same as Saved::model leaves out.
bool belongs_to_training(std::string_view state) {
  constexpr std::string_view kPrefixes[] = {"optim.", kAverage, "rng.", "accum."};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return state.starts_with(prefix); });
}

std::int64_t bytes_of(const Literal& value) { return value.numel() * dtype_bytes(value.dtype()); }

}  // namespace

Weights Weights::of(const Session& session, bool with_averages) {
  Weights weights;
  for (const std::string& name : session.parameters())
    weights.parameters_.emplace_back(name, session.parameter(name));
  for (const std::string& name : session.states())
    if (!belongs_to_training(name) || (with_averages && name.starts_with(kAverage)))
      weights.states_.emplace_back(name, session.state(name));
  return weights;
}

void Weights::restore(Session& session) const {
  for (const auto& [name, value] : parameters_) session.set_parameter(name, value);
  for (const auto& [name, value] : states_) session.set_state(name, value);
}

std::int64_t Weights::bytes() const {
  std::int64_t sum = 0;
  for (const auto* list : {&parameters_, &states_})
    for (const auto& [name, value] : *list) sum += bytes_of(value);
  return sum;
}

void Weights::save(const std::filesystem::path& path) const {
  std::vector<std::vector<std::byte>> spaces;
  spaces.reserve(parameters_.size() + states_.size());
  std::vector<io::TensorBytes> tensors;
  for (const auto* list : {&parameters_, &states_})
    for (const auto& [name, value] : *list) {
      std::vector<std::byte>& space =
          spaces.emplace_back(static_cast<std::size_t>(bytes_of(value)));
      runtime::encode(value, value.dtype(), space.data());
      tensors.push_back({name, value.type(), space});
    }
  io::write_safetensors(path, std::move(tensors), {{"pantala.contents", "best"}});
}

Weights Weights::load(const std::filesystem::path& path, const Session& session) {
  const io::SafeTensors file(path);
  Weights weights = of(session, true);
  for (auto* list : {&weights.parameters_, &weights.states_})
    for (auto& [name, value] : *list) {
      if (!file.contains(name) || file.type(name) != value.type())
        throw TypeError(fmt::format("{}: does not fit the session: it has no '{}' {}",
                                    path.string(), name, value.type().str()));
      value = file.read(name);
    }
  return weights;
}

AveragesInUse::AveragesInUse(Session& session, bool wanted) : session_(session) {
  if (!wanted) return;
  const std::vector<std::string> states = session.states();
  std::vector<std::pair<std::string, Literal>> averages;
  for (const std::string& name : session.parameters()) {
    const std::string average = fmt::format("{}{}", kAverage, name);
    if (std::find(states.begin(), states.end(), average) == states.end()) continue;
    averages.emplace_back(name, session.state(average));
    own_.emplace_back(name, session.parameter(name));
  }
  for (const auto& [name, value] : averages) session.set_parameter(name, value);
}

AveragesInUse::~AveragesInUse() {
  for (const auto& [name, value] : own_) session_.set_parameter(name, value);
}

}  // namespace pantala::train
