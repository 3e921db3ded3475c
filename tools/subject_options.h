// The options by which a verb is told what to compile.
#pragma once

#include "tools/inspect/subject.h"
#include "tools/options.h"

namespace pantala::tools {

void add_subject_options(VerbOptions& verb, InspectSubject& subject);

}  // namespace pantala::tools
