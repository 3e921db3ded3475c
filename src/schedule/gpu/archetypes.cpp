#include "schedule/gpu/archetypes.h"

#include "schedule/common/recurrent/recurrent.h"
#include "schedule/common/serial/serial.h"
#include "schedule/gpu/attention/attention.h"
#include "schedule/gpu/contract/contract.h"
#include "schedule/gpu/conv/conv.h"
#include "schedule/gpu/map/map.h"
#include "schedule/gpu/reduce/reduce.h"

namespace pantala::schedule::gpu {

const ArchetypeTable& archetypes() {
  static const ArchetypeTable table(map_archetype(), {
                                                         &reduce_archetype(),
                                                         &contract_archetype(),
                                                         &conv_archetype(),
                                                         &attention_archetype(),
                                                         &recurrent_archetype(),
                                                         &search_archetype(),
                                                         &top_archetype(),
                                                         &scan_archetype(),
                                                         &scatter_archetype(),
                                                     });
  return table;
}

Target least_target() {
  return {.vector_bytes = 4,
          .vector_registers = 32,
          .group_threads = 128,
          .subgroup_threads = 8,
          .group_bytes = 16 << 10};
}

}  // namespace pantala::schedule::gpu
