// Convolutions whose windows are single elements, as products: the channels of images with channels
// last are rows of a matrix, one row for every place of every image. They are computed by the
// kernels of the contract archetype, whose order of summation they have.
#pragma once

#include <optional>
#include <vector>

#include "schedule/common/elementwise.h"
#include "schedule/cpu/contract/kernel.h"
#include "schedule/cpu/conv/kernel.h"

namespace pantala::schedule::cpu {

struct ConvProduct {
  ContractSpec spec;
  ContractSizes sizes;
  ContractStrides strides;
  ContractOrder order;
  std::vector<Loop> m, n;  // of the result's domain; at most one each
};

// Nothing where the strides are others, or where the epilogue walks places not one after another:
// such a convolution is computed directly.
std::optional<ConvProduct> conv_product(ConvDirection direction, DType dtype,
                                        const ConvSizes& sizes, const ConvStrides& strides,
                                        const ElementwiseBody& body, const Target& target);

// The site of the convolution's result for one of the product.
ResultSite conv_site(const ConvProduct& product, int rank, const ResultSite& at);

}  // namespace pantala::schedule::cpu
