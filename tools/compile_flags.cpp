#include "tools/compile_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "device/device.h"
#include "tools/config_flags.h"

namespace pantala::tools {

namespace {

const std::string& usual(const std::vector<std::string>& names, auto value) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace

void add_device_flag(VerbOptions& verb, std::string& device, std::string_view otherwise) {
  verb.add_option(
      "--device", device,
      fmt::format("What computes: {}; vulkan:1 is a GPU by its number, vulkan:radeon by "
                  "a part of its name, auto the first GPU or the cpu (without it: {})",
                  fmt::join(device::device_names(), ", "), otherwise));
}

void add_compile_flags(VerbOptions& verb, CompileChoice& choice) {
  add_device_flag(verb, choice.device, "cpu");
  verb.add_option("--rewrite", choice.rewrite,
                  fmt::format("How a graph that takes less time is looked for: {} (without it: {})",
                              fmt::join(rewrite_names(), ", "),
                              usual(rewrite_names(), CompileOptions{}.rewrite)));
  verb.add_option("--numerics", choice.numerics,
                  fmt::format("What may be taken for equal: {} (without it: {})",
                              fmt::join(numerics_names(), ", "),
                              usual(numerics_names(), CompileOptions{}.numerics)));
  verb.add_option(
      "--memory-limit", choice.memory_limit,
      "The most that temporaries and scratch of a step may take, such as 500M or 2G: what "
      "does not fit is computed again");
  verb.add_option("--cost-table", choice.cost_table,
                  "The cost table by which the graph is chosen, as pantala tune writes it; not "
                  "given: the one that is shipped for the processor's vectors")
      ->type_name("FILE");
  add_repeatable(verb, "--rules-off", "A rule that is switched off, by name; several with commas",
                 [&choice](const std::vector<std::string>& given) {
                   for (const std::string& some : given)
                     for (std::string& name : comma_parts(some))
                       choice.rules_off.push_back(std::move(name));
                 });
}

}  // namespace pantala::tools
