// The manual of the command, made from what the verbs say of themselves (the descriptions that
// --help prints) and from the tables of exit codes, environment variables and files that are kept
// here.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pantala::tools {

// What stands below the verbs in `pantala --help`.
std::string help_footer();

// `man pantala`, in roff: all verbs and options of `command`.
std::string manual_page(const CLI::App& command);

}  // namespace pantala::tools
