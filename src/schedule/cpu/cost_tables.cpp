#include "schedule/cpu/cost_tables.h"

namespace pantala::schedule::cpu {

// Fitted by `pantala tune` to the launches of the nine training workloads of `pantala bench` on two
// cores of a Zen 5, with code for AVX-512 and for AVX2; what a launch costs is rounded up.
const CostTable& shipped_cost_table(int vector_bytes) {
  static const CostTable avx2{
      .name = "avx2",
      .target = {.vector_bytes = 32,
                 .vector_registers = 16,
                 .l2_bytes = 1 << 20,
                 .l3_bytes = 32 << 20},
      .cycles_us = 3000,
      .vector_op = 0.0732,
      .vector_access = 0.235,
      .strided = 3.69,
      .gathered = 1.91,
      .row = 8.61,
      .item = 7.81,
      .contract = 0.704,
      .conv = 0.579,
      .attention = 1.31,
      .l2_byte = 0.0167,
      .l3_byte = 0.0167,
      .memory_byte = 0.0338,
      .shared_memory_byte = 0.033,
      .launch = 0.2,
      .barrier = 0.5,
  };
  static const CostTable avx512 = [] {
    CostTable table = avx2;
    table.name = "avx512";
    table.target.vector_bytes = 64;
    table.target.vector_registers = 32;
    table.vector_op = 0.125;
    table.vector_access = 0.321;
    table.strided = 2.96;
    table.gathered = 1.27;
    table.row = 6.19;
    table.item = 5.45;
    table.contract = 0.749;
    table.conv = 0.587;
    table.attention = 1.28;
    table.l2_byte = 0.00721;
    table.l3_byte = 0.00917;
    table.memory_byte = 0.0303;
    table.shared_memory_byte = 0.0303;
    return table;
  }();
  return vector_bytes >= 64 ? avx512 : avx2;
}

}  // namespace pantala::schedule::cpu
