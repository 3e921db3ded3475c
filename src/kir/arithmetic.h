// What the pure instructions compute, on the host: the meaning that the interpreter runs, the
// simplifier folds with and backends must match bit by bit (but for the sign and payload of a NaN
// that arithmetic makes).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kir/kernel.h"

namespace pantala::kir {

// The bytes of a register: its lanes one after another, a bool as one byte 0 or 1.
std::size_t register_bytes(const VType& type);

// Computes a pure instruction other than constant and param. `operand` is the type of the first
// argument that decides what happens (of select: its second, of those without arguments: the
// result's); every pointer is aligned for its type, results do not overlap arguments. Returns what
// went wrong (a division that has no result), or "".
std::string_view compute(const Inst& inst, const VType& operand, const VType& result,
                         std::span<const std::byte* const> args,
                         std::span<std::byte* const> results);

// Writes the number of a constant into every lane.
void write_constant(const Inst& inst, const VType& type, std::byte* out);

// One element of memory to and from a register lane.
void load_element(DType memory, const std::byte* from, std::byte* lane);
void store_element(DType memory, const std::byte* lane, std::byte* to);

}  // namespace pantala::kir
