// Where this user's programs keep what can be made again.
#pragma once

#include <filesystem>

namespace pantala {

// pantala in $XDG_CACHE_HOME or ~/.cache, made for the user alone if it is missing. "" if neither
// variable names a folder or it cannot be made.
std::filesystem::path user_cache_folder();
// The folder that the variable names, or this one in the user's home; "": there is neither.
std::filesystem::path user_folder(const char* variable, const char* in_home);

}  // namespace pantala
