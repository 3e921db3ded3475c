#include "schedule/cpu/cost_tables.h"

namespace pantala::schedule::cpu {

const CostTable& shipped_cost_table(int vector_bytes) {
  static const CostTable avx2{
      .name = "avx2",
      .target = {.vector_bytes = 32,
                 .vector_registers = 16,
                 .l2_bytes = 1 << 20,
                 .l3_bytes = 32 << 20},
      .cycles_us = 3000,
      .vector_op = 0.18,
      .vector_access = 0.4,
      .strided = 4,
      .gathered = 3,
      .row = 10,
      .item = 20,
      .contract = 0.95,
      .conv = 0.7,
      .attention = 1.65,
      .l2_byte = 0.02,
      .l3_byte = 0.027,
      .memory_byte = 0.066,
      .shared_memory_byte = 0.056,
      .launch = 0.3,
      .barrier = 0.5,
  };
  static const CostTable avx512 = [] {
    CostTable table = avx2;
    table.name = "avx512";
    table.target.vector_bytes = 64;
    table.target.vector_registers = 32;
    // Two products a cycle at the width of AVX2 are one at twice the width on most of them.
    table.contract = 1.65;
    table.conv = 1.4;
    table.attention = 2.6;
    table.gathered = 2.4;
    table.vector_op = 0.25;
    return table;
  }();
  return vector_bytes >= 64 ? avx512 : avx2;
}

}  // namespace pantala::schedule::cpu
