#include "tools/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "tools/command.h"
#include "tools/options.h"

namespace pantala::tools {

namespace {

struct ExitCode {
  int code;
  const char* meaning;
};
constexpr ExitCode kExitCodes[] = {
    {0, "Success."},
    {kExitFailed, "A check that the verb makes has failed."},
    {kExitUsage,
     "A mistake in the command line, in a file or in the data; the message says where."},
    {kExitDiverged, "The training diverged: a loss or gradient was not finite."},
    {kExitInternal, "A bug of Pantala."},
    {kExitInterrupted,
     "Interrupted by a signal, and saved: the same command, without --restart, "
     "continues."},
};

struct Entry {
  const char* name;
  const char* meaning;
};
// Those of single options are read from the options.
constexpr Entry kEnvironment[] = {
    {"PANTALA_LOG",
     "The least important messages that are written to standard error: trace, debug, info, warning "
     "(the default), error or off."},
    {"NO_COLOR", "If set: no colours on a terminal."},
    {"PANTALA_DATA", "A folder with data sets: fashion-mnist is looked for there first."},
    {"XDG_CACHE_HOME",
     "Compiled plans are kept in its folder pantala; not set: in ~/.cache/pantala."},
    {"PANTALA_KERNELS", "A folder of compiled kernels, for plans that have kernels in common."},
};

constexpr Entry kFiles[] = {
    {"runs/MODEL-DATA/", "The folder of a training run, unless the run is given another one."},
    {"runs/MODEL-DATA/config.toml", "The run's whole configuration, defaults included."},
    {"runs/MODEL-DATA/environment.json", "The machine and the version that the run was made with."},
    {"runs/MODEL-DATA/metrics.jsonl, metrics.csv, events.out.tfevents.*",
     "What was measured, as JSON lines, as a table, and for TensorBoard."},
    {"runs/MODEL-DATA/checkpoints/",
     "A folder per checkpoint; the same command continues from the newest whole one."},
    {"runs/MODEL-DATA/data.json", "Shape, classes or targets, and normalisation of the data."},
    {"runs/MODEL-DATA/model.safetensors", "The trained model."},
    {"runs/MODEL-DATA/plots/", "The loss, and accuracy, r2 or perplexity, as SVG."},
    {"runs/MODEL-DATA/result.json", "The result, written at the end."},
    {"runs/MODEL-DATA/diverged/",
     "After a stop because of numbers that are not finite: the batch, the state and the "
     "diagnosis."},
    {"/usr/share/datasets/fashion-mnist/",
     "The images of Fashion-MNIST, as the Debian package dataset-fashion-mnist installs them."},
};

// Text as roff shows it unchanged: no escapes, no hyphens for minus signs, no requests.
std::string escaped(std::string_view text) {
  std::string roff;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) roff += "\\&";
    line_start = c == '\n';
    if (c == '\\')
      roff += "\\e";
    else if (c == '-')
      roff += "\\-";
    else if (c == '\n')
      roff += "\n.br\n";
    else
      roff += c;
  }
  return roff;
}

std::string paragraph(std::string_view text) { return ".PP\n" + escaped(text) + "\n"; }

// A term in bold, what belongs to it in roman, and below, indented, what it means.
std::string entry(std::string_view term, std::string_view rest, std::string_view meaning) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", escaped(term), escaped(rest),
                     meaning.empty() ? "\\&" : escaped(meaning));
}

bool shown(const CLI::Option& option) { return !option.get_group().empty(); }

std::vector<const CLI::App*> verbs_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string entry(const CLI::Option& option, bool positional) {
  const CLI::Formatter words;  // those of --help
  return entry(words.make_option_name(&option, positional), words.make_option_opts(&option),
               full_text(option.get_description()));
}

// Arguments, then the groups of options in the order of their first options.
std::string options_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    if (shown(*option) && option->get_positional()) text += entry(*option, true);
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : app.get_options())
      if (shown(*option) && option->nonpositional() && option->get_group() == group)
        entries += entry(*option, false);
    if (!entries.empty() && group != "Options") text += paragraph(group + ":");
    text += entries;
  }
  return text;
}

std::string verb_text(const CLI::App& verb) {
  std::string usage = "pantala " + verb.get_name();
  const CLI::Formatter words;
  for (const CLI::Option* option : verb.get_options())
    if (shown(*option) && option->get_positional()) usage += " " + words.make_option_usage(option);
  std::string text = fmt::format(".SS {} [OPTIONS]\n", escaped(usage));
  text += paragraph(verb.get_description()) + options_text(verb);
  if (const std::string footer = verb.get_footer(); !footer.empty()) text += paragraph(footer);
  return text;
}

std::string environment_text(const CLI::App& command) {
  std::string text;
  for (const Entry& variable : kEnvironment) text += entry(variable.name, "", variable.meaning);
  for (const CLI::App* verb : verbs_of(command))
    for (const CLI::Option* option : verb->get_options())
      if (const std::string name = option->get_envname(); !name.empty())
        text += entry(
            name, "",
            fmt::format("Stands in for {} of pantala {}.", option->get_name(), verb->get_name()));
  return text;
}

std::string exit_code_text() {
  std::string text;
  for (const ExitCode& code : kExitCodes)
    text += entry(fmt::format("{}", code.code), "", code.meaning);
  return text;
}

}  // namespace

std::string help_footer() {
  std::string text = "Exit codes:\n";
  for (const ExitCode& code : kExitCodes)
    text += fmt::format("  {:<4}{}\n", code.code, code.meaning);
  text += "\nEnvironment:\n";
  for (const Entry& variable : kEnvironment)
    text += fmt::format("  {}: {}\n", variable.name, variable.meaning);
  return text;
}

std::string manual_page(const CLI::App& command) {
  std::string text = fmt::format(
      ".TH PANTALA 1 \"\" \"{}\" \"User Commands\"\n"
      ".nh\n.ad l\n"  // names and numbers are not hyphenated, lines not stretched
      ".SH NAME\npantala \\- train neural networks\n"
      ".SH SYNOPSIS\n\\fBpantala\\fR VERB [OPTIONS]\n"
      ".SH DESCRIPTION\n{}\n",
      escaped(command.version()), escaped(command.get_description()));
  text += ".SH OPTIONS\n" + options_text(command);
  text += ".SH VERBS\n";
  for (const CLI::App* verb : verbs_of(command)) text += verb_text(*verb);
  text += ".SH EXIT STATUS\n" + exit_code_text();
  text += ".SH ENVIRONMENT\n" + environment_text(command);
  text += ".SH FILES\n";
  for (const Entry& file : kFiles) text += entry(file.name, "", file.meaning);
  return text;
}

}  // namespace pantala::tools
