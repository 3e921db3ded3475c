// What launchers leave in the environment.
#include "distributed/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace pantala::distributed {
namespace {

using ::testing::HasSubstr;

std::optional<Launch> launch(std::map<std::string, std::string> variables) {
  return launch_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, is_known_by_its_variables) {
  const auto open = launch({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  ASSERT_TRUE(open);
  EXPECT_EQ(open->rank, 2);
  EXPECT_EQ(open->size, 4);
  EXPECT_THAT(open->plugins.front(), HasSubstr("openmpi"));
  const auto mpich = launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"SLURM_NTASKS", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_THAT(mpich->plugins.front(), HasSubstr("mpich"));
  const auto slurm = launch({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "8"}});
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->rank, 5);
  EXPECT_EQ(slurm->size, 8);
}

TEST(Launcher, is_none_without_them_or_with_others) {
  EXPECT_FALSE(launch({}));
  EXPECT_FALSE(launch({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(launch({{"PMI_RANK", "first"}}));
}

}  // namespace
}  // namespace pantala::distributed
