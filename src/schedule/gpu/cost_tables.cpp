#include "schedule/gpu/cost_tables.h"

namespace pantala::schedule::gpu {

namespace {

// Workers are 16 lanes of a processor that has 2048 of them; what is counted is one lane's.
const CostTable& gpu_table() {
  static const CostTable table{
      .name = "gpu",
      .target = {.vector_bytes = 4,
                 .vector_registers = 32,
                 .l2_bytes = 64 << 10,
                 .l3_bytes = 4 << 20,
                 .group_threads = 256,
                 .subgroup_threads = 32,
                 .group_bytes = 32 << 10},
      .workers = 128,
      .cycles_us = 1500,
      .vector_op = 0.0625,
      .vector_access = 0.25,
      .strided = 1,
      .gathered = 1.5,
      .row = 20,
      .item = 100,
      .contract = 2.5,
      .conv = 4,
      .attention = 4,
      .l2_byte = 0.02,
      .l3_byte = 0.02,
      .memory_byte = 0.05,
      .shared_memory_byte = 0.005,
      .launch = 4,
      .barrier = 1,
  };
  return table;
}

// The threads of two cores: launches are dear, and memory is that of the CPU.
const CostTable& software_gpu_table() {
  static const CostTable table = [] {
    CostTable t = gpu_table();
    t.name = "software_gpu";
    t.target.subgroup_threads = 8;
    t.target.l2_bytes = 1 << 20;
    t.target.l3_bytes = 32 << 20;
    t.workers = 2;
    t.cycles_us = 3000;
    t.vector_op = 0.25;
    t.vector_access = 0.5;
    t.row = 100;
    t.item = 300;
    t.l2_byte = 0.02;
    t.l3_byte = 0.027;
    t.memory_byte = 0.066;
    t.shared_memory_byte = 0.077;
    t.launch = 25;
    t.barrier = 13;
    return t;
  }();
  return table;
}

}  // namespace

const CostTable& shipped_cost_table(const Target& target) {
  return target.is_software() ? software_gpu_table() : gpu_table();
}

}  // namespace pantala::schedule::gpu
