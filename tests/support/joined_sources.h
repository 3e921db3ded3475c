// Files that are compiled as one must not hear each other's private names. The compiler does not
// warn: a name of one file's unnamed namespace silently stands before a header's name, or joins its
// overloads, in every file behind it. So no file of a group may say a name that another one of
// the group declares for itself.
#pragma once

#include <string>
#include <vector>

#include "support/layering.h"

namespace pantala::tests {

// What a file declares for itself (in unnamed namespaces, static, as macros) or brings into a
// namespace that others have too (using, aliases), and the names that it says, but for members
// (x.name, x->name) and names of std. Read as text, so that in doubt a name counts.
struct SpokenNames {
  std::vector<std::string> own, brought, said;  // each sorted
};
SpokenNames spoken_names(const std::string& text);

// One line per pair of files and direction: "a.cpp says 'f', which b.cpp declares for itself".
// A group is a list of paths; one that is none of the files, or stands in two groups, is named too.
std::vector<std::string> joining_violations(const std::vector<std::vector<std::string>>& groups,
                                            const std::vector<SourceFile>& files);

}  // namespace pantala::tests
