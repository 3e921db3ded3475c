#include "schedule/cpu/archetypes.h"

#include "schedule/common/recurrent/recurrent.h"
#include "schedule/common/serial/serial.h"
#include "schedule/cpu/attention/attention.h"
#include "schedule/cpu/contract/contract.h"
#include "schedule/cpu/conv/conv.h"
#include "schedule/cpu/map/map.h"
#include "schedule/cpu/reduce/reduce.h"

namespace pantala::schedule::cpu {

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

}  // namespace pantala::schedule::cpu
