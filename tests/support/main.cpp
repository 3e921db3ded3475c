// The main function of every test binary. Under ctest, which says where, compiled kernels are
// shared by the processes of a run, and by the commands that they start; a binary that is run by
// hand compiles all it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/kernel_folder.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (const char* folder = std::getenv("PANTALA_KERNELS"); folder && *folder)
    pantala::compiler::share_kernels(folder);
  return RUN_ALL_TESTS();
}
