#include "cli/run.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>

extern char** environ;

namespace pantala::tests {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) throw std::runtime_error("no temporary file");
  return file;
}

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

}  // namespace

std::string Outcome::last_line() const {
  const std::string_view text =
      std::string_view(out).substr(0, out.ends_with('\n') ? out.size() - 1 : out.size());
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

struct Running::Files {
  File out = temporary_file(), err = temporary_file();
};

Running::Running(const std::vector<std::string>& arguments, int stderr_to)
    : Running(PANTALA_COMMAND, arguments, stderr_to) {}

Running::Running(const std::string& program, const std::vector<std::string>& arguments,
                 int stderr_to)
    : files_(std::make_unique<Files>()) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(files_->out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, stderr_to >= 0 ? stderr_to : fileno(files_->err.get()),
                                   STDERR_FILENO);
  const int error = posix_spawn(&child_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + program);
}

Running::~Running() {
  if (status_) return;
  send(SIGKILL);
  wait();
}

void Running::send(int signal) const { ::kill(child_, signal); }

bool Running::ended() {
  int status = 0;
  if (!status_ && waitpid(child_, &status, WNOHANG) == child_) status_ = status;
  return status_.has_value();
}

Outcome Running::wait() {
  if (!status_) {
    int status = 0;
    waitpid(child_, &status, 0);
    status_ = status;
  }
  return {WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_),
          content(files_->out.get()), content(files_->err.get())};
}

Outcome run_pantala(const std::vector<std::string>& arguments) { return Running(arguments).wait(); }

}  // namespace pantala::tests
