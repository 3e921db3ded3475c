// pantala ops [NAME]: the reference of all ops, or of one.
#include <fmt/format.h>

#include <memory>

#include "ops/table.h"
#include "tools/command.h"
#include "tools/op_reference.h"
#include "tools/options.h"

namespace pantala::tools {

Run ops_verb(VerbOptions& verb) {
  struct Options {
    std::string name;
    bool markdown = false, json = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("NAME", options->name, "One op instead of all");
  Option* markdown = verb.add_flag("--markdown", options->markdown, "The text of docs/ops.md");
  verb.add_flag("--json", options->json, "A JSON list")->excludes(markdown);
  return [options] {
    std::vector<const ir::OpDef*> ops(ops::table().all().begin(), ops::table().all().end());
    if (!options->name.empty()) ops = {&ops::table().get(options->name)};
    const ReferenceFormat format = options->json       ? ReferenceFormat::json
                                   : options->markdown ? ReferenceFormat::markdown
                                                       : ReferenceFormat::text;
    fmt::print("{}", op_reference(ops, format));
    return 0;
  };
}

}  // namespace pantala::tools
