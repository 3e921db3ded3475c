// Files that go with a test. Tests run as processes side by side: no two of them may share a name.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace pantala::tests {

// Where a folder is: `memory` is a file system without a disk, for what syncs hundreds of files, if
// there is one with enough space.
enum class Place { usual, memory };

// An empty folder of this process, removed with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(Place place = Place::usual) {
    static int count = 0;
    path_ = root_of(place) /
            ("pantala_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  static std::filesystem::path root_of(Place place) {
    constexpr std::uintmax_t kEnough = std::uintmax_t{32} << 20;
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    const bool has_memory = ::access(memory.c_str(), W_OK) == 0 &&
                            std::filesystem::space(memory, error).available >= kEnough && !error;
    if (place == Place::memory && has_memory) return memory;
    return ::testing::TempDir();
  }

  std::filesystem::path path_;
};

}  // namespace pantala::tests
