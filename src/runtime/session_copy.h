// SessionCopy: everything that lives from step to step, as a session has it at one moment, to go
// back to. First values that nobody has asked for yet, and zeros, take no space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/spare_bytes.h"
#include "ir/number.h"
#include "runtime/session_data.h"

namespace pantala::runtime {

class SessionCopy {
 public:
  // More than this is kept in a file instead of memory.
  static constexpr std::int64_t kMostInMemory = std::int64_t{64} << 20;

  // Where that file is; "": the system's folder for temporary files.
  explicit SessionCopy(std::filesystem::path folder = {})
      : spare_(kMostInMemory, std::move(folder)) {}

  // Replaces what was kept before and uses its memory again.
  void take(SessionData& session);
  bool is_taken() const { return !kept_.empty(); }
  // The same session, with no plan attached since.
  void restore(SessionData& session) const;

 private:
  enum class As : std::uint8_t { number, first_value, zeros, bytes };
  struct Kept {
    As as = As::number;
    ir::Number number = {};
    std::int64_t at = 0;  // of its bytes
  };

  std::vector<Kept> kept_;  // as the store's entries
  io::SpareBytes spare_;
  std::int64_t accumulated_ = 0;
};

}  // namespace pantala::runtime
