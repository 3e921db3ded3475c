// A product by tiles as a group of kernels: which tile, into how many slices the sum is cut, and
// the two kernels that follow. Contractions and convolutions say what their operands and results
// are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "schedule/common/elementwise.h"
#include "schedule/estimate.h"
#include "schedule/gpu/elements.h"
#include "schedule/gpu/tile.h"

namespace pantala::schedule::gpu {

struct ProductSizes {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  double flops() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k); }
};

struct ProductTiling {
  TileShape tile;
  std::int64_t slices = 1, slice = 1;  // of k: how many, and how long
};
ProductTiling choose_tiling(const ProductSizes& sizes, const Target& target);
std::int64_t product_items(const ProductSizes& sizes, const ProductTiling& tiling);

// The problem that kernels compute.
struct Product {
  std::uint32_t node = 0;
  std::string name;  // of its launches
  DType dtype = DType::f32;
  ProductSizes sizes;
  bool n_inner = true;   // neighbours along n are neighbours in the result
  ElementwiseBody body;  // of the outputs, made of the node's value

  // The operands' buffers, announced before and declared after the outputs' own.
  std::function<void(Arguments&)> announce = {};
  // What a kernel needs once; then the operands of a batch.
  std::function<void(kir::Builder&, Arguments&)> declare = {};
  std::function<TileOperand(kir::Var batch)> a = {}, b = {};
  // The site of an element of the result; what it needs is declared by the second function.
  std::function<Site(kir::Builder&, kir::Var batch, kir::Var m, kir::Var n)> site = {};
  std::function<void(kir::Builder&, Arguments&)> declare_site = {};
};
std::vector<KernelDraft> build_product(Building& building, const Product& product);

// The first kernel, and the second if there is one; `finish` are the cycles of the outputs' code.
std::vector<Effort> efforts_of_product(const ProductSizes& sizes, const EffortSite& at,
                                       double per_product, double finish);

}  // namespace pantala::schedule::gpu
