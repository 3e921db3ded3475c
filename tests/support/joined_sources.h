// Files that are compiled as one must not hear each other's private names. The compiler does not
// warn: a name of one file's unnamed namespace silently stands before a header's name, or joins its
// overloads, in every file behind it, and in the headers that are read there for the first time. So
// neither a file of a group nor such a header may say a name that another file of the group
// declares for itself.
#pragma once

#include <string>
#include <vector>

#include "support/layering.h"

namespace pantala::tests {

// What a file declares for itself (in unnamed namespaces, static, as macros) or brings into a
// namespace that others have too (using, aliases), and the names that it says, but for members
// (x.name, x->name) and names of std. Read as text, so that in doubt a name counts.
struct SpokenNames {
  std::vector<std::string> own = {}, brought = {}, said = {};  // each sorted
};
SpokenNames spoken_names(const std::string& text);

// One line per name: "a.cpp says 'f', which b.cpp declares for itself", or "x.h, which a.cpp
// includes, says ...". A group is a list of paths in the order in which they are joined; one that
// is none of the files, or stands in two groups, is named too. Headers are found as "src/...",
// "include/..." or by their own path.
std::vector<std::string> joining_violations(const std::vector<std::vector<std::string>>& groups,
                                            const std::vector<SourceFile>& files);

}  // namespace pantala::tests
