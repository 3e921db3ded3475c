// What a group computes and moves, as plain data. It is found from the decisions alone: nothing is
// built, so that alternatives can be compared by it, and the launches of a program are described
// with it afterwards.
//
// Bytes are those that move between memory and a core if every element is taken once, however often
// the code comes back to it: what a slice leaves out, the rows that a gather does not choose and
// the other operands of a concatenation are not among them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

// How code walks a buffer from one element of its innermost loop to the next.
enum class Stride : std::uint8_t {
  none,      // it stays at one element
  unit,      // neighbours
  strided,   // elements at a distance that is known
  gathered,  // wherever an index from memory leads
};

constexpr int kEveryKernel = -1;

// What a group does to a buffer; a buffer that is read and written has one of each.
struct MemoryUse {
  std::uint32_t buffer = 0;
  bool is_write = false;
  Stride stride = Stride::none;  // of several ways to walk it, the worst
  double elements = 0;           // different ones that are touched
  double accesses = 0;  // loads or stores of one element, as if nothing stayed in registers
  double bytes = 0;     // that move: whole cache lines where elements lie apart
  // Whether lines of the cache are taken one here and one there: nothing can be fetched ahead.
  bool jumps = false;
  // Which of the group's kernels does it: the number of the one, or all that take the buffer.
  int kernel = kEveryKernel;
};

struct Work {
  double flops = 0;  // in additions, as scalar_op_cost() counts them
  std::vector<MemoryUse> uses;

  double read_bytes() const;
  double written_bytes() const;
};

// Of a group whose outputs have their places.
Work work_of(const Context& context, const Group& group);
// Of all groups, in their order.
std::vector<Work> work_of(const Decisions& decisions, const Machine& machine,
                          const ScheduleOptions& options);

// --- for the rows of archetypes

// Code that runs once for every element of a domain, with lanes along one of its loops.
struct Walk {
  const Domain& domain;
  LoopId lane = {};  // none: the last loop of more than one iteration
  // Whether indices that are not affine may differ from lane to lane.
  bool is_led = true;
  LoopId inner = {};  // that is walked for each vector of lanes; none: they follow one another
  int kernel = kEveryKernel;
};
// What the code reads.
void add_reads(const Context& context, const Walk& walk, const Footprint& footprint, Work& work);
// One way to read or write a buffer, `times` for every element of the domain.
void add_access(const Context& context, const Walk& walk, std::uint32_t buffer, bool is_write,
                const Access& access, double times, Work& work);
// An output of the code, each of whose elements is written once.
void add_write(const Context& context, const Walk& walk, std::uint32_t buffer, const Affine& write,
               Work& work);
// All of a buffer, in no order that is known, each element so often.
void add_whole(const Context& context, std::uint32_t buffer, bool is_write, double times,
               Work& work, int kernel = kEveryKernel);

}  // namespace pantala::schedule
