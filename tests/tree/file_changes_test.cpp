// What a run does to files can be stopped at every change by a test, if it all goes one way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tree/project_files.h"

namespace pantala::tests {
namespace {

TEST(FileChanges, of_runs_all_go_through_one_file) {
  const char* const kCalls[] = {"fs::remove",
                                "fs::rename",
                                "fs::create_dir",
                                "fs::copy",
                                "fs::resize",
                                "filesystem::remove",
                                "filesystem::rename",
                                "filesystem::create_dir",
                                "std::ofstream",
                                "fmt::output_file",
                                "fopen(",
                                "O_CREAT",
                                " ::rename(",
                                "::unlink(",
                                "::mkdir(",
                                "::ftruncate(",
                                "::fsync(",
                                " ::write("};
  std::vector<std::string> found;
  for (const SourceFile& file : project_files({"src/io", "src/train", "src/monitor", "src/run"})) {
    if (file.path == "src/io/file_changes.cpp") continue;
    std::istringstream lines(file.text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (std::any_of(std::begin(kCalls), std::end(kCalls),
                      [&](const char* call) { return line.find(call) != std::string::npos; }))
        found.push_back(file.path + ":" + std::to_string(number) + ": " + line);
    }
  }
  EXPECT_THAT(found, testing::IsEmpty()) << "use io/file_changes.h";
}

}  // namespace
}  // namespace pantala::tests
