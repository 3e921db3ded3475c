// What somebody with a device that nobody here has can send back: the device, whether it computes
// what the CPU does, and how long everything takes there.
#pragma once

#include "tools/bench_measure.h"

namespace pantala::tools {

// Measures the workloads of the options one after the other, a product of two matrices before them.
// The file is written anew after each, so that whatever ends the process leaves what came before. A
// workload that fails has an `error` there. Returns the exit code: not 0 if all of them failed.
int write_bench_report(const BenchOptions& options);

}  // namespace pantala::tools
