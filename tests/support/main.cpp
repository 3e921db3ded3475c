// The main function of every test binary. Under ctest, which says where, objects are shared by the
// processes of a run; a binary that is run by hand compiles all it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/shared_objects.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (const char* folder = std::getenv("PANTALA_TEST_OBJECTS"); folder && *folder)
    pantala::tests::share_objects(folder);
  return RUN_ALL_TESTS();
}
