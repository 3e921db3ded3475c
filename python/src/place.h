// The user's place in Python: the innermost frame outside of the package. Graphs keep it where C++
// programs have std::source_location, so that errors name the line of the user's own file.
#pragma once

#include <string>

#include "pantala/tensor.h"

namespace pantala::python {

// Of the frame that is running; the interpreter's lock is held.
Where python_place();
// "train.py:12"; "" outside of Python code.
std::string place_text();

}  // namespace pantala::python
