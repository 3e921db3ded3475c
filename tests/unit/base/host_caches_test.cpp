// The caches of the processor, as the system tells them.
#include "base/host_caches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/file.h"
#include "support/temporary.h"

namespace pantala {
namespace {

class Caches : public testing::Test {
 protected:
  void add(int index, const char* type, const char* level, const char* size, const char* ways) {
    const auto at = folder / fmt::format("index{}", index);
    std::filesystem::create_directories(at);
    io::write_file(at / "type", fmt::format("{}\n", type));
    io::write_file(at / "level", fmt::format("{}\n", level));
    io::write_file(at / "size", fmt::format("{}\n", size));
    io::write_file(at / "ways_of_associativity", fmt::format("{}\n", ways));
  }
  HostCaches read() const {
    HostCaches caches;
    read_caches(folder, caches);
    return caches;
  }
  const tests::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
};

TEST_F(Caches, are_read_from_the_system) {
  add(0, "Data", "1", "48K", "12");
  add(1, "Instruction", "1", "64K", "16");
  add(2, "Unified", "2", "2048K", "16");
  add(3, "Unified", "3", "32M", "16");
  const HostCaches caches = read();
  EXPECT_EQ(caches.l1_bytes, 48 << 10);
  EXPECT_EQ(caches.l1_ways, 12);
  EXPECT_EQ(caches.l2_bytes, 2 << 20);
  EXPECT_EQ(caches.l3_bytes, 32 << 20);
}

TEST_F(Caches, what_is_missing_or_senseless_has_defaults) {
  EXPECT_EQ(read(), HostCaches());
  add(0, "Data", "1", "lots", "many");
  add(1, "Unified", "2", "-5K", "0");
  add(2, "Unified", "3", "1", "0");
  EXPECT_EQ(read(), HostCaches());
  add(0, "Data", "1", "1024K", "0");
  EXPECT_EQ(read().l1_bytes, 1 << 20);
  EXPECT_EQ(read().l1_ways, 8);
  EXPECT_EQ(read().l2_bytes, 1 << 20) << "no smaller than the first level";
}

}  // namespace
}  // namespace pantala
