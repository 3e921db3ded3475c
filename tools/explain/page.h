// An explanation as one page for a browser: nothing is loaded from anywhere.
#pragma once

#include <string>
#include <string_view>

#include "tools/explain/explanation.h"

namespace pantala::tools {

std::string explanation_page(const Explanation& explanation);

// A JSON document as the content of a script element, which it cannot end.
std::string json_in_script(std::string_view json);

}  // namespace pantala::tools
