// What verbs know of the process that they run in: environment variables, the command line, where
// compiled plans are kept.
#pragma once

#include <filesystem>

#include "pantala/run.h"

namespace pantala::tools {

// Opens /dev/null for those of the descriptors 0 to 2 that are closed: the next file that is opened
// would be taken for stdout or stderr.
void open_standard_descriptors() noexcept;

// pantala in $XDG_CACHE_HOME or ~/.cache, made for the user alone; "" (with a warning) if there is
// no such place.
std::filesystem::path cache_folder();
// pantala in $XDG_CONFIG_HOME or ~/.config, which need not be there. IoError if neither variable
// names a folder.
std::filesystem::path config_folder();
// Of compiled plans, in that of the cache; "": none.
std::filesystem::path plan_cache();

// Plans, the command line of this process, and stderr with TERM and NO_COLOR as they are.
run::Surroundings surroundings();

}  // namespace pantala::tools
