// A product of two matrices, tile by tile, as the kernels of contractions and convolutions on a GPU
// compute it: c(m, n) = sum over k of a(m, k) * b(n, k). A workgroup makes a tile of c. It brings a
// slice of both operands into shared memory, every thread adds its part of the tile up in registers
// (values that the loop carries), and so on along k. Operands are read by code of the caller, so
// that a convolution needs no matrix and work on an operand needs no kernel of its own; the
// finished tile goes through shared memory once more, so that the caller's code for the results
// stands there once.
//
// The sum of an element is one chain of fma over k, ascending, from +0.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kir/builder.h"
#include "schedule/target.h"

namespace pantala::schedule::gpu {

// All are powers of two. A thread has `rows` x `columns` elements of the tile, in blocks of 4 x 4.
struct TileShape {
  int m = 64, n = 64, k = 16;
  int rows = 4, columns = 4;
  int threads() const { return m / rows * (n / columns); }
  std::int64_t scratch() const;  // elements
  friend bool operator==(const TileShape&, const TileShape&) = default;
};
// For c[m, n], `times` of which are made at once.
TileShape choose_tile(std::int64_t m, std::int64_t n, std::int64_t times, const Target& target);

// The code for an element of an operand; where the mask does not hold it must not touch memory.
using TileLoad = std::function<kir::Var(kir::Var k, kir::Var mask)>;
struct TileOperand {
  // What does not depend on k is computed here, once for a thread's elements at one m (or n), which
  // may lie beyond the end.
  std::function<TileLoad(kir::Var at)> open;
  bool k_inner = true;  // neighbours along k are neighbours in memory
};

// Where a workgroup works.
struct TileRange {
  kir::Var first_m, m, first_n, n;  // the tile begins at the first ones; sizes of the whole
  kir::Var k_begin, k_end;
};

class TileProduct {
 public:
  // Scratch comes after all buffers.
  TileProduct(kir::Builder& b, DType dtype, const TileShape& shape);
  // `finish` is the code for an element of c, at which all its sums are known; neighbours along n
  // (or m) are finished by neighbouring threads.
  using Finish = std::function<void(kir::Var m, kir::Var n, kir::Var sum)>;
  void run(const TileRange& range, const TileOperand& a, const TileOperand& b, bool n_inner,
           const Finish& finish);

 private:
  // One of the elements of an operand that a thread brings into shared memory.
  struct Fetch {
    kir::Var k, inside, place;
    TileLoad load;
  };
  // An operand's part of a slice. What can be known before the loop along k is, if it is not much.
  struct Part {
    TileOperand operand;
    kir::Var first, size;
    int extent;
    std::int64_t start;
    std::vector<Fetch> opened = {};
  };
  Part part_of(const TileOperand& operand, kir::Var first, kir::Var size, int extent,
               std::int64_t start);
  int count(const Part& part) const;  // of elements that a thread brings
  std::vector<Fetch> fetches(const Part& part, kir::Var first, int count);
  void fetch(const Part& part, kir::Var k0, kir::Var k_end);
  void fetch(const std::vector<Fetch>& list, kir::Var k0, kir::Var k_end);
  std::vector<kir::Var> multiply(std::vector<kir::Var> sums);
  void finish_tile(const TileRange& range, bool n_inner, const std::vector<kir::Var>& sums,
                   const Finish& finish);

  kir::Builder& b_;
  const DType dtype_;
  const TileShape shape_;
  kir::BufferId tile_;
  kir::Var row_, column_;  // of the thread's first block in the tile
};

// x divided by, and modulo, a power of two; x is not negative.
kir::Var over(kir::Var x, int power);
kir::Var modulo(kir::Var x, int power);

}  // namespace pantala::schedule::gpu
