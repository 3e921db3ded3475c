#include "tree/project_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pantala::tests {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<SourceFile> project_files(const std::vector<std::string>& folders) {
  const std::filesystem::path root = PANTALA_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cpp")
        files.push_back({std::filesystem::relative(entry.path(), root).string(),
                         read_text(entry.path().string())});
    }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace pantala::tests
