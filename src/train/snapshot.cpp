#include "train/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::train {

namespace {

constexpr std::string_view kAverage = "ema.";

bool is_average(std::string_view name) { return name.starts_with(kAverage); }

}  // namespace

Snapshot Snapshot::of(const Session& session, bool with_averages) {
  Snapshot snapshot;
  snapshot.values_ = session.weights();
  snapshot.values_.set_metadata("pantala.contents", "best");
  if (!with_averages) return snapshot;
  for (const std::string& name : session.states())
    if (is_average(name)) snapshot.values_.set(name, session.state(name));
  return snapshot;
}

void Snapshot::restore(Session& session) const {
  session.load_weights(values_);
  // The averages are states of training, which weights of a model are not loaded into.
  for (const std::string& name : session.states())
    if (is_average(name) && values_.contains(name)) session.set_state(name, values_.read(name));
}

std::int64_t Snapshot::bytes() const {
  std::size_t sum = 0;
  for (const std::string& name : values_.names()) sum += values_.bytes(name).size();
  return static_cast<std::int64_t>(sum);
}

void Snapshot::save(const std::filesystem::path& path) const { values_.save(path); }

Snapshot Snapshot::load(const std::filesystem::path& path, const Session& session) {
  const Weights file = Weights::open(path);
  Snapshot snapshot = of(session, true);
  for (const std::string& name : snapshot.values_.names()) {
    const Type type = snapshot.values_.type(name);
    if (!file.contains(name) || file.type(name) != type)
      throw TypeError(fmt::format("{}: does not fit the session: it has no '{}' {}", path.string(),
                                  name, type.str()));
    // A copy: checkpoints are removed while the run goes on.
    const std::span<const std::byte> bytes = file.bytes(name);
    snapshot.values_.set(name, type, {bytes.begin(), bytes.end()});
  }
  return snapshot;
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
