// Runs the real command as a user would.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
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

// The command while it runs, for tests that interfere. It is killed if nobody waits for it.
class Running {
 public:
  // stderr goes to the descriptor, if one is given.
  explicit Running(const std::vector<std::string>& arguments, int stderr_to = -1);
  // Another program, by its path.
  Running(const std::string& program, const std::vector<std::string>& arguments,
          int stderr_to = -1);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t id() const { return child_; }
  void send(int signal) const;
  bool ended();  // does not wait
  Outcome wait();

 private:
  struct Files;
  std::unique_ptr<Files> files_;  // of stdout and stderr
  pid_t child_ = 0;
  std::optional<int> status_;
};

}  // namespace pantala::tests
