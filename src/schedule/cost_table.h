// A cost table: what the work of a processor costs, in constants of the estimate (estimate.h). The
// processor that it describes is a nominal one: choices that are made by the table are the same on
// every machine that uses it, whatever its threads, caches or load.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "schedule/target.h"

namespace pantala::schedule {

struct CostTable {
  std::string name;
  Target target;         // vectors and caches
  double workers = 2;    // cores that share the launches
  double cycles_us = 0;  // cycles of a core in a microsecond

  // Cycles of a core whose data lie in its first cache.
  double vector_op = 0;      // an addition, on one vector
  double vector_access = 0;  // neighbours, one vector
  double strided = 0;        // an element at a distance
  double gathered = 0;       // an element somewhere
  double row = 0;            // to begin another row
  double item = 0;           // to take another item
  // What tilings reckon with, by what was measured.
  double contract = 1, conv = 1, attention = 1;

  // Cycles of a core for a byte that lies further away, and for all cores together.
  double l2_byte = 0, l3_byte = 0, memory_byte = 0;
  double shared_memory_byte = 0;

  // Microseconds.
  double launch = 0;   // of a kernel
  double barrier = 0;  // before one that waits for others
};

// The names and places of all numbers of a table, in the order of its text form, and what they may
// be: further than that no processor is from any other.
struct CostField {
  std::string_view name;
  double CostTable::* value;
  double least = 0, most = 0;
};
const std::vector<CostField>& cost_fields();

// The text form: `name = value` a line, `#` begins a comment. ParseError with the line for a text
// that is none, a number out of its range, and a name that is not known, with the nearest.
std::string to_text(const CostTable& table);
CostTable parse_cost_table(const std::string& text, const std::string& file);

// Equal for equal numbers: what a plan that was chosen by the table depends on.
Digest digest_of(const CostTable& table);

}  // namespace pantala::schedule
