// The command line: verbs, their options, and what exit codes mean. Results go to stdout, messages
// and progress to stderr.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pantala::tools {

class VerbOptions;

// 0 success, 1 the verb's own "no" (a failed check), 2 a mistake of the user, 3 the numbers of a
// training stopped being finite, 70 a bug of Pantala, 75 interrupted and saved, or the GPU was
// lost: run it again.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitDiverged = 3;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitInterrupted = 75;

// Does the verb's work once its options have been read; returns the exit code.
using Run = std::function<int()>;

// A verb: one file, tools/verb_NAME.cpp, and one row of the list in verbs.cpp.
struct Verb {
  const char* name;
  const char* help;
  Run (*describe)(VerbOptions& verb);  // describes its options on `verb` and returns its work
};
std::span<const Verb> verbs();

// A message for whoever reads stderr. That it cannot be written is no reason to do anything else.
void write_error(std::string_view text) noexcept;
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

// The message and the exit code of the exception that is being handled.
std::pair<std::string, int> error_answer();

// The whole command; never throws.
int run_command(int argc, char** argv) noexcept;

}  // namespace pantala::tools
