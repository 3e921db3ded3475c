// Snapshots: copies of what makes a model (parameters, its own states, averages of its weights), to
// come back to later. Values are held exactly.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pantala/session.h"

namespace pantala::train {

class Snapshot {
 public:
  // With the averages of the weights (`ema.<parameter>`) if they are asked for.
  static Snapshot of(const Session& session, bool with_averages);
  void restore(Session& session) const;

  // As safetensors. The session says what a file must hold: TypeError if it does not.
  void save(const std::filesystem::path& path) const;
  static Snapshot load(const std::filesystem::path& path, const Session& session);
  std::int64_t bytes() const;

 private:
  Weights values_;
};

// While it stands, the session's parameters are their averages, where there are some.
class AveragesInUse {
 public:
  AveragesInUse(Session& session, bool wanted);
  ~AveragesInUse();
  AveragesInUse(const AveragesInUse&) = delete;
  AveragesInUse& operator=(const AveragesInUse&) = delete;

 private:
  Session& session_;
  std::vector<std::pair<std::string, Literal>> own_;
};

}  // namespace pantala::train
