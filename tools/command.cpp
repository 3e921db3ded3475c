#include "tools/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "compiler/kernel_folder.h"
#include "pantala/error.h"
#include "pantala/trainer.h"
#include "tools/help.h"
#include "tools/manual.h"
#include "tools/options.h"
#include "tools/out_of_memory.h"

namespace pantala::tools {

namespace {

// A mistake on the command line.
class UsageError : public Error {
 public:
  using Error::Error;
};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(fmt::format("--{}", name));
  return names;
}

// Words that nothing on the command line accepted.
void check_unknown(const CLI::App& app) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  const CLI::App& verb = used.empty() ? app : *used[0];
  const std::vector<std::string> unknown = verb.remaining();
  if (unknown.empty()) return;
  const std::string& word = unknown[0];
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    throw UsageError(
        fmt::format("unknown option '{}'{}", name, did_you_mean(name, option_names(verb))));
  }
  if (!used.empty())
    throw UsageError(fmt::format("{}: unexpected argument '{}'", verb.get_name(), word));
  std::vector<std::string> names;
  for (const Verb& known : verbs()) names.emplace_back(known.name);
  throw UsageError(fmt::format("unknown verb '{}'{}", word, did_you_mean(word, names)));
}

// Reads the options of all verbs and returns the work of the one that was named; empty if help or
// the version was all that was asked for.
Run parse(CLI::App& app, int argc, char** argv) {
  std::vector<Run> runs;
  std::vector<CLI::App*> verbs;
  for (const Verb& verb : tools::verbs()) {
    verbs.push_back(app.add_subcommand(verb.name, verb.help)->allow_extras());
    VerbOptions options(*verbs.back());
    runs.push_back(verb.describe(options));
  }
  app.footer(help_footer());  // of the command alone: verbs inherit what stands here before they do
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    app.exit(request, std::cout, std::cerr);
    return {};
  } catch (const CLI::ParseError& error) {
    check_unknown(app);  // a slip in an option's name is a better answer than what follows from it
    throw UsageError(error.what());
  }
  check_unknown(app);
  for (std::size_t k = 0; k < verbs.size(); ++k)
    if (verbs[k]->parsed()) return runs[k];
  if (app.count("--man") > 0) return [&app] { return fmt::print("{}", manual_page(app)), 0; };
  throw UsageError("expected a verb\n" + app.help());
}

// The verb that was asked for, and what it printed has been written.
int run_verb(int argc, char** argv) {
  logging::configure(logging::options_of(std::getenv("PANTALA_LOG"), std::getenv("NO_COLOR")));
  if (const char* folder = std::getenv("PANTALA_KERNELS"); folder && *folder)
    compiler::share_kernels(folder);
  CLI::App app{"Pantala trains neural networks.", "pantala"};
  app.formatter(std::make_shared<HelpFormatter>());  // verbs inherit it
  app.set_version_flag("--version", "pantala " PANTALA_VERSION);
  app.add_flag("--man")->description("Print the manual page: pantala --man | man -l -");
  app.allow_extras()->require_subcommand(0, 1);
  const Run run = parse(app, argc, argv);
  const int code = run ? run() : 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category());
  return code;
}

// What fmt throws when it cannot write, and threads when there are no more.
std::string system_message(const std::system_error& error) {
  if (std::ferror(stdout) != 0)
    return fmt::format("cannot write to standard output: {}", error.code().message());
  if (error.code() == std::errc::resource_unavailable_try_again)
    return fmt::format("no further thread can be started: {}; --threads asks for fewer",
                       error.code().message());
  return error.what();
}

}  // namespace

std::pair<std::string, int> error_answer() {
  try {
    throw;
  } catch (const InternalError& error) {
    return {fmt::format("internal error: {}", error.what()), kExitInternal};
  } catch (const DivergenceError& error) {
    return {error.what(), kExitDiverged};
  } catch (const DeviceLostError& error) {
    return {error.what(), kExitInterrupted};
  } catch (const Error& error) {
    return {error.what(), kExitUsage};
  } catch (const std::system_error& error) {
    return {system_message(error), kExitUsage};
  } catch (const std::bad_alloc&) {
    return {refused_memory_text(), kExitUsage};
  } catch (const std::exception& error) {
    return {fmt::format("internal error: {}", error.what()), kExitInternal};
  }
}

void write_error(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int run_command(int argc, char** argv) noexcept {
  try {
    return run_verb(argc, argv);
  } catch (...) {
    try {
      const auto [message, code] = error_answer();
      print_error("pantala: {}\n", message);
      return code;
    } catch (...) {  // there is not even memory for the message
      write_error("pantala: there is not enough memory\n");
      return kExitUsage;
    }
  }
}

}  // namespace pantala::tools
