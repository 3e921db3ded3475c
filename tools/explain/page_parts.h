// The files page.css and page.js, which are part of the command.
#pragma once

#include <string_view>

namespace pantala::tools {

extern const std::string_view kPageStyle, kPageScript;

}  // namespace pantala::tools
