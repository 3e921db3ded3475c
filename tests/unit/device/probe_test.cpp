// What the machine can do at most is measured, not known: only what must hold anywhere is checked.
#include "device/cpu/probe.h"

#include <gtest/gtest.h>

#include "pantala/error.h"

namespace pantala::device::cpu::probe_test {
namespace {

TEST(Probe, measures_numbers_and_bytes) {
  const Probe probe = probe_host({.workers = 2, .seconds = 0, .megabytes = 1});
  EXPECT_EQ(probe.workers, 2);
  for (const double figure :
       {probe.flops, probe.flops_of_one, probe.read_bytes, probe.copy_bytes}) {
    EXPECT_GT(figure, 1e6);
    EXPECT_LT(figure, 1e16);
  }
  EXPECT_GE(probe.bytes(), probe.copy_bytes);
  EXPECT_GE(probe.bytes(), probe.read_bytes);
}

TEST(Probe, refuses_workers_that_cannot_be) {
  EXPECT_THROW(probe_host({.workers = -1}), DeviceError);
}

}  // namespace
}  // namespace pantala::device::cpu::probe_test
