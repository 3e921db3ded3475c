// Runs the real command as a user would.
#pragma once

#include <string>
#include <vector>

namespace pantala::tests {

struct Outcome {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string out, err;
  std::string last_line() const;  // of stdout
};

// Arguments are passed as they are: no shell is involved.
Outcome run_pantala(const std::vector<std::string>& arguments);

}  // namespace pantala::tests
