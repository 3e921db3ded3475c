// pantala verify-resume: proves for a config that interruptions change no bit.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "io/json.h"
#include "run/setup.h"
#include "run/verify_resume.h"
#include "tools/command.h"
#include "tools/config_flags.h"
#include "tools/options.h"
#include "tools/process.h"

namespace pantala::tools {

namespace {

struct Options {
  std::int64_t steps = 30, interruptions = 3;
  bool json = false;
};

int verify(const run::RunConfig& config, const Options& options) {
  const bool talk = config.output.progress != "none";
  if (talk) print_error("{}\n", run::device_line(config));
  const run::VerifyResult result =
      run::verify_resume(config, {.steps = options.steps,
                                  .interruptions = options.interruptions,
                                  .plan_cache = plan_cache(),
                                  .tell = [&](const std::string& line) {
                                    if (talk) print_error("{}\n", line);
                                  }});
  const bool same = result.differences.empty();
  if (options.json)
    fmt::print("{}\n", io::OrderedJson{{"same", same},
                                       {"steps", result.steps},
                                       {"places", result.places},
                                       {"differences", result.differences}}
                           .dump());
  else if (same)
    fmt::print("the same bits: {} with {} as in one piece\n",
               counted(static_cast<std::size_t>(result.steps), "update"),
               counted(result.places.size(), "interruption"));
  else
    for (const std::string& difference : result.differences)
      fmt::print("differs: {}\n", difference);
  return same ? 0 : kExitFailed;
}

}  // namespace

Run verify_resume_verb(VerbOptions& verb) {
  const auto options = std::make_shared<Options>();
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(verb);
  verb.add_option("--steps", options->steps, "Updates of the weights that are compared, at most")
      ->between(1, 1000000000)
      ->capture_default_str();
  verb.add_option("--interruptions", options->interruptions,
                  "Places where the run is interrupted: each alone, then all in one run")
      ->between(1, 100)
      ->capture_default_str();
  verb.add_flag("--json", options->json, "One JSON object");
  verb.footer(
      "Trains the config in one piece and with interruptions, in temporary folders, and compares\n"
      "all bits of parameters, optimizer state, counters and history. Exits with 1 if one "
      "differs.\n"
      "Examples:\n"
      "  pantala verify-resume run.toml\n"
      "  pantala verify-resume --model mlp --set accumulate=3 --steps 100 --interruptions 5");
  return [options, flags] { return verify(flags->config(), *options); };
}

}  // namespace pantala::tools
